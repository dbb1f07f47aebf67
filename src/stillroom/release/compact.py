"""The compact file: a model's weights as codes, in as few bytes as they take; read by numpy alone.

Of a tensor `name` that is coded the safetensors file holds

- `name/kept`, where some weights are pruned: one bit per weight; or, where that is smaller, how far
  each kept weight is from the one before it, in `gaps` numbers of `gap_bits` bits. The first is
  counted from one before the tensor. A zero is no weight, and adds 2^gap_bits - 1 to the next;
- `name/codebook`: the centroids, float32;
- `name/codes`, where there are several: one place in the codebook per kept weight, in as few bits
  as the codebook needs;
- `name/residuals` and `name/step`, where there are residuals: one number of `residual_bits` bits
  per kept weight, 2^(residual_bits - 1) being zero; a weight is its centroid plus residual x step.

The other tensors stand there as they are. The metadata have shape, bits and number of kept weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.public.codebooks import Coded
from stillroom.release.bits import pack
from stillroom.release.compact_parts import MOST_GAP_BITS, coded_parts, plain_names
from stillroom.release.tensor_file import array_of, header

Arrays = dict[str, npt.NDArray[Any]]
ABOUT = "the weights of the model, pruned and coded"
"""What it is, in one line."""


def packed_tensors(tensors: Mapping[str, npt.NDArray[Any]], codes: Mapping[str, Coded]) -> Arrays:
    """The arrays of a compact file.

    Args:
        tensors: all of a model.
        codes: of those that are coded, by name.
    """
    found = {name: array for name, array in tensors.items() if name not in codes}
    for name, code in codes.items():
        found |= {f"{name}/{part}": array for part, array in _packed(code).items()}
    return found


def described(codes: Mapping[str, Coded]) -> dict[str, dict[str, Any]]:
    """What a compact file says of the tensors that are coded."""
    told = {}
    for name, code in codes.items():
        gaps = _gaps(code)
        bits = {"gap_bits": gaps[1], "gaps": len(gaps[0]), "residual_bits": code.residual_bits}
        more = {word: number for word, number in bits.items() if number}
        told[name] = {"shape": list(code.shape), "kept": len(code.codes), **more}
    return told


def _gaps(code: Coded) -> tuple[npt.NDArray[np.int64], int]:
    """The gaps between kept weights and their bits; none where a bit per weight is smaller."""
    away = np.diff(np.flatnonzero(code.kept), prepend=-1) - 1
    none = np.zeros(0, dtype=np.int64), 0
    if not 0 < len(away) < code.kept.size:
        return none
    counts = {
        bits: len(away) + int((away // (2**bits - 1)).sum()) for bits in range(1, MOST_GAP_BITS + 1)
    }
    best = min(counts, key=lambda bits: counts[bits] * bits)
    if counts[best] * best >= code.kept.size:
        return none
    found = np.zeros(counts[best], dtype=np.int64)
    fillers, last = np.divmod(away, 2**best - 1)
    found[np.cumsum(fillers + 1) - 1] = last + 1
    return found, best


def _packed(code: Coded) -> Arrays:
    if not len(code.codes):
        return {}
    found: Arrays = {"codebook": code.codebook}
    if len(code.codes) < code.kept.size:
        gaps, bits = _gaps(code)
        mask = np.packbits(code.kept, bitorder="little")
        found["kept"] = pack(gaps, bits) if bits else mask
    if code.code_bits:
        found["codes"] = pack(code.codes, code.code_bits)
    if code.residuals is not None:
        middle = 2 ** (code.residual_bits - 1)
        found["residuals"] = pack(code.residuals.astype(np.int64) + middle, code.residual_bits)
        found["step"] = np.array([code.step], dtype=np.float32)
    return found


def tensors_of_compact(content: bytes) -> Arrays:
    """The tensors of a compact file, by name.

    Guarantee: bit for bit those of the model it was made of. Numpy is all it needs. What a file
    claims is compared with its size before anything is made of it.

    Args:
        content: the file, from anyone.

    Raises:
        ValueError: it is no compact file.
    """
    try:
        said, tensors = header(content)
        parts = coded_parts(said, tensors)
    except (LookupError, TypeError, AttributeError):
        raise ValueError("it is no compact file") from None
    plain = {name: array_of(content, tensors[name]) for name in plain_names(parts, tensors)}
    return plain | {name: part.decoded(content) for name, part in parts.items()}


def check_compact(content: bytes, model: bytes) -> None:
    """Refuse a compact file that does not decode, bit for bit, to the weights of a model.

    Args:
        content: the compact file.
        model: the model's safetensors file.

    Raises:
        AttributeError, LookupError, TypeError, ValueError: it does not; a ValueError says why.
    """
    said, tensors = header(content)
    parts, expected = coded_parts(said, tensors), header(model)[1]
    plain = plain_names(parts, tensors)
    if set(parts) | set(plain) != set(expected):
        raise ValueError("it has other tensors")
    view, expecting = memoryview(content), memoryview(model)
    for name, tensor in expected.items():
        part, own = parts.get(name), tensors.get(name)
        if part is not None:
            same = (tensor.dtype, tensor.shape) == ("F32", part.shape)
            found = memoryview(part.decoded(content).tobytes() if same else b"")
        else:
            assert own is not None
            same = (tensor.dtype, tensor.shape) == (own.dtype, own.shape)
            found = view[own.start : own.end]
        if not same or found != expecting[tensor.start : tensor.end]:
            raise ValueError("it decodes to other numbers")
