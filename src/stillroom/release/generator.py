"""What can be released to draw records from: a network, or the class mixture of a sketch.

A sketch is plain arrays, and numpy draws from it. A network is an ONNX file beside its weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.public.mixture import Mixture
from stillroom.vocabulary import Integers

NETWORK, SKETCH = "network", "sketch"
MAKES = (NETWORK, SKETCH)
"""What a generator can be."""
USUAL_SPREAD = (1.0, 1.2)
LARGEST_SPREAD = 10.0
ABOUT_SKETCH = "sketch: a mixture of Gaussians per class, to draw records from"

Records = npt.NDArray[np.float32]


class ReleasedGenerator(Protocol):
    """A finished generator of records."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record as it is stored in a data set."""

    @property
    def about(self) -> str:
        """What kind of generator it is, in one line."""

    @property
    def parameters(self) -> int:
        """How many trained numbers it has."""

    @property
    def states(self) -> Mapping[str, Any]:
        """What its file says of it beside shape and classes: `make`, `conditional` and the like."""

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Everything it has learned, by name, for generator.safetensors."""

    def checked_onnx(self) -> bytes | None:
        """Its ONNX file, compared with itself; None for a sketch."""

    def draw(
        self, seed: int, count: int, among: Sequence[int] | None = None
    ) -> tuple[Records, Integers | None]:
        """Records in units of the data, and the classes they were drawn for, if it knows any.

        Args:
            seed: the same one gives the same records.
            count: how many.
            among: the classes to draw; all, where it is None.
        """


@dataclass(frozen=True, eq=False)
class SketchGenerator:
    """The class mixture of a sketch.

    Guarantee: made of sanitised values and public numbers only.

    Args:
        mixture: what came through the gate.
        full_scale: the largest value of a record.
        sharpen: the share of the samples whose contrast is raised.
        warp: the share of the samples that are warped.
        spread: between which factors a sample's distance from its centre is drawn.
    """

    mixture: Mixture
    full_scale: float
    sharpen: float
    warp: float
    spread: tuple[float, float] = USUAL_SPREAD

    @classmethod
    def of(cls, said: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> SketchGenerator:
        """The sketch that a file holds.

        Args:
            said: what it says of itself.
            arrays: its arrays, by name.

        Raises:
            BadInput: the arrays are not those of a mixture.
        """
        low, high = said["spread"]
        shares = said["sharpen"], said["warp"]
        return cls(Mixture.of(arrays), said["full_scale"], *shares, (low, high))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record."""
        return self.mixture.shape

    @property
    def about(self) -> str:
        """What it is, in one line."""
        return ABOUT_SKETCH

    @property
    def parameters(self) -> int:
        """How many noisy numbers it is made of."""
        return sum(array.size for array in self.tensors().values() if array.dtype.kind == "f")

    @property
    def states(self) -> Mapping[str, Any]:
        """What its file says of it."""
        return sketch_states(self.full_scale, self.sharpen, self.warp, self.spread)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the mixture."""
        return self.mixture.arrays()

    def checked_onnx(self) -> None:
        """There is none: numpy draws from the arrays."""

    def draw(
        self, seed: int, count: int, among: Sequence[int] | None = None
    ) -> tuple[Records, Integers | None]:
        """Records in units of the data, and the classes they were drawn for."""
        drawn, classes = self.mixture.sample(
            seed,
            count,
            scale=self.spread,
            sharpen=self.sharpen,
            warp=self.warp,
            among=among,
        )
        return drawn * np.float32(self.full_scale), classes


def about_network(name: str, *, conditional: bool) -> str:
    """What a generator network is, in one line."""
    return f"generator `{name}`, {'told the class to draw' if conditional else 'of any class'}"


def sketch_states(
    full_scale: float, sharpen: float, warp: float, spread: tuple[float, float]
) -> dict[str, Any]:
    """What the file of a sketch says of it beside shape and classes."""
    return {
        "make": SKETCH,
        "conditional": True,
        "full_scale": float(full_scale),
        "sharpen": float(sharpen),
        "warp": float(warp),
        "spread": [float(end) for end in spread],
    }


def network_states(full_scale: float, latent: int, *, conditional: bool) -> dict[str, Any]:
    """What the file of a generator network says of it beside shape and classes."""
    return {
        "make": NETWORK,
        "conditional": conditional,
        "full_scale": float(full_scale),
        "latent": latent,
    }


def states_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a generator's file says of it, checked.

    Raises:
        ValueError: something is missing or malformed.
    """
    make, conditional = said.get("make"), said.get("conditional")
    full_scale: Any = said.get("full_scale")
    positive = type(full_scale) is float and 0 < full_scale < math.inf
    if make not in MAKES or not isinstance(conditional, bool) or not positive:
        raise ValueError("a generator does not say what it is")
    if make == NETWORK:
        latent: Any = said.get("latent")
        if type(latent) is not int or not 0 < latent < 2**20:
            raise ValueError("a generator does not say how many latent numbers it takes")
        return network_states(full_scale, latent, conditional=conditional)
    shares: tuple[Any, Any] = (said.get("sharpen"), said.get("warp"))
    spread: Any = said.get("spread")
    drawn = isinstance(spread, list) and [type(end) for end in spread] == [float, float]
    if not conditional or not all(type(share) is float and 0 <= share <= 1 for share in shares):
        raise ValueError("a sketch does not say how it is drawn from")
    if not drawn or not 0 <= spread[0] <= spread[1] <= LARGEST_SPREAD:
        raise ValueError("a sketch does not say how far its samples spread")
    return sketch_states(full_scale, *shares, (spread[0], spread[1]))


def check_sketch(
    states: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    shape: tuple[int, ...],
    classes: Sequence[str],
) -> None:
    """Refuse arrays that are no sketch of records of that shape, or of other classes.

    Raises:
        ValueError: they are none.
    """
    try:
        sketch = SketchGenerator.of(states, arrays)
    except BadInput as error:
        raise ValueError(f"a sketch is none: {error.what}") from None
    if sketch.shape != shape or len(sketch.mixture.weights) != len(classes):
        raise ValueError("a sketch is of other records or classes than it says")
    if set(sketch.tensors()) != set(arrays):
        raise ValueError("a sketch has arrays that it has no use for")
