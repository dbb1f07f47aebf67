"""What can be released: any model that turns records into one score per class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, NumericalDoubt
from stillroom.features import FEATURES, FIXED, TableFeatures
from stillroom.release.graph import check_graph
from stillroom.release.linear_graph import linear_onnx

TOLERANCE = 1e-4
_CHECKED_RECORDS = 12


class ReleasedModel(Protocol):
    """A finished model, from raw records to logits."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record as it is stored in a data set."""

    @property
    def outputs(self) -> int:
        """How many scores per record."""

    @property
    def about(self) -> str:
        """What kind of model it is, in one line."""

    @property
    def parameters(self) -> int:
        """How many trained numbers it has."""

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Everything it has learned, by name, for model.safetensors."""

    def onnx(self, classes: tuple[str, ...]) -> bytes:
        """The ONNX file: float32 records `x` in; `logits` and `label` out, for any number."""

    def logits(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The scores of records, one row per record: what the ONNX file is compared with."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear layer over fixed features.

    Args:
        weights: one row per class, one column per feature.
        features: the name of the fixed feature step.
        shape: the shape of one record.
        table: with features `table`, which they are.

    Raises:
        BadInput: the features are unknown, or the weights do not belong to them.

    >>> LinearModel(np.zeros((3, 65), np.float32), "pixels", (8, 8)).about
    'linear layer over fixed features `pixels`'
    """

    weights: npt.NDArray[np.float32]
    features: str
    shape: tuple[int, ...]
    table: TableFeatures | None = None

    def __post_init__(self) -> None:
        if self.features not in (FIXED if self.table else FEATURES):
            raise BadInput(
                f"unknown features {self.features!r}",
                where="model",
                why="the released model begins with its feature step",
                remedy=f"use one of: {', '.join(FEATURES)}",
            )
        width = self._rows(np.zeros((1, *self.shape), np.float32)).shape[1]
        if self.weights.ndim != 2 or self.weights.shape[1] != width:
            raise BadInput(
                f"the weights are {self.weights.shape}, the features have {width} columns",
                where="model",
                why="each feature needs one weight per class",
                remedy="hand over the weights that belong to these features",
            )

    @property
    def outputs(self) -> int:
        """How many scores per record."""
        return len(self.weights)

    @property
    def about(self) -> str:
        """What kind of model it is, in one line."""
        return f"linear layer over fixed features `{self.features}`"

    @property
    def parameters(self) -> int:
        """How many trained numbers it has."""
        return int(self.weights.size)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The weights."""
        return {"weights": np.ascontiguousarray(self.weights, dtype=np.float32)}

    def onnx(self, classes: tuple[str, ...]) -> bytes:
        """The ONNX file, feature step included."""
        weights = self.weights.astype(np.float32)
        return linear_onnx(weights, self.features, self.shape, classes, self.table)

    def logits(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The scores of records, by numpy."""
        scores: npt.NDArray[np.float32] = self._rows(x) @ self.weights.T
        return scores

    def _rows(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        return (self.table or FEATURES[self.features])(x)


def checked_onnx(model: ReleasedModel, classes: tuple[str, ...]) -> bytes:
    """The model's ONNX file.

    Guarantee: on a fixed set of records its logits are those of the model, within 1e-4 of the
    largest; and a record alone gets the logits it gets among others.

    Raises:
        BadInput: it has an operator that `predict` does not run.
        NumericalDoubt: file and model disagree.
    """
    content = model.onnx(classes)
    try:
        check_graph(content)
    except ValueError as error:
        raise BadInput(
            f"the network cannot be released: {error}",
            where="model.onnx",
            why="`stillroom predict` runs no such file, since it may be anybody's",
            remedy="build it of plain layers, without loops and without operators of your own",
        ) from None
    check_onnx(content, model)
    return content


def check_onnx(content: bytes, model: ReleasedModel) -> None:
    """Compare an ONNX file with the model on a fixed set of records.

    Raises:
        NumericalDoubt: they disagree.
    """
    from stillroom.release.predict import run_onnx

    x = fixed_records(model.shape, _CHECKED_RECORDS)
    if isinstance(model, LinearModel) and model.table is not None:
        x = model.table.examples()
    expected = model.logits(x)
    allowed = TOLERANCE * max(1.0, float(np.abs(expected).max()))
    for some in (slice(None), slice(0, 1)):
        logits, _ = run_onnx(content, x[some])
        wanted = expected[some]
        if logits.shape != wanted.shape or not np.abs(logits - wanted).max() <= allowed:
            raise NumericalDoubt(
                "the ONNX graph and the model it was made from give different answers",
                where="model.onnx",
                why="the bundle would carry another model than the one that was certified",
                remedy="see that the model gives finite scores and treats each record by itself; "
                "if it does, report it with the model's layers and the shape of the records",
            )


def fixed_records(shape: Sequence[int], count: int) -> npt.NDArray[np.float32]:
    """At least three records that look like anything: many waves, and one that is all zero."""
    size = count * math.prod(shape)
    place = np.arange(size, dtype=np.float64)
    waves = 8 + 4 * np.sin(place * 0.7) + 3 * np.sin(place * place * 0.013)
    x: npt.NDArray[np.float32] = waves.reshape(count, *shape).astype(np.float32)
    x[1] = np.round(x[1])
    x[2] = 0
    return x
