"""Pictures of nothing: random shapes, curves and clouds, for a teacher to label.

Dead leaves (Lee, Mumford and Huang 2001): a few layers painted over each other, back to front.
One family for all data sets; nothing in it was measured on any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.features.basis import Basis
from stillroom.randomness import Name, integers, normals, uniforms

Floats = npt.NDArray[np.float32]

LAYERS = 6
"""A picture has one to so many layers."""
BLACK_GROUND, MIRRORED = 0.7, 0.5
"""Shares of the pictures: on black ground, and mirrored left to right."""
OUTLINED, CUT_OUT, PATTERNED = 0.15, 0.15, 0.5
"""Shares of the layers: drawn by their outline, cut out to black, filled with a pattern."""
SHAPES, POLYGONS, CURVES, CLOUDS, ANYTHING = range(5)
"""What a layer is made of; half of the pictures have layers of one kind only."""
SIDES, CURVE_POINTS, LOW_FREQUENCIES = 6, 28, 40
BLOCK = 500


def structured_queries(count: int, shape: Sequence[int], *, seed: int) -> Floats:
    """Random pictures in [0, 1], (count, *shape); the same ones for the same seed.

    Guarantee: sees no record at all.

    Args:
        count: how many.
        shape: (height, width) or (height, width, channels).
        seed: of the draws.

    Raises:
        BadInput: the shape is not a picture's, or the count is below 0.

    >>> structured_queries(3, (8, 8), seed=7).shape
    (3, 8, 8)
    """
    if len(shape) not in (2, 3) or min(shape) < 1 or min(shape[:2]) < 4 or count < 0:
        raise BadInput(
            f"{count} random pictures of shape {tuple(shape)}",
            where="structured queries",
            why="shapes are drawn on pictures of at least 4x4",
            remedy="give records that are pictures, or ask for samples of a sketch alone",
        )
    channels = shape[2] if len(shape) == 3 else 1
    made = np.empty((count, shape[0], shape[1], channels), dtype=np.float32)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        made[start : start + size] = _Block(size, shape[0], shape[1], channels, seed, start).paint()
    return made.reshape(count, *shape)


class _Block:
    """Some pictures that are painted together, (pictures, height, width, channels)."""

    def __init__(
        self, size: int, height: int, width: int, channels: int, seed: int, start: int
    ) -> None:
        self._size, self._channels, self._seed, self._start = size, channels, seed, start
        self._pixel = 2 / max(height, width)
        rows, columns = np.mgrid[:height, :width].astype(np.float32)
        y = (rows - (height - 1) / 2) * np.float32(self._pixel)
        x = (columns - (width - 1) / 2) * np.float32(self._pixel)
        mirrored = self._even("mirrored") < MIRRORED
        self._y = np.broadcast_to(y, (size, height, width))
        self._x = np.where(_pixels(mirrored), np.abs(x), x)
        self._basis = Basis(height, width, min(LOW_FREQUENCIES, height * width))

    def paint(self) -> Floats:
        """Layer over layer on a ground, and a contrast for the whole."""
        colour = _pixels(self._even("ground", high=0.8, each=self._channels))
        ground = np.clip(colour * (1 + 0.5 * self._cloud("ground cloud"))[..., None], 0, 1)
        black = self._even("black ground") < BLACK_GROUND
        picture = np.where(_pixels(black)[..., None], np.float32(0), ground)
        layers = 1 + integers(self._seed, "layers", self._start, size=self._size, below=LAYERS)
        palette = integers(self._seed, "palette", self._start, size=self._size, below=2 * CLOUDS)
        pattern = self._cloud("pattern")
        for layer in range(int(layers.max(initial=0))):
            which = np.flatnonzero(layers > layer)
            drawn = integers(self._seed, "kind", layer, self._start, size=self._size, below=CLOUDS)
            kinds = np.where(palette < CLOUDS, palette, drawn)
            for kind, cover in enumerate((self._shape, self._polygon, self._curve, self._blob)):
                some = which[kinds[which] == kind]
                inside = self._edge(cover(some, layer), some, layer)
                value = self._levels(pattern, some, layer)
                picture[some] += inside[..., None] * (value - picture[some])
        gamma = np.exp(0.4 * self._normal("gamma"))
        contrasted: Floats = np.clip(picture, 0, 1) ** _pixels(gamma)[..., None]
        return contrasted

    def _even(
        self, *names: Name, low: float = 0.0, high: float = 1.0, each: int | None = None
    ) -> Floats:
        size = self._size if each is None else (self._size, each)
        drawn = uniforms(self._seed, *names, self._start, size=size)
        return (low + (high - low) * drawn).astype(np.float32)

    def _normal(self, *names: Name, each: int | None = None) -> Floats:
        size = self._size if each is None else (self._size, each)
        return normals(self._seed, *names, self._start, size=size).astype(np.float32)

    def _cloud(self, *names: Name) -> Floats:
        """A smooth random field of mean 0 and variance 1, rougher in some pictures."""
        fall = self._even(*names, "fall", low=0.5, high=2.0)[:, None]
        rank = 1 + np.arange(self._basis.count, dtype=np.float32)
        drawn = self._normal(*names, each=self._basis.count) * rank ** -(fall / 2)
        drawn[:, 0] = 0
        drawn /= np.sqrt((drawn**2).sum(axis=1, keepdims=True)) + 1e-6
        matrix = self._basis.matrix.astype(np.float32)
        field = drawn @ (matrix * np.float32(math.sqrt(matrix.shape[1])))
        return field.reshape(self._size, self._basis.height, self._basis.width)

    def _turned(self, some: npt.NDArray[np.int64], layer: int, far: float) -> tuple[Floats, Floats]:
        """Coordinates around a random centre, in a random direction; upright half of the time."""
        angle = self._even("angle", layer, high=2 * math.pi)[some]
        angle = np.where(self._even("upright", layer)[some] < 0.5, 0, angle)
        centre = far * self._normal("centre", layer, each=2)[some]
        y, x = self._y[some] - _pixels(centre[:, 0]), self._x[some] - _pixels(centre[:, 1])
        cos, sin = _pixels(np.cos(angle)), _pixels(np.sin(angle))
        return cos * y - sin * x, sin * y + cos * x

    def _shape(self, some: npt.NDArray[np.int64], layer: int) -> Floats:
        """Tapered super-ellipses, from lozenges to boxes: how deep a pixel is inside."""
        y, x = self._turned(some, layer, 0.3)
        high = _pixels(np.exp(self._even("high", layer, low=-2.5, high=0.0))[some])
        wide = _pixels(np.exp(self._even("wide", layer, low=-2.5, high=0.0))[some])
        taper = _pixels(self._even("taper", layer, low=-0.6, high=0.6)[some])
        power = _pixels(np.exp(self._even("power", layer, low=0.0, high=2.1))[some])
        down = y / high
        across = x / (wide * np.clip(1 + taper * down, 0.2, 2))
        radius = (np.abs(down) ** power + np.abs(across) ** power + 1e-9) ** (1 / power)
        depth: Floats = (1 - radius) * np.minimum(high, wide)
        return depth

    def _polygon(self, some: npt.NDArray[np.int64], layer: int) -> Floats:
        """Convex polygons of three to six sides: how deep a pixel is inside."""
        y, x = self._turned(some, layer, 0.3)
        sides = 3 + integers(self._seed, "sides", layer, self._start, size=self._size, below=4)
        jitter = self._even("jitter", layer, each=SIDES)[some]
        away = np.exp(self._even("away", layer, low=-2.0, high=0.0, each=SIDES))[some]
        depth = np.full(y.shape, np.inf, dtype=np.float32)
        for side in range(SIDES):
            angle = 2 * math.pi * (side + 0.7 * jitter[:, side]) / sides[some].astype(np.float32)
            own = _pixels(away[:, side]) - _pixels(np.cos(angle)) * y - _pixels(np.sin(angle)) * x
            depth = np.where(_pixels(side < sides[some]), np.minimum(depth, own), depth)
        return depth

    def _curve(self, some: npt.NDArray[np.int64], layer: int) -> Floats:
        """Curves that bend, wave and may have a corner, of any thickness."""
        at = np.linspace(-1, 1, CURVE_POINTS, dtype=np.float32)
        bend = self._normal("bend", layer, each=5)[some][..., None]
        heading = math.pi * bend[:, 0] + 1.5 * bend[:, 1] * at + bend[:, 2] * at**2
        heading += bend[:, 3] * np.sin(4 * at + bend[:, 4])
        corner = self._even("corner", layer, each=3)[some][..., None]
        broken = (corner[:, 0] < 0.4) & (at > 2 * corner[:, 1] - 1)
        heading += np.where(broken, (2 * corner[:, 2] - 1) * math.pi, 0)
        path = np.cumsum(np.stack([np.sin(heading), np.cos(heading)]), axis=2) / CURVE_POINTS
        long = self._even("long", layer, low=0.5, high=3.0)[some][:, None]
        centre = 0.25 * self._normal("centre", layer, each=2)[some]
        path = long * (path - path.mean(axis=2, keepdims=True)) + centre.T[..., None]
        near = np.full(self._x[some].shape, np.inf, dtype=np.float32)
        x, y = self._x[some], self._y[some]
        for point in range(CURVE_POINTS):
            down, across = y - _pixels(path[0, :, point]), x - _pixels(path[1, :, point])
            np.minimum(near, down * down + across * across, out=near)
        thick = np.exp(self._even("thick", layer, low=-3.2, high=-1.5))[some]
        depth: Floats = _pixels(thick) - np.sqrt(near)
        return depth

    def _blob(self, some: npt.NDArray[np.int64], layer: int) -> Floats:
        """Where a cloud is dense."""
        level = self._even("level", layer, low=-0.5, high=1.5)[some]
        depth: Floats = 0.3 * (self._cloud("blob", layer)[some] - _pixels(level))
        return depth

    def _edge(self, depth: Floats, some: npt.NDArray[np.int64], layer: int) -> Floats:
        """How much a layer covers a pixel, from 0 to 1: its edge is one to three pixels soft."""
        line = np.exp(self._even("line", layer, low=-3.5, high=-2.0))[some]
        outlined = self._even("outlined", layer)[some] < OUTLINED
        depth = np.where(_pixels(outlined), _pixels(line) - np.abs(depth), depth)
        soft = self._pixel * self._even("soft", layer, low=1.0, high=3.0)[some]
        cover: Floats = np.clip(depth / _pixels(soft) + 0.5, 0, 1)
        return cover

    def _levels(self, pattern: Floats, some: npt.NDArray[np.int64], layer: int) -> Floats:
        """The colours of a layer: even, or with the picture's cloud, stripes and grain."""
        colour = self._even("colour", layer, low=0.15, high=1.0, each=self._channels)[some]
        colour *= (self._even("cut out", layer)[some] >= CUT_OUT)[:, None]
        strength = self._even("strength", layer, low=-1.0, high=1.0, each=3)[some]
        strength *= (self._even("patterned", layer)[some] < PATTERNED)[:, None]
        wave = self._normal("wave", layer, each=3)[some] * np.float32(2 / self._pixel / 3)
        phase = _pixels(wave[:, 0]) * self._y[some] + _pixels(wave[:, 1]) * self._x[some]
        stripes = np.sin(phase + _pixels(wave[:, 2]))
        change = 0.5 * _pixels(strength[:, 0]) * pattern[some]
        change += 0.4 * _pixels(np.maximum(strength[:, 1], 0)) * stripes
        value = _pixels(colour) * (1 + change)[..., None]
        return np.clip(value, 0, 1)


def _pixels(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    """One value per picture (and channel), to be spread over its pixels."""
    return values[:, None, None]  # type: ignore[return-value]
