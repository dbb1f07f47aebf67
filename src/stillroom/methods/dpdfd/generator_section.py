"""The numbers of a generator: which network, how large, and how the terms of Eq. 5 weigh."""

from __future__ import annotations

from pydantic import Field

from stillroom.recipe import Section
from stillroom.recipe.section import LARGEST_RATE, MOST_DRAWS

LARGEST_GENERATOR = 4096
"""Of its width and of its latent numbers."""


class GeneratorSection(Section):
    """A network that makes the pictures the student learns from."""

    model: str = Field("conv", description="conv, mlp (rows too), or package.module:callable")
    latent: int = Field(100, ge=1, le=LARGEST_GENERATOR, description="latent numbers per picture")
    width: int = Field(64, ge=4, le=LARGEST_GENERATOR, description="feature maps, or hidden units")
    conditional: bool = Field(False, description="whether it is told the class it shall draw")
    one_hot: float = Field(
        1.0, ge=0, le=LARGEST_RATE, description="of Eq. 5: weighs how sure the student is"
    )
    alpha: float = Field(
        1.0, ge=0, le=LARGEST_RATE, description="of Eq. 5: weighs how evenly classes are drawn"
    )
    beta: float = Field(
        1.0, ge=0, le=LARGEST_RATE, description="of Eq. 5: weighs the activation before the scores"
    )
    learning_rate: float = Field(1e-3, gt=0, le=LARGEST_RATE, description="of its updates")
    steps: int = Field(400, ge=1, le=MOST_DRAWS, description="how often it is updated")
