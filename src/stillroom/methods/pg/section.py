"""The numbers of a parameter publisher: which models are trained, and what of them is published."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from stillroom.parameters import ParameterGrid
from stillroom.parameters.grid import MOST_POINTS
from stillroom.parameters.sizes import SIZES
from stillroom.recipe import Exact, Section, Seed
from stillroom.recipe.common import MOST_UNITS
from stillroom.recipe.section import LARGEST_RATE, MOST_DRAWS, MOST_EPOCHS, MOST_PICTURES

HEAD = "head"
MOST_WEIGHTS = 1_000_000_000
MOST_MODELS = 100_000
MOST_LATENTS = 1_000_000


class CollectionSection(Section):
    """Models of one architecture, each trained on a shard of the sensitive records."""

    model: str = Field(
        HEAD,
        description="head: a linear layer over features; or a network: its name in the zoo, or "
        "package.module:callable",
    )
    parameters: int | None = Field(
        None,
        ge=1,
        le=MOST_WEIGHTS,
        description="weights of a network of your own, where the price depends on their number",
    )
    models: int = Field(1000, ge=2, le=MOST_MODELS, description="M, one per shard")
    shard_cap: int = Field(
        ge=1, le=MOST_UNITS, description="the most records of a model; a public constant"
    )
    start: Literal["common", "public", "sketch"] = Field(
        "common",
        description="where all models start: at zeros or random weights, or after training on "
        "public labels, or on samples of the sketch",
    )
    start_steps: int = Field(
        10, ge=1, le=MOST_EPOCHS, description="of that training: steps of a head, epochs of a net"
    )
    start_rate: float = Field(0.1, gt=0, le=LARGEST_RATE, description="of that training")
    steps: int = Field(1, ge=1, le=MOST_EPOCHS, description="of a head on its shard, per round")
    epochs: int = Field(3, ge=1, le=MOST_EPOCHS, description="of a network on its shard, per round")
    batch: int = Field(128, ge=1, le=MOST_PICTURES, description="records per step of a network")
    learning_rate: float = Field(
        1.0, gt=0, le=LARGEST_RATE, description="of steps on a shard; for a network such as 0.001"
    )
    checkpoints: int = Field(
        1, ge=1, le=MOST_EPOCHS, description="epochs of a network that are averaged to one model"
    )
    scale: Literal["whitened", "diagonal", "none"] = Field(
        "whitened",
        description="for a head: public features bring its rows to one scale in all directions, "
        "or in each coordinate",
    )
    ridge: float = Field(1e-3, gt=0, le=1e6, description="of that scale: thin directions stay thin")
    start_seed: Seed = Field(0, description="of weights, order and dropout; never of noise")

    @property
    def is_head(self) -> bool:
        """Whether the models are linear layers over features."""
        return self.model == HEAD

    def weights(self, shape: tuple[int, ...], classes: int) -> int | None:
        """Weights of a network, as far as they are known without building it."""
        if self.model in SIZES:
            channels = shape[2] if len(shape) == 3 else 1
            return SIZES[self.model]((channels, *shape[:2]), classes)
        return self.parameters

    def misfits(self) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        given = self.model_fields_set
        of_networks = {"epochs", "batch", "checkpoints", "parameters"} & given
        named = ", ".join(f"collection.{name}" for name in sorted(of_networks))
        return {
            f"{named}: only for networks": self.is_head and bool(of_networks),
            "collection.steps, collection.scale, collection.ridge: only for a head": (
                not self.is_head and bool({"steps", "scale", "ridge"} & given)
            ),
            "collection.checkpoints: more than there are epochs": self.checkpoints > self.epochs,
            "collection.parameters: the zoo knows how many": self.model in SIZES
            and self.parameters is not None,
            "collection.start_steps, collection.start_rate: nothing is trained before": (
                self.start == "common" and bool({"start_steps", "start_rate"} & given)
            ),
        }


class PgSection(Section):
    """What of the models is published, and by which mechanism."""

    publisher: Literal["pg", "pgp", "pgc"] = Field(
        "pg", description="generated parameters; of grouped ones (pgp); of few ones (pgc)"
    )
    mechanism: Literal["gaussian", "exponential"] = Field(
        "gaussian",
        description="the noisy mean of clipped latents, or the paper's: a kernel density estimate "
        "on a grid, and the exponential mechanism",
    )
    map: Literal["weights", "groups", "random", "directions"] = Field(
        "weights",
        description="what is a latent: a weight, a group of weights alike in the public start, a "
        "random group, or a direction in which public trainings moved",
    )
    latents: int | None = Field(
        None, ge=1, le=MOST_LATENTS, description="how many, for all maps but weights"
    )
    public_runs: int = Field(
        0, ge=0, le=MOST_MODELS, description="for map directions: trainings on public records"
    )
    kept: Exact = Field(
        Fraction(1), gt=0, le=1, description="pgc: weights that are kept, by importance in public"
    )
    codebook_bits: int = Field(8, ge=1, le=8, description="pgc: of a weight's code in the file")
    residual_bits: int = Field(8, ge=0, le=8, description="pgc: of what the code leaves over")
    rounds: int = Field(
        1, ge=1, le=MOST_DRAWS, description="publish, train on from there, publish again"
    )
    step: float = Field(1.0, gt=0, le=LARGEST_RATE, description="of a round's latents, how much")
    momentum: float = Field(0.0, ge=0, lt=1, description="of the last round that goes on")
    clip: float = Field(1.0, gt=0, le=LARGEST_RATE, description="gaussian: the longest latents")
    radius: float = Field(
        1.0, gt=0, le=LARGEST_RATE, description="exponential: the largest point of the grid"
    )
    points: int = Field(33, ge=2, le=MOST_POINTS, description="exponential: of the grid")
    bandwidth: float = Field(
        0.25, gt=0, le=LARGEST_RATE, description="exponential: b, of the density estimate"
    )
    window: float | None = Field(
        None, gt=0, le=LARGEST_RATE, description="exponential: its width; the bandwidth by default"
    )
    retries: int | None = Field(
        None,
        ge=2,
        le=1000,
        description="publish the best of so many runs, in the mean, by public labels; one round",
    )

    @property
    def grid(self) -> ParameterGrid:
        """The fixed public grid."""
        return ParameterGrid(self.radius, self.points, self.bandwidth, self.window)

    def misfits(self) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        given = self.model_fields_set
        of_grids = {"radius", "points", "bandwidth", "window"} & given
        of_files = {"kept", "codebook_bits", "residual_bits"} & given
        widest = 2 * self.radius
        return {
            "pg.clip: only for mechanism gaussian": self.mechanism != "gaussian"
            and "clip" in given,
            "pg.radius, pg.points, pg.bandwidth, pg.window: only for mechanism exponential": (
                self.mechanism != "exponential" and bool(of_grids)
            ),
            "pg.kept, pg.codebook_bits, pg.residual_bits: only for publisher pgc": (
                self.publisher != "pgc" and bool(of_files)
            ),
            "pg.map: publisher pgp has groups, and publisher pgc weights or groups": (
                self.publisher == "pgp" and self.map != "groups"
            )
            or (self.publisher == "pgc" and self.map not in ("weights", "groups")),
            "pg.latents and a pg.map other than weights belong together": (self.latents is None)
            != (self.map == "weights"),
            "pg.public_runs and map directions belong together": (self.public_runs > 0)
            != (self.map == "directions"),
            "pg.public_runs: fewer trainings than directions": self.map == "directions"
            and self.public_runs < (self.latents or 0),
            "pg.retries: a selection is made once; use rounds = 1": self.retries is not None
            and self.rounds > 1,
            "pg.bandwidth, pg.window: wider than the whole grid": max(
                self.bandwidth, self.window or 0
            )
            > widest,
        }
