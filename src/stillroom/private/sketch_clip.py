"""How large one record's part in a sketch may be, in whole grid units."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from stillroom.errors import BadInput
from stillroom.features.basis import DIAGONAL

LARGEST_STEPS = 2**15 - 1
"""Coefficients are kept as 16-bit integers."""


@dataclass(frozen=True)
class SketchClip:
    """The largest norms of one record's coefficients and residual, and the grid they are put on.

    Args:
        radius: of the coefficients of one picture.
        residual: of what is left once a public centre is subtracted.
        grid: grid units in a length of one.
        whitened: of a residual along directions that were scaled to a mean square length of one;
            None where they keep their lengths, and the radius of a residual holds.

    Raises:
        BadInput: a radius does not fit the grid.
    """

    radius: Fraction = Fraction(10)
    residual: Fraction = Fraction(6)
    grid: int = 1024
    whitened: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("radius", "residual", "whitened"):
            if getattr(self, name) is None:
                continue
            object.__setattr__(self, name, Fraction(getattr(self, name)))
            if not 1 <= getattr(self, name) * self.grid <= LARGEST_STEPS:
                raise BadInput(
                    f"{name} is not between 1 and {LARGEST_STEPS} units of the grid",
                    where=name,
                    why="coefficients are kept as 16-bit integers",
                    remedy=f"give a positive {name}, and a coarser grid for a large one",
                )

    @property
    def radius_steps(self) -> int:
        """The radius in grid units, rounded down."""
        return int(self.radius * self.grid)

    @property
    def residual_steps(self) -> int:
        """The radius of a residual in grid units, rounded down."""
        return int(self.residual * self.grid)

    @property
    def cluster_steps(self) -> int:
        """The radius of a residual along directions, in grid units, rounded down."""
        return self.residual_steps if self.whitened is None else int(self.whitened * self.grid)

    @property
    def squared_class_sum(self) -> int:
        """The square of the largest norm of [coefficients, radius]."""
        return 2 * self.radius_steps**2

    @property
    def squared_cluster_sum(self) -> int:
        """The square of the largest norm of [residual along directions, its radius]."""
        return 2 * self.cluster_steps**2

    @property
    def squared_moment(self) -> int:
        """The square of the largest norm of the triangle of residual times residual."""
        return (DIAGONAL * self.residual_steps**2) ** 2

    @property
    def squared_cluster_moment(self) -> int:
        """The same along directions."""
        return (DIAGONAL * self.cluster_steps**2) ** 2
