"""CIFAR-10 batches are read whole, in both official forms; no pickle gets anything to run."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.data import Dataset, read_cifar
from stillroom.data.cifar import THINGS
from stillroom.data.files import file_kind
from stillroom.errors import BadInput

SECRET = "4242"
PLANES = (np.arange(3 * 3072) % 253).astype(np.uint8).reshape(3, 3072)
LABELS = [6, 0, 9]
BINARY = b"".join(bytes([label]) + row.tobytes() for label, row in zip(LABELS, PLANES, strict=True))


def text(value: bytes) -> bytes:
    """A text as Python 2 pickles it."""
    short = len(value) < 256
    return (b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))) + value


def python_2(labels: bytes = b"](" + b"".join(b"K" + bytes([n]) for n in LABELS) + b"e") -> bytes:
    """A batch byte for byte in the dialect of the official ones: Python 2, protocol 2."""
    dtype = b"cnumpy\ndtype\nq\x05" + text(b"u1") + b"K\0K\1\x87Rq\x06"
    dtype += b"(K\3" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\0\x85"
    array += text(b"b") + b"\x87Rq\x04(K\1K\3M\0\x0c\x86" + dtype + b"\x89"
    array += text(PLANES.tobytes()) + b"tb"
    files = b"](" + b"".join(text(b"%d.png" % n) for n in range(3)) + b"e"
    pairs = text(b"batch_label") + text(b"training batch 1 of 5")
    pairs += text(b"labels") + labels + text(b"data") + array + text(b"filenames") + files
    return b"\x80\x02}q\x01(" + pairs + b"u."


def batch(**change: object) -> dict[bytes, object]:
    whole: dict[str, object] = {"batch_label": b"one", "labels": LABELS, "data": PLANES} | change
    return {key.encode(): value for key, value in whole.items()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "batch"


def refused(path: Path, content: bytes) -> BadInput:
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_cifar(path)
    assert caught.value.remedy
    assert str(path) in caught.value.where
    assert SECRET not in str(caught.value)
    return caught.value


FORMS = {
    "binary": (BINARY, "cifar-bin"),
    "binary gzipped": (gzip.compress(BINARY), "cifar-bin"),
    "Python 2": (python_2(), "cifar-python"),
    "Python 3, protocol 3": (pickle.dumps(batch(), 3), "cifar-python"),
    "Python 3, protocol 4": (pickle.dumps(batch(), 4), "cifar-python"),
    "by columns": (pickle.dumps(batch(data=np.asfortranarray(PLANES)), 4), "cifar-python"),
    "text keys": (pickle.dumps({"labels": LABELS, "data": PLANES}, 4), "cifar-python"),
}


@pytest.mark.parametrize(("content", "kind"), FORMS.values(), ids=FORMS.keys())
def test_every_form_gives_the_same_pictures(path: Path, content: bytes, kind: str) -> None:
    path.write_bytes(content)
    assert file_kind(path) == kind
    read = read_cifar(path)
    assert (read.x.dtype, read.shape, read.classes) == (np.uint8, (32, 32, 3), THINGS)
    assert read.y.tolist() == LABELS
    for row, channel in ((0, 0), (1, 1), (2, 2)):
        plane = PLANES[row, 1024 * channel : 1024 * (channel + 1)].reshape(32, 32)
        assert np.array_equal(read.x[row, :, :, channel], plane)


def test_batches_follow_each_other_whatever_their_form(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(BINARY)
    second.write_bytes(python_2())
    read = read_cifar([first, second])
    assert read.y.tolist() == LABELS * 2
    assert np.array_equal(read.x[:3], read.x[3:])
    assert len(set(read.ids)) == 6


def test_classes_may_get_other_names_but_not_be_fewer(path: Path) -> None:
    path.write_bytes(BINARY)
    names = [f"thing {n}" for n in range(10)]
    assert read_cifar(path, names).classes == tuple(names)
    assert read_cifar(path, 10).classes == THINGS
    with pytest.raises(BadInput, match="record 0"):
        read_cifar(path, 3)


@pytest.mark.parametrize("cut", [0, 1, 3072, 3074, len(BINARY) - 1])
def test_cut_binary_batches(path: Path, cut: int) -> None:
    assert "whole CIFAR-10 records" in refused(path, BINARY[:cut]).what


def test_a_label_that_is_no_class(path: Path) -> None:
    assert "record 1" in refused(path, BINARY[:3073] + b"\x0a" + BINARY[3074:]).where
    assert "record 2" in refused(path, pickle.dumps(batch(labels=[0, 1, 77]), 4)).where


def test_a_batch_that_starts_like_idx_is_still_a_batch(path: Path) -> None:
    path.write_bytes(bytes([0, 0, 8, 3]) + bytes(3069))
    assert file_kind(path) == "cifar-bin"
    assert read_cifar(path).y.tolist() == [0]
    path.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 1]) + struct.pack(">I", 3061) + bytes(3061))
    assert file_kind(path) == "idx"


class Attack:
    """Calls anything when it is read."""

    def __init__(self, call: Callable[..., object], *words: object) -> None:
        self.asks = call, words

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.asks


def attacks(target: Path) -> dict[str, bytes]:
    """Pickles that create the target when an ordinary unpickler reads them."""
    touch = Attack(os.system, f"touch {target}")
    making = Attack(os.mkdir, str(target))
    name = str(target).encode()
    return {
        "in place of a batch": pickle.dumps(touch, 2),
        "another call": pickle.dumps(making, 4),
        "among the labels": pickle.dumps(batch(labels=[0, 1, touch]), 4),
        "as the array": pickle.dumps(batch(data=making), 3),
        "beside the rest": pickle.dumps(batch(extra=touch), 4),
        "inside an object array": pickle.dumps(
            batch(data=np.array([making, None], dtype=object)), 4
        ),
        "Python 2": python_2(b"cos\nsystem\n" + text(b"touch " + name) + b"\x85R"),
        "instance opcode": b"\x80\x02(" + text(b"touch " + name) + b"ios\nsystem\n.",
        "object opcode": b"\x80\x02(cos\nsystem\n" + text(b"touch " + name) + b"o.",
    }


@pytest.mark.parametrize("which", attacks(Path("target")))
def test_a_pickle_with_code_runs_nothing(tmp_path: Path, path: Path, which: str) -> None:
    target = tmp_path / "created"
    content = attacks(target)[which]
    refused(path, content)
    assert not target.exists()
    # The same bytes do their work elsewhere, or this test would prove nothing.
    with suppress(Exception):
        pickle.loads(content, encoding="latin1")
    assert target.exists()


@pytest.mark.parametrize("wanted", ["os.system", "builtins.eval", "numpy.load", "numpy.frombuffer"])
def test_what_a_pickle_asks_for_is_named(path: Path, wanted: str) -> None:
    module, name = wanted.split(".")
    error = refused(path, b"\x80\x02c" + f"{module}\n{name}\n".encode() + b".")
    assert wanted in error.what
    assert "run any program" in error.why


def test_an_odd_name_is_not_repeated(path: Path) -> None:
    odd = b"\x80\x02c" + b"\x1b[31m 4242\nx\n."
    assert "unusual name" in refused(path, odd).what


BROKEN = {
    "nothing inside": pickle.dumps({}, 4),
    "no dict": pickle.dumps([LABELS, PLANES.tobytes()], 4),
    "labels missing": pickle.dumps({b"data": PLANES}, 4),
    "labels a number": pickle.dumps(batch(labels=10**12), 4),
    "labels an array": pickle.dumps(batch(labels=np.array(LABELS)), 4),
    "labels texts": pickle.dumps(batch(labels=[SECRET] * 3), 4),
    "labels too few": pickle.dumps(batch(labels=[1, 2]), 4),
    "label no byte": pickle.dumps(batch(labels=[1, 2, 4242]), 4),
    "data missing": pickle.dumps({b"labels": LABELS}, 4),
    "data a text": pickle.dumps(batch(data=SECRET), 4),
    "data too narrow": pickle.dumps(batch(data=PLANES[:, 1:]), 4),
    "data with other axes": pickle.dumps(batch(data=PLANES.reshape(3, 3, 1024)), 4),
    "data of another type": pickle.dumps(batch(data=PLANES.astype(np.int8)), 4),
    "data of objects": pickle.dumps(batch(data=PLANES.astype(object)), 4),
    "no records": pickle.dumps(batch(data=PLANES[:0], labels=[]), 4),
    "an array cut short": python_2().replace(b"M\0\x0c\x86", b"M\1\x0c\x86"),
    "an index beyond memory": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "a length beyond memory": b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f.",
    "an unknown opcode": b"\x80\x04\xff.",
    "a reference": b"\x80\x02K\1Q.",
    "a class changed": b"\x80\x02cnumpy\ndtype\nN}" + text(b"state") + b"K\1s\x86b.",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_broken_python_batches(path: Path, content: bytes) -> None:
    refused(path, content)
    path.write_bytes(python_2())
    assert read_cifar(path).y.tolist() == LABELS


def test_cut_python_batches(path: Path) -> None:
    whole = python_2()
    for cut in (1, 2, 3, 40, 200, 600, len(whole) // 2, len(whole) - 1):
        refused(path, whole[:cut])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_bad_input_or_harmless(path: Path, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([python_2(), pickle.dumps(batch(), 4), BINARY]))
    damaged = bytearray(whole)
    # The pictures are most of a batch; its skeleton is where damage matters.
    ends = st.integers(0, 400).map(lambda n: n if n < 300 else n - 401)
    for place in data.draw(st.lists(ends, min_size=1, max_size=3)):
        damaged[place] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    with suppress(BadInput):
        assert isinstance(read_cifar(path), Dataset)
