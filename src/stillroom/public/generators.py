"""Generators: from latent numbers to pictures, or to rows of features.

Norms work within one record, never over a batch, so that a sample does not depend on its company
and the released file draws what was trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.models.build import made
from stillroom.randomness import Name, normals

SLOPE = 0.2
"""Of the leaky ReLUs."""
FIRST_SIDE = 8
"""The first feature map of a picture is at most so high and wide."""
LEAST_DOUBLINGS = 2

Shape = tuple[int, ...]


class Generator(nn.Module):
    """A network from latent numbers, and the class where it is conditional, to records in [0, 1].

    Guarantee: whatever network it holds, what comes out lies in [0, 1].

    Args:
        network: from rows of `inputs` numbers to records (n, *shape).
        shape: of a record as networks read it: (channels, height, width), or (features,).
        classes: how many there are.
        latent: how many latent numbers.
        conditional: whether a class is asked for.
    """

    def __init__(
        self, network: nn.Module, shape: Shape, classes: int, *, latent: int, conditional: bool
    ) -> None:
        super().__init__()
        self.network = network
        self.shape, self.classes = tuple(shape), classes
        self.latent, self.conditional = latent, conditional

    @property
    def inputs(self) -> int:
        """Numbers per sample: the latent ones, and one per class where it is conditional."""
        return inputs_of(self.latent, self.classes, self.conditional)

    def forward(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        """Records in [0, 1] for latent numbers (n, latent) and classes (n,).

        Raises:
            BadInput: labels are missing, or are given to a generator that takes none.
        """
        if self.conditional != (labels is not None):
            raise BadInput(
                "a conditional generator needs the class of each sample, another one takes none",
                where="generator",
                why="a sample would not be of the class it is used for",
                remedy="give labels where `conditional` is true, and only there",
            )
        if labels is not None:
            z = torch.cat([z, F.one_hot(labels, self.classes).to(z.dtype)], dim=1)
        return self.of_rows(z)

    def of_rows(self, rows: Tensor) -> Tensor:
        """Records in [0, 1] for rows (n, inputs): latent numbers, then the class as one-hot."""
        drawn: Tensor = self.network(rows).clamp(0, 1)
        return drawn


def inputs_of(latent: int, classes: int, conditional: bool) -> int:
    """How many numbers a generator takes per sample."""
    return latent + (classes if conditional else 0)


def build_generator(
    model: str,
    shape: Shape,
    classes: int,
    *,
    latent: int,
    width: int,
    conditional: bool,
    seed: int,
) -> Generator:
    """A new generator, the same for the same seed.

    Assumes: a module of one's own is trusted like any other installed code; importing it runs it.

    Args:
        model: "conv", "mlp", or "package.module:callable"; the callable takes the shape and the
            number of inputs, and gives a module from (n, inputs) to (n, *shape).
        shape: of a record as networks read it: (channels, height, width), or (features,).
        classes: how many there are.
        latent: how many latent numbers.
        width: feature maps, or hidden units; one's own network has its own.
        conditional: whether a class is asked for.
        seed: for the initial weights.

    Raises:
        BadInput: there is no such generator, or it does not give records of that shape.

    >>> digits = build_generator("conv", (1, 28, 28), 10, latent=8, width=16, conditional=True,
    ...                          seed=0)
    >>> digits(latents(7, "demo", count=5, size=8), torch.arange(5)).shape
    torch.Size([5, 1, 28, 28])
    """
    if min(latent, width, classes, *shape) < 1:
        raise BadInput(
            "a generator without latent numbers, width, classes or pixels",
            where="generator",
            why="there would be nothing to draw",
            remedy="give at least one of each",
        )
    wanted = "the shape of a record and the number of inputs"
    inputs = inputs_of(latent, classes, conditional)
    zoo = {name: partial(make, width) for name, make in GENERATORS.items()}
    network = made(model, zoo, tuple(shape), inputs, seed=seed, wanted=wanted)
    _check_shape(model, network, tuple(shape), inputs)
    return Generator(network, shape, classes, latent=latent, conditional=conditional)


def latents(seed: int, *names: Name, count: int, size: int) -> Tensor:
    """Standard normal latent numbers (count, size).

    >>> latents(7, "generator", "step", 0, count=2, size=3).shape
    torch.Size([2, 3])
    """
    return torch.from_numpy(normals(seed, *names, size=(count, size))).float()


def conv(width: int, shape: Shape, inputs: int) -> nn.Sequential:
    """A small feature map, doubled until it is a picture (after DAFL, Chen et al. 2019).

    Each step takes the nearest pixel, then a 3x3 convolution, a norm and a leaky ReLU. Chosen here:
    the norm is over the feature maps of one sample, where DAFL's is over the batch.

    Raises:
        BadInput: the records are no pictures.
    """
    if len(shape) != 3:
        raise BadInput(
            f"a generator of pictures cannot make records of shape {shape}",
            where="generator.model",
            why="its feature maps are pictures too",
            remedy='use model = "mlp"',
        )
    channels, *sides = shape
    doublings = LEAST_DOUBLINGS
    while max(sides) > FIRST_SIDE << doublings:
        doublings += 1
    sizes = [tuple(-(-side >> level) for side in sides) for level in range(doublings, -1, -1)]
    blocks = [
        nn.Linear(inputs, width * math.prod(sizes[0])),
        _Shaped((width, *sizes[0])),
        _norm(width),
        *[_doubled(width, size) for size in sizes[1:]],
        nn.Conv2d(width, channels, 3, padding=1),
        nn.Sigmoid(),
    ]
    return nn.Sequential(*blocks)


def mlp(width: int, shape: Shape, inputs: int) -> nn.Sequential:
    """Two hidden layers, for records of any shape."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LayerNorm(width),
        nn.LeakyReLU(SLOPE),
        nn.Linear(width, width),
        nn.LayerNorm(width),
        nn.LeakyReLU(SLOPE),
        nn.Linear(width, math.prod(shape)),
        _Shaped(shape),
        nn.Sigmoid(),
    )


