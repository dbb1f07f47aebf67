"""The numbers of Algorithms 1 to 3 as they were printed (Mao et al. 2021)."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from stillroom.parameters import ParameterGrid
from stillroom.parameters.grid import MOST_POINTS
from stillroom.recipe import Exact, Section
from stillroom.recipe.section import LARGEST_RATE


class PublishedSection(Section):
    """Every weight of the models by itself, and the readings of what the paper leaves open."""

    epsilon: Exact = Field(Fraction(1), gt=0, le=1000, description="epsilon_j, of each weight")
    sensitivity: Literal["printed", "true"] = Field(
        "printed", description="1 / (M (M - 1)) as printed, or what one model really moves"
    )
    grid: Literal["observed", "public"] = Field(
        "observed",
        description="between the extremes of each weight, as printed, which is infinite; or fixed",
    )
    radius: float = Field(
        1.0, gt=0, le=LARGEST_RATE, description="of a public grid; an observed one ends at extremes"
    )
    points: int = Field(
        128, ge=2, le=MOST_POINTS, description="of the grid: 2^p_t for weights of p_t bits"
    )
    bandwidth: float = Field(
        0.25, gt=0, le=LARGEST_RATE, description="b; as a share of the radius, or of half the range"
    )
    sharing: Literal["neighbouring", "disjoint"] = Field(
        "neighbouring", description="each model sees all shards but one, or one alone"
    )
    significant: Exact = Field(
        Fraction(1, 5), gt=0, lt=1, description="pgp: gamma, of a layer's weights"
    )
    clusters: int = Field(8, ge=2, le=256, description="pgp: per layer")
    cluster_rounds: int = Field(5, ge=1, le=100, description="pgp: of private k-means")
    cluster_epsilon: Exact = Field(
        Fraction(1), gt=0, le=1000, description="pgp: epsilon_c, of private k-means"
    )
    residual_epsilon: Exact = Field(
        Fraction(3, 2), gt=0, le=1000, description="pgp: epsilon_K, of a residual"
    )
    pruned: Exact = Field(
        Fraction(1, 4), ge=0, lt=1, description="pgc: the share of weights set to zero"
    )
    codebook_bits: int = Field(4, ge=1, le=8, description="pgc: p_c, of a centroid")
    residual_bits: int = Field(4, ge=0, le=8, description="pgc: p_r, of a residual")
    threshold: float | None = Field(
        None, ge=0, le=1, description="draw again until the public test is above"
    )
    tries: int = Field(1, ge=1, le=100, description="at most; every one of them is charged")

    @property
    def bits(self) -> int:
        """p_t, of a generated weight."""
        return (self.points - 1).bit_length()

    @property
    def parameter_grid(self) -> ParameterGrid:
        """The grid, fixed or as a share of what was observed."""
        radius = self.radius if self.grid == "public" else 1.0
        return ParameterGrid(radius, self.points, self.bandwidth * radius)

    def misfits(self, publisher: str) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        given = self.model_fields_set
        own = {
            "pgp": {
                *("significant", "clusters", "cluster_rounds"),
                *("cluster_epsilon", "residual_epsilon"),
            },
            "pgc": {"pruned", "codebook_bits", "residual_bits"},
        }
        found = {
            f"published.{', published.'.join(sorted(keys & given))}: only for publisher {name}": (
                publisher != name and bool(keys & given)
            )
            for name, keys in own.items()
        }
        return {
            **found,
            "published.radius: an observed grid has none": self.grid == "observed"
            and "radius" in given,
            "published.tries and published.threshold belong together": (self.tries > 1)
            != (self.threshold is not None),
            "published.bandwidth: wider than the whole grid": self.bandwidth > 2,
            "published.residual_bits: more bits than a generated weight has": publisher == "pgc"
            and self.residual_bits > self.bits,
        }
