"""The generator of a bundle, ready to draw from: by numpy or by ONNX Runtime, never by torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, StillroomError
from stillroom.gate.ledger.chain import canonical
from stillroom.release.artefacts import artefacts_in, main_file
from stillroom.release.files import CERTIFICATE
from stillroom.release.generator import NETWORK, Records, SketchGenerator
from stillroom.release.latent import latent_rows
from stillroom.release.manifest import does_not, parsed, read_files
from stillroom.release.sections.base import classifier_in
from stillroom.release.strangers_model import StrangersGenerator, StrangersModel
from stillroom.release.tensor_file import arrays_in
from stillroom.vocabulary import Integers

LARGEST_BASIS = 1 << 25
"""Numbers of a sketch's basis."""
LARGEST_SPREAD = 1 << 30
"""Classes times directions cubed, of a sketch: seconds for the roots of its covariances."""
MOST_CENTRES = 4096
BYTE = 255.0
"""The full scale of records that are stored as bytes."""

Drawn = tuple[Records, Integers | None]
Draw = Callable[[int, int], Drawn]
"""From a seed and a number to records and the classes they were drawn for."""


@dataclass(frozen=True)
class GeneratorBundle:
    """A bundle that has a generator, its files those of the manifest.

    Args:
        folder: the bundle.
        said: what the certificate says of the generator, and the file bears out.
        artefacts: everything that was released.
        contents: the files, by name.
    """

    folder: Path
    said: Mapping[str, Any]
    artefacts: Sequence[Mapping[str, Any]]
    contents: Mapping[str, bytes]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one record."""
        return tuple(self.said["shape"])

    @property
    def numbers(self) -> int:
        """How many numbers a sample takes, on its way in or out."""
        given: int = self.said.get("latent", 0) + len(self.said["classes"])
        return max(given, math.prod(self.shape))

    @property
    def place(self) -> Path:
        """The file that is drawn from."""
        return self.folder / main_file(self.said)

    def stored(self, drawn: Records) -> npt.NDArray[Any]:
        """Records as a data set stores them: bytes where full scale is 255, else floats.

        Raises:
            DoesNotVerify: the generator draws what is no number.
        """
        self.refuse_no_numbers(drawn)
        return np.rint(drawn).astype(np.uint8) if self.said["full_scale"] == BYTE else drawn

    def refuse_no_numbers(self, drawn: Records) -> None:
        """Refuse what a stranger's generator may draw.

        Raises:
            DoesNotVerify: the generator draws what is no number.
        """
        if not np.isfinite(drawn).all():
            raise does_not(self.place, "the generator draws values that are not finite")

    def drawer(self, among: Sequence[int] | None, stack: ExitStack) -> Draw:
        """What draws records of some classes, or of all, until the stack is closed.

        Raises:
            BadInput: ONNX Runtime is not installed, or the sketch is too large.
            DoesNotVerify: the network is none that is run here.
        """
        network = self.said["make"] == NETWORK
        return self._by_network(among, stack) if network else self._by_sketch(among)

    def classifier(self, stack: ExitStack) -> StrangersModel:
        """The bundle's classifier, until the stack is closed.

        Raises:
            BadInput: there is none, or it is for other records.
            DoesNotVerify: it is none that is run here.
        """
        try:
            said = classifier_in(self.artefacts)
            fits = all(said[name] == self.said[name] for name in ("shape", "classes"))
        except ValueError:
            fits = False
        if not fits:
            raise BadInput(
                "the bundle has no classifier for what its generator draws",
                where=str(self.folder),
                why="nobody can be asked for the classes of the samples",
                remedy="use --labels drawn, without --agreeing",
            )
        file, classes = main_file(said), len(said["classes"])
        model = StrangersModel(self.contents[file], self.folder / file, classes, "sample")
        stack.callback(model.close)
        return model

    def _by_network(self, among: Sequence[int] | None, stack: ExitStack) -> Draw:
        said, content = self.said, self.contents[self.place.name]
        network = StrangersGenerator(content, self.place, self.shape, said["full_scale"])
        stack.callback(network.close)
        classes = len(said["classes"]) if said["conditional"] else None

        def draw(seed: int, count: int) -> Drawn:
            rows, asked = latent_rows(seed, count, said["latent"], classes, among)
            return network.run(rows), asked

        return draw

    def _by_sketch(self, among: Sequence[int] | None) -> Draw:
        sketch = SketchGenerator.of(self.said, arrays_in(self.contents[self.place.name]))
        classes, centres, kept = sketch.mixture.centres.shape
        wide = classes * sketch.mixture.covariances.shape[-1] ** 3 > LARGEST_SPREAD
        if wide or kept * math.prod(self.shape) > LARGEST_BASIS or centres > MOST_CENTRES:
            raise BadInput(
                "the sketch is too large to draw from",
                where=str(self.place),
                why="a sketch from a stranger gets no more memory than pictures need",
                remedy="release one with fewer coefficients, directions and centres",
            )

        def draw(seed: int, count: int) -> Drawn:
            with np.errstate(
                all="ignore"
            ):  # a stranger's numbers; `stored` looks at what they give
                return sketch.draw(seed, count, among)

        return draw


def open_generator(folder: Path) -> GeneratorBundle:
    """The bundle in a folder and its generator.

    Raises:
        BadInput: there is no such folder, or the bundle has no generator.
        DoesNotVerify: a file was changed, or the certificate describes another generator.
    """
    _, contents = read_files(folder)
    place = folder / CERTIFICATE
    stated = parsed(contents[CERTIFICATE], place).get("artefacts")
    listed = stated if isinstance(stated, list) else []
    if not any(isinstance(one, dict) and one.get("kind") == "generator" for one in listed):
        raise BadInput(
            "the bundle has no generator",
            where=str(folder),
            why="there is nothing to draw from: its model gives classes to records, and makes none",
            remedy="release with a [sketch], or by a method that makes a generator",
        )
    try:
        found = artefacts_in(contents)
    except (StillroomError, AttributeError, LookupError, TypeError, ValueError) as error:
        told = f"the bundle does not describe its generator ({type(error).__name__})"
        raise does_not(place, told) from None
    if canonical(found) != canonical(stated):
        raise does_not(place, "certificate.json describes other artefacts than the files hold")
    said = next(one for one in found if one["kind"] == "generator")
    return GeneratorBundle(folder, said, found, contents)
