"""Rounding that never flatters."""

from __future__ import annotations

import math
from fractions import Fraction


def up(x: Fraction | float) -> float:
    """The smallest float not below x.

    >>> up(Fraction(1, 3)) >= Fraction(1, 3)
    True
    """
    value = float(x)
    return value if Fraction(value) >= x else math.nextafter(value, math.inf)


def down(x: Fraction | float) -> float:
    """The largest float not above x."""
    value = float(x)
    return value if Fraction(value) <= x else math.nextafter(value, -math.inf)


def root_down(x: Fraction) -> float:
    """A float not above the square root of x, one unit in the last place away at most."""
    value = math.sqrt(down(x))
    while Fraction(value) ** 2 > x:
        value = math.nextafter(value, 0.0)
    return value


def shown(epsilon: float, digits: int = 2) -> str:
    """An epsilon for people: rounded up, never down.

    >>> shown(7.5112), shown(float("inf")), shown(1.0)
    ('7.52', 'infinite', '1.00')
    """
    if math.isinf(epsilon):
        return "infinite"
    scale = 10**digits
    return f"{math.ceil(Fraction(epsilon) * scale) / scale:.{digits}f}"
