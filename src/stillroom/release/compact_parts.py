"""The coded tensors of a compact file: described, checked, decoded. The file may be anybody's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.public.codebooks import MOST_CODE_BITS, MOST_RESIDUAL_BITS, MOST_WEIGHTS, Coded
from stillroom.release.bits import packed_size, unpack
from stillroom.release.tensor_file import EVERY_ARRAY, Tensor, array_of

COMPACT = "compact"
"""What such a file is called, and says it is."""
MOST_NUMBERS = 1 << 26
"""Of all tensors together, decoded: as many as a file of float32 may have."""
MOST_GAP_BITS = 16
_WORDS = {"shape", "kept", "gap_bits", "gaps", "residual_bits"}
_ARRAYS = ("kept", "codebook", "codes", "residuals", "step")
_NOTHING = np.zeros(0, dtype=np.uint8)


@dataclass(frozen=True)
class Part:
    """A coded tensor in a compact file.

    Args:
        shape: of the tensor.
        kept: how many of its weights are.
        gap_bits: of a gap between kept weights; 0 where there is a bit per weight.
        gaps: how many numbers say the gaps.
        residual_bits: of a residual; 0 where there are none.
        arrays: what the file holds of it, by the last word of its name.
    """

    shape: tuple[int, ...]
    kept: int
    gap_bits: int
    gaps: int
    residual_bits: int
    arrays: Mapping[str, Tensor]

    @property
    def numbers(self) -> int:
        """How many the tensor has."""
        return math.prod(self.shape)

    @property
    def code_bits(self) -> int:
        """Of a code: as many as the codebook needs."""
        return (self.arrays["codebook"].numbers - 1).bit_length() if self.kept else 0

    def sizes(self) -> dict[str, tuple[str, int]]:
        """Type and length of each array there has to be; the codebook may be shorter."""
        if not self.kept:
            return {}
        found = {"codebook": ("F32", self.arrays["codebook"].numbers)}
        if self.gap_bits:
            found["kept"] = ("U8", packed_size(self.gaps, self.gap_bits))
        elif self.kept < self.numbers:
            found["kept"] = ("U8", packed_size(self.numbers, 1))
        if self.code_bits:
            found["codes"] = ("U8", packed_size(self.kept, self.code_bits))
        if self.residual_bits:
            found["residuals"] = ("U8", packed_size(self.kept, self.residual_bits))
            found["step"] = ("F32", 1)
        return found

    def decoded(self, content: bytes) -> npt.NDArray[np.float32]:
        """The tensor.

        Raises:
            ValueError: a code or a place is none.
        """
        found = {name: array_of(content, tensor) for name, tensor in self.arrays.items()}
        kept = self._kept(found.get("kept"))
        if not self.kept:
            return np.zeros(self.shape, dtype=np.float32)
        codes = unpack(found.get("codes", _NOTHING), self.code_bits, self.kept).astype(np.uint8)
        book, step = found["codebook"], found.get("step", np.zeros(1, np.float32))
        if not np.isfinite(book).all() or not np.isfinite(step).all():
            raise ValueError("a centroid is not a finite number")
        if int(codes.max()) >= len(book):
            raise ValueError("a code has no centroid")
        residuals = None
        if self.residual_bits:
            middle = 2 ** (self.residual_bits - 1)
            steps = unpack(found["residuals"], self.residual_bits, self.kept)
            residuals = (steps.astype(np.int16) - middle).astype(np.int8)
        return Coded(kept, codes, book, residuals, float(step[0]), self.residual_bits).array()

    def _kept(self, told: npt.NDArray[np.uint8] | None) -> npt.NDArray[np.bool_]:
        mask = np.full(self.numbers, self.kept == self.numbers)
        if told is not None and self.gap_bits:
            gaps = unpack(told, self.gap_bits, self.gaps).astype(np.int64)
            places = np.cumsum(np.where(gaps == 0, 2**self.gap_bits - 1, gaps)) - 1
            places = places[gaps > 0]
            if len(places) and places[-1] >= self.numbers:
                raise ValueError("a kept weight lies outside its tensor")
            mask[places] = True
        elif told is not None:
            mask = np.unpackbits(told, count=self.numbers, bitorder="little").astype(bool)
        if int(mask.sum()) != self.kept:
            raise ValueError("another number of weights is kept than it says")
        return mask.reshape(self.shape)


def coded_parts(said: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Part]:
    """The coded tensors that a compact file describes.

    Guarantee: each has the arrays it needs, of the right size, and all tensors together have at
    most `MOST_NUMBERS` numbers.

    Raises:
        AttributeError, LookupError, TypeError, ValueError: something is missing, too large or too
            much.
    """
    if said["make"] != COMPACT:
        raise ValueError("it is no compact file")
    parts = {name: _part(name, told, tensors) for name, told in said["tensors"].items()}
    plain = plain_names(parts, tensors)
    numbers = [part.numbers for part in parts.values()]
    if sum(numbers) + sum(tensors[name].numbers for name in plain) > MOST_NUMBERS:
        raise ValueError("it has more numbers than any model")
    if set(plain) & set(parts) or not all(tensors[name].dtype in EVERY_ARRAY for name in plain):
        raise ValueError("a tensor stands there twice, or is of a type that is not read here")
    return parts


def plain_names(parts: Mapping[str, Part], tensors: Mapping[str, Tensor]) -> list[str]:
    """The names of the tensors that stand in a compact file as they are."""
    used = {f"{name}/{array}" for name, part in parts.items() for array in part.arrays}
    return [name for name in tensors if name not in used]


def _part(name: str, told: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Part:
    sizes, kept = told["shape"], told["kept"]
    gap_bits, gaps = told.get("gap_bits", 0), told.get("gaps", 0)
    residual_bits = told.get("residual_bits", 0)
    if not 1 <= len(sizes) <= 8 or not set(told) <= _WORDS:
        raise ValueError("a coded tensor is not described")
    if not all(type(n) is int and n >= 0 for n in (*sizes, kept, gap_bits, gaps, residual_bits)):
        raise ValueError("a coded tensor is described by something else than whole numbers")
    numbers = math.prod(sizes)
    fits = 0 < numbers <= MOST_WEIGHTS and kept <= numbers and (kept or not residual_bits)
    fits = fits and gap_bits <= MOST_GAP_BITS and residual_bits <= MOST_RESIDUAL_BITS
    fits = fits and (kept <= gaps <= numbers and 0 < kept < numbers if gap_bits else not gaps)
    if not fits:
        raise ValueError("a coded tensor is too large, or has numbers of too many bits")
    arrays = {word: tensors[f"{name}/{word}"] for word in _ARRAYS if f"{name}/{word}" in tensors}
    part = Part(tuple(sizes), kept, gap_bits, gaps, residual_bits, arrays)
    if kept and not 1 <= arrays["codebook"].numbers <= 2**MOST_CODE_BITS:
        raise ValueError("a codebook has no centroid, or too many")
    lengths = {word: (array.dtype, array.numbers) for word, array in arrays.items()}
    if lengths != part.sizes() or not all(len(array.shape) == 1 for array in arrays.values()):
        raise ValueError("a coded tensor has other arrays than its description asks for")
    return part
