"""A compact file decodes to the same bits by numpy alone, and nothing else is taken for one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from stillroom.public.codebooks import coded
from stillroom.randomness import normals, uniforms
from stillroom.release.compact import check_compact, described, packed_tensors, tensors_of_compact


def codes_of(shape, kept, codebook_bits, residual_bits, seed=1):
    weights = normals(seed, "w", size=shape).astype(np.float32)
    mask = uniforms(seed, "kept", size=shape) < kept
    return coded(weights, mask, codebook_bits, residual_bits)


def file_of(tensors, codes, **changes):
    said = {"make": "compact", "tensors": described(codes), **changes}
    arrays = packed_tensors(tensors, codes)
    return bytes(save(arrays, metadata={"stillroom": json.dumps(said)}))


def plain_file(tensors):
    return bytes(save(tensors, metadata={"stillroom": "{}"}))


def same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.02, 0.1, 0.5, 0.9, 1.0]),
    st.integers(1, 8),
    st.integers(0, 8),
    st.integers(0, 10**6),
)
def test_any_tensor_comes_back(shape, kept, codebook_bits, residual_bits, seed):
    code = codes_of(tuple(shape), kept, codebook_bits, residual_bits, seed)
    tensors = {"a": code.array(), "b": np.arange(3, dtype=np.float32)}
    content = file_of(tensors, {"a": code})
    same(tensors_of_compact(content), tensors)
    check_compact(content, plain_file(tensors))


@pytest.mark.parametrize("kept", [0.001, 0.01, 0.05, 0.2, 0.7, 1.0])
def test_places_take_the_smaller_of_two_forms(kept):
    code = codes_of((100, 300), kept, 4, 0)
    content = file_of({"a": code.array()}, {"a": code})
    same(tensors_of_compact(content), {"a": code.array()})
    (told,) = described({"a": code}).values()
    places = packed_tensors({}, {"a": code}).get("a/kept", np.zeros(0))
    assert ("gap_bits" in told) == (kept <= 0.2)
    if kept == 1:
        assert places.size == 0
    else:
        # Never more than a bit per weight, and not far from the entropy.
        share = code.kept.mean()
        entropy = -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
        assert entropy <= 8 * places.size / 30_000 + 1e-9 <= min(1 + 1e-9, 1.35 * entropy + 1e-3)


def test_the_file_is_as_small_as_its_bits():
    code = codes_of((200, 300), 0.5, 3, 4)
    content = file_of({"a": code.array()}, {"a": code})
    kept = len(code.codes)
    assert len(content) < (60_000 + 7 * kept) / 8 + 4 * (8 + 1) + 600


def test_other_types_stand_there_as_they_are():
    code = codes_of((4, 5), 0.5, 2, 0)
    tensors = {
        "w": code.array(),
        "count": np.array(7),
        "flags": np.array([True, False]),
        "wide": np.array([[1.5]]),
    }
    content = file_of(tensors, {"w": code})
    same(tensors_of_compact(content), tensors)
    check_compact(content, plain_file(tensors))


# -- other weights ----------------------------------------------------------------------------


def _another_bit(tensors):
    tensors["a"].view(np.uint32).flat[0] ^= 1


def _minus_zero(tensors):
    tensors["a"][tensors["a"] == 0] = -0.0


def _another_shape(tensors):
    tensors["a"] = tensors["a"].reshape(-1)


def _another_type(tensors):
    tensors["a"] = tensors["a"].view(np.int32)


def _another_name(tensors):
    tensors["c"] = tensors.pop("a")


def _one_more(tensors):
    tensors["c"] = np.ones(1, np.float32)


def _another_plain_one(tensors):
    tensors["b"] = tensors["b"] + 1


@pytest.mark.parametrize(
    "change",
    [
        *(_another_bit, _minus_zero, _another_shape, _another_type, _another_name, _one_more),
        _another_plain_one,
    ],
)
def test_other_weights_are_found(change):
    code = codes_of((5, 6), 0.5, 3, 3)
    tensors = {"a": code.array(), "b": np.arange(3, dtype=np.float32)}
    content = file_of(tensors, {"a": code})
    change(tensors)
    with pytest.raises(ValueError, match="other"):
        check_compact(content, plain_file(tensors))


# -- files that are none ------------------------------------------------------------------------


CODE = codes_of((40, 50), 0.05, 3, 4)
PACKED = packed_tensors({}, {"a": CODE})


def spoilt(told=None, arrays=None, **said):
    """A file of which one description or array is another."""
    found = {**packed_tensors({"b": np.ones(3, np.float32)}, {"a": CODE}), **(arrays or {})}
    found = {name: array for name, array in found.items() if array is not None}
    one = {**described({"a": CODE})["a"], **(told or {})}
    one = {word: value for word, value in one.items() if value is not None}
    text = json.dumps({"make": "compact", "tensors": {"a": one}, **said})
    return bytes(save(found, metadata={"stillroom": text}))


def test_the_unspoilt_one_is_read():
    assert set(tensors_of_compact(spoilt())) == {"a", "b"}
    assert set(PACKED) == {
        f"a/{part}" for part in ("kept", "codebook", "codes", "residuals", "step")
    }
    assert "gap_bits" in described({"a": CODE})["a"]
    assert len(CODE.codebook) == 8


HOSTILE = {
    "nothing": b"",
    "garbage": b"\xff" * 100,
    "no compact file": spoilt(make="network"),
    "no description": spoilt(tensors=None),
    "a list of descriptions": spoilt(tensors=[1]),
    "a tensor that is not there": spoilt(tensors={"x": {"shape": [2, 2], "kept": 4}}),
    "a word too many": spoilt({"note": 1}),
    "no shape": spoilt({"shape": None}),
    "a shape of nothing": spoilt({"shape": []}),
    "a shape of zero": spoilt({"shape": [0, 50]}),
    "a shape below zero": spoilt({"shape": [-40, -50]}),
    "a shape of text": spoilt({"shape": "89"}),
    "a shape of truth values": spoilt({"shape": [True, True]}),
    "a shape of terabytes": spoilt({"shape": [2**20, 2**20]}),
    "a shape beyond all numbers": spoilt({"shape": [2**62] * 8}),
    "a shape of many axes": spoilt({"shape": [1] * 50}),
    "another shape": spoilt({"shape": [3, 4]}),
    "none kept": spoilt({"kept": 0}),
    "more kept than there are": spoilt({"kept": 2001}),
    "more kept than are told": spoilt({"kept": len(CODE.codes) + 1}),
    "fewer kept than are told": spoilt({"kept": len(CODE.codes) - 1}),
    "a fraction kept": spoilt({"kept": 1.5}),
    "gaps of too many bits": spoilt({"gap_bits": 40}),
    "gaps of no bits": spoilt({"gap_bits": 0}),
    "gaps without end": spoilt({"gaps": 2**40}),
    "no gaps": spoilt({"gap_bits": None, "gaps": None}),
    "gaps of another length": spoilt({"gaps": 1}),
    "gaps beyond the tensor": spoilt(arrays={"a/kept": np.full_like(PACKED["a/kept"], 255)}),
    "gaps that are all fillers": spoilt(arrays={"a/kept": np.zeros_like(PACKED["a/kept"])}),
    "residuals of too many bits": spoilt({"residual_bits": 9}),
    "residuals of other bits": spoilt({"residual_bits": 7}),
    "no residuals": spoilt({"residual_bits": None}),
    "no codebook": spoilt(arrays={"a/codebook": None}),
    "an empty codebook": spoilt(arrays={"a/codebook": np.zeros(0, np.float32)}),
    "a long codebook": spoilt(arrays={"a/codebook": np.zeros(257, np.float32)}),
    "a codebook of integers": spoilt(arrays={"a/codebook": CODE.codebook.astype(np.int32)}),
    "a codebook of no numbers": spoilt(arrays={"a/codebook": CODE.codebook * np.nan}),
    "a codebook of two axes": spoilt(arrays={"a/codebook": CODE.codebook[None]}),
    "codes without centroids": spoilt(arrays={"a/codebook": CODE.codebook[:5]}),
    "too few codes": spoilt(arrays={"a/codes": np.zeros(0, np.uint8)}),
    "codes of another type": spoilt(arrays={"a/codes": np.zeros(1, np.int64)}),
    "no step": spoilt(arrays={"a/step": None}),
    "an endless step": spoilt(arrays={"a/step": np.array([np.inf], np.float32)}),
    "two steps": spoilt(arrays={"a/step": np.ones(2, np.float32)}),
    "a tensor twice": spoilt(arrays={"a": np.ones((40, 50), np.float32)}),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_anything_else_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011 (every message is in plain words, none the same)
        tensors_of_compact(content)


def test_no_file_has_more_numbers_than_a_model():
    """Tensors may share their bytes, and would be decoded one by one."""
    shape = [1 << 12, 1 << 12]
    told = {str(place): {"shape": shape, "kept": 0} for place in range(5)}
    content = bytes(
        save({}, metadata={"stillroom": json.dumps({"make": "compact", "tensors": told})})
    )
    with pytest.raises(ValueError, match="more numbers than any model"):
        tensors_of_compact(content)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_changed_file_is_read_or_refused(data):
    content = bytearray(spoilt())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = tensors_of_compact(bytes(content))
    except ValueError:
        return
    assert all(isinstance(array, np.ndarray) for array in found.values())