GENERATORS: Mapping[str, Callable[[int, Shape, int], nn.Module]] = {"conv": conv, "mlp": mlp}
"""What a recipe can name: each is given its width, the shape of a record, and its inputs."""


class _Shaped(nn.Module):
    """Rows as feature maps, or as records."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape

    def forward(self, rows: Tensor) -> Tensor:
        return rows.reshape(-1, *self._shape)


def _doubled(width: int, size: tuple[int, ...]) -> nn.Sequential:
    return nn.Sequential(
        nn.Upsample(size=size),
        nn.Conv2d(width, width, 3, padding=1),
        _norm(width),
        nn.LeakyReLU(SLOPE),
    )


def _norm(width: int) -> nn.GroupNorm:
    # Four maps or more together: the first one of a small picture may have a single pixel, of
    # which a norm over one map would leave nothing.
    return nn.GroupNorm(1 if width % 4 else math.gcd(8, width // 4), width)


def _check_shape(model: str, network: nn.Module, shape: Shape, inputs: int) -> None:
    """A module of one's own is tried out before anything is paid for."""
    trained = network.training
    try:
        with torch.no_grad():
            drawn: Any = network.eval()(torch.zeros(3, inputs))
    except Exception as error:
        raise _unfit(model, f"it cannot read {inputs} numbers ({type(error).__name__})") from error
    finally:
        network.train(trained)
    if not isinstance(drawn, Tensor) or tuple(drawn.shape) != (3, *shape):
        raise _unfit(model, f"it does not give records of shape {shape}")
    if not torch.isfinite(drawn).all():
        raise _unfit(model, "it gives values that are not finite")


def _unfit(model: str, what: str) -> BadInput:
    return BadInput(
        f"the generator does not fit: {what}",
        where=model,
        why="its samples are records of the data set's shape",
        remedy="map (n, inputs) to (n, *shape); its callable is given shape and inputs",
    )
