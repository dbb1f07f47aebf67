"""A generator network as an artefact; like `torch_model`, it needs torch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.engine.workers import one_thread
from stillroom.errors import BadInput, NumericalDoubt
from stillroom.models import parameter_count
from stillroom.public.generators import Generator
from stillroom.release.generator import Records, about_network, network_states
from stillroom.release.graph import DRAWN, check_graph
from stillroom.release.latent import latent_rows
from stillroom.release.model import TOLERANCE
from stillroom.release.predict import session_of
from stillroom.release.strangers_model import TOGETHER
from stillroom.release.torch_model import exported
from stillroom.vocabulary import Integers

_CHECKED_RECORDS = 12


class NetworkGenerator:
    """A generator network, as it was when it was handed over.

    Assumes: without its state dict the network tells nothing about sensitive records.

    Args:
        generator: from latent numbers to records in [0, 1]; copied, and used in eval mode.
        shape: of one record as it is stored in a data set.
        full_scale: the largest value of a stored record.
        name: of the network, in the recipe.

    Raises:
        BadInput: the generator makes records of another shape.

    >>> from stillroom.public.generators import build_generator
    >>> flat = build_generator("mlp", (5,), 2, latent=3, width=8, conditional=True, seed=0)
    >>> records, classes = NetworkGenerator(flat, (5,), 255.0, "mlp").draw(7, 4, among=[1])
    >>> records.shape, classes.tolist()
    ((4, 5), [1, 1, 1, 1])
    """

    def __init__(
        self, generator: Generator, shape: tuple[int, ...], full_scale: float, name: str
    ) -> None:
        self.shape = tuple(int(size) for size in shape)
        self.about = about_network(name, conditional=generator.conditional)
        self._generator = copy.deepcopy(generator).cpu().float().eval().requires_grad_(False)
        self._stored = _Stored(self._generator, self.shape, full_scale).eval()
        self._full_scale = full_scale

    @property
    def parameters(self) -> int:
        """How many trained numbers it has."""
        return parameter_count(self._generator)

    @property
    def states(self) -> Mapping[str, Any]:
        """What its file says of it."""
        made = self._generator
        return network_states(self._full_scale, made.latent, conditional=made.conditional)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The state dict, buffers included."""
        state = self._generator.network.state_dict()
        return {name: tensor.contiguous().numpy().copy() for name, tensor in state.items()}

    def draw(
        self, seed: int, count: int, among: Sequence[int] | None = None
    ) -> tuple[Records, Integers | None]:
        """Records in units of the data, and the classes they were drawn for, if it knows any."""
        made = self._generator
        known = made.classes if made.conditional else None
        rows, classes = latent_rows(seed, count, made.latent, known, among)
        return self._drawn(rows), classes

    def checked_onnx(self) -> bytes:
        """The ONNX file: rows `x` of latent numbers and one-hot class in, `records` out.

        Guarantee: on fixed rows its records are those of the network, within 1e-4 of full scale;
        and a row alone gives the record that it gives among others.

        Raises:
            BadInput: it cannot be written, or has an operator that `sample` does not run.
            NumericalDoubt: file and network disagree.
        """
        example = torch.zeros(3, self._generator.inputs)
        content = exported(self._stored, example, list(DRAWN), "generator.onnx", {})
        try:
            check_graph(content, DRAWN)
        except ValueError as error:
            raise BadInput(
                f"the generator cannot be released: {error}",
                where="generator.onnx",
                why="`stillroom sample` runs no such file, since it may be anybody's",
                remedy="build it of plain layers, without loops and without operators of your own",
            ) from None
        made = self._generator
        known = made.classes if made.conditional else None
        rows, _ = latent_rows(0, _CHECKED_RECORDS, made.latent, known, None)
        expected, session = self._drawn(rows), session_of(content)
        for some in (slice(None), slice(0, 1)):
            (found,) = session.run(list(DRAWN), {"x": rows[some]})
            wanted, allowed = expected[some], TOLERANCE * self._full_scale
            if found.shape != wanted.shape or not np.abs(found - wanted).max() <= allowed:
                raise NumericalDoubt(
                    "the ONNX graph and the generator it was made from draw different records",
                    where="generator.onnx",
                    why="the bundle would carry another generator than the one that was certified",
                    remedy="see that it gives finite numbers and treats each row by itself, "
                    "in eval mode",
                )
        return content

    def _drawn(self, rows: npt.NDArray[np.float32]) -> Records:
        with one_thread(), torch.no_grad():
            parts = [self._stored(some) for some in torch.split(torch.from_numpy(rows), TOGETHER)]
        drawn: Records = torch.cat([torch.zeros(0, *self.shape), *parts]).numpy()
        return drawn


def refuse_unexportable_generator(name: str, released: NetworkGenerator) -> None:
    """See that an untrained generator can be released; those of the zoo can.

    Raises:
        BadInput, NumericalDoubt: it cannot.
    """
    if ":" in name:
        released.checked_onnx()


class _Stored(nn.Module):
    """From rows to records as they are stored: `AsPictures`, the other way round."""

    def __init__(self, generator: Generator, shape: tuple[int, ...], full_scale: float) -> None:
        super().__init__()
        self.generator, self._shape, self._full_scale = generator, shape, full_scale
        given = (shape[2], *shape[:2]) if len(shape) == 3 else (1,) * (len(shape) == 2) + shape
        if generator.shape != given:
            raise BadInput(
                f"the generator makes records of shape {generator.shape}, stored ones have {shape}",
                where="generator",
                why="whoever draws from it gets records as they are stored",
                remedy="build the generator for the shape that networks are given",
            )

    def forward(self, x: Tensor) -> Tensor:
        drawn = self.generator.of_rows(x) * self._full_scale
        if len(self._shape) == 3:
            return drawn.permute(0, 2, 3, 1).contiguous()
        return drawn.squeeze(1) if len(self._shape) == 2 else drawn
