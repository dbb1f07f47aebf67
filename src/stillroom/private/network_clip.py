"""The clip of a whole network's gradients, and the grid their sum is rounded to."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from stillroom.errors import BadInput

ASSUMPTIONS = {
    "real arithmetic": "assumed: gradients are floating-point numbers, computed in chunks of one "
    "constant size; that a record's are the same at any place of a chunk, so that the declared "
    "1 % above the clip covers what one record moves in the others', is assumed",
    "clipped gradients": "checked: every record's norm after the clip, in double precision, of the "
    "numbers that are added; a record that is too long or not finite counts as blank",
    "own gradients": "checked: before payment, on made-up records at two sets of weights; they are "
    "autograd's, and the same in other company, at another place and beside blank rows",
}

OF_PERSONS = {
    **ASSUMPTIONS,
    "clipped gradients": "checked: the norm of every person's summed gradient after the clip, in "
    "double precision, of the numbers that are added and more than rounding can move them; a "
    "person whose sum is too long or not finite counts as blank",
}
"""The same where a person's gradients are clipped as one."""

CLIP_BITS = 24
LARGEST_WIDTH = 2**32
NORM_TOLERANCE = 1e-3
INFLATION = Fraction(101, 100)


@dataclass(frozen=True)
class NetworkClip:
    """The largest norm of one record's gradient, and the grid its sum is rounded to.

    The clip is 2^24 grid units and 1.01 * 2^24 are declared. One record more or less moves the
    rounded sum by at most the clip, plus three things that the 1 % has room for:

    - 0.1 %: a clipped norm may exceed the clip by this much before its record counts as blank.
      Checked for every record, on the very numbers that are added.
    - 0.4 %: rounding two sums moves their difference by up to one unit per coordinate, so by
      sqrt(width) units; a network has at most 2^32 weights, and 2^16 / 2^24 is 0.4 %. Proven.
    - 0.5 %: what floating point moves in the other records' gradients when one comes or goes.
      Sums are double precision: below 1e-5 of the clip for a million records. What matters is a
      gradient whose last bits depend on its row: at a kink (ReLU, max pooling) they decide which
      way it turns. In chunks that got shorter they did, and the others moved by up to 0.64 clips;
      hence chunks of one constant size. In those, every network of the zoo gave each record the
      same gradient at every row, bit for bit, also within one float of a kink: the others moved by
      4.3e-5 clips at most, which is the rounding of the grid (x86-64, SSE to AVX-512, 1 to 12
      threads). That other machines and networks do so too is assumed, not proven (E6).

    Args:
        norm: the clip, such as 1.

    Raises:
        BadInput: the clip is not between 2^-20 and 2^20.

    >>> clip = NetworkClip(Fraction(1, 10))
    >>> clip.squared_norm > clip.steps**2, round(clip.unit * clip.steps, 9)
    (True, 0.1)
    """

    norm: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", Fraction(self.norm))
        if not Fraction(1, 2**20) <= self.norm <= 2**20:
            raise BadInput(
                f"the clip must lie between 2^-20 and 2^20, got {self.norm}",
                where="clip",
                why="single precision cannot be trusted with much smaller or larger gradients",
                remedy="give a clip such as 1",
            )

    @property
    def steps(self) -> int:
        """The clip in grid units."""
        return 1 << CLIP_BITS

    @property
    def squared_norm(self) -> int:
        """What the gate is told: the square of the clip and its 1 %, in grid units."""
        return ceil((INFLATION * self.steps) ** 2)

    @property
    def unit(self) -> float:
        """One grid unit of the sum, as a gradient."""
        return float(self.norm / self.steps)
