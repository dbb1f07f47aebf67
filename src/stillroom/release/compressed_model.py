"""A released model whose weights are pruned and coded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.public.codebooks import Coded
from stillroom.release.coded_onnx import coded_onnx
from stillroom.release.model import ReleasedModel


class CompressedModel:
    """A model together with the codes of its tensors.

    Guarantee: its ONNX file and its compact file decode to the tensors of the model, to the bit.

    Args:
        plain: the model; its weights are what the codes stand for.
        codes: of some of its tensors, by name; at least one.

    Raises:
        BadInput: a code stands for other numbers than the model has.
    """

    def __init__(self, plain: ReleasedModel, codes: Mapping[str, Coded]) -> None:
        self.plain, self.codes = plain, dict(codes)
        self._onnx: dict[tuple[str, ...], bytes] = {}
        tensors = plain.tensors()
        same = [
            name in tensors
            and tensors[name].dtype == np.float32
            and tensors[name].shape == code.shape
            and tensors[name].tobytes() == code.array().tobytes()
            for name, code in self.codes.items()
        ]
        if not same or not all(same):
            raise BadInput(
                "the codes stand for other weights than the model has",
                where="compression",
                why="compact file and model would be two models, and one certificate for both",
                remedy="hand over the model that was made with these codes",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record as it is stored in a data set."""
        return self.plain.shape

    @property
    def outputs(self) -> int:
        """How many scores per record."""
        return self.plain.outputs

    @property
    def about(self) -> str:
        """What kind of model it is, in one line."""
        return self.plain.about

    @property
    def parameters(self) -> int:
        """How many trained numbers it has, pruned ones included."""
        return self.plain.parameters

    @property
    def kept(self) -> int:
        """How many of its parameters are not pruned."""
        pruned = sum(code.kept.size - len(code.codes) for code in self.codes.values())
        return self.parameters - pruned

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Everything it has learned, by name."""
        return self.plain.tensors()

    def logits(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The scores of records, one row per record."""
        return self.plain.logits(x)

    def plain_onnx(self, classes: tuple[str, ...]) -> bytes:
        """The ONNX file with the weights as they are."""
        if classes not in self._onnx:
            self._onnx[classes] = self.plain.onnx(classes)
        return self._onnx[classes]

    def onnx(self, classes: tuple[str, ...]) -> bytes:
        """The ONNX file, with codes in place of weights where that makes it smaller."""
        return coded_onnx(self.plain_onnx(classes), self.codes)
