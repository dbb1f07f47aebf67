"""The section `[compression]`: how a finished model is pruned and coded, whatever its method."""

from __future__ import annotations

from fractions import Fraction

from pydantic import Field

from stillroom.recipe.section import Exact, Section

MOST_BITS = 8
"""Of a code, and of a residual: each fits a byte."""


class CompressionSection(Section):
    """A model with fewer weights, and fewer bits for each.

    >>> CompressionSection.of(kept="1/3").codebook_bits
    4
    """

    kept: Exact = Field(
        Fraction(3, 4), gt=0, le=1, description="the share of the weights that is not set to zero"
    )
    codebook_bits: int = Field(
        4, ge=1, le=MOST_BITS, description="p_c, of the code for a weight's centroid"
    )
    residual_bits: int = Field(
        4,
        ge=0,
        le=MOST_BITS,
        description="p_r, of what the centroid leaves; one is its sign, so 0 and 1 leave it out",
    )
