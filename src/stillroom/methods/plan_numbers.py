"""Numbers of a plan: all fixed before the first draw, and noise rounded the safe way."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, isqrt

from stillroom.errors import BadInput

SIGMA_STEPS = 1000


def check_plan(plan: object, checks: Mapping[str, bool]) -> None:
    """Refuse a plan that has a number out of range.

    Args:
        plan: has an attribute of each name.
        checks: whether the number of this name is fine.

    Raises:
        BadInput: one is not.
    """
    for name, fine in checks.items():
        if not fine:
            raise BadInput(
                f"{name} is out of range: {getattr(plan, name)}",
                where=name,
                why="the plan must be fixed before the first draw",
                remedy=f"see the arguments of {type(plan).__name__}",
            )


def least_sigma(squared: Fraction) -> Fraction:
    """The square root, rounded up: a little more noise than needed, never less.

    >>> least_sigma(Fraction(9)), least_sigma(Fraction(2)) ** 2 > 2
    (Fraction(3, 1), True)
    """
    return Fraction(isqrt(ceil(squared * SIGMA_STEPS**2) - 1) + 1, SIGMA_STEPS)
