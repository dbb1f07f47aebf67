"""What a method hands over when it is done: artefacts, where they came from, what paid for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Ledger
from stillroom.release.artefacts import KINDS, metadata
from stillroom.release.compact import ABOUT, described, packed_tensors
from stillroom.release.compact_parts import COMPACT
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.files import ARTEFACT
from stillroom.release.generator import NETWORK, ReleasedGenerator, states_of
from stillroom.release.model import ReleasedModel, checked_onnx
from stillroom.release.sections.compression import CompressionReport
from stillroom.release.sections.controls import Control
from stillroom.release.sections.evaluation import Evaluation
from stillroom.release.sections.published import NO_CLAIM, Claim
from stillroom.release.sections.samples import Sheet
from stillroom.vocabulary import Pair, Unit, check_delta

MODES = ("certified", "as-published")
TUNING = ("none", "public", "charged", "undeclared")
STANDINGS = ("checked", "assumed", "failed")
PARTY = "data"
"""The name of the only party."""


@dataclass(frozen=True, eq=False)
class Artefact:
    """Something that is released: weights and what they are.

    Assumes: it saw nothing of the sensitive records but what the record's blocks paid for.

    Args:
        name: of its files, without their ends.
        kind: classifier, generator or parameters.
        about: what it is, in one line.
        parameters: how many trained numbers it has.
        tensors: everything it has learned, by name.
        onnx: makes its ONNX file, where it is run.
        states: what else its kind states; for a classifier shape, classes, columns and pictures.

    Raises:
        BadInput: the parts do not fit together.
    """

    name: str
    kind: str
    about: str
    parameters: int
    tensors: Mapping[str, npt.NDArray[Any]]
    onnx: Callable[[], bytes] | None = None
    states: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS or not ARTEFACT.fullmatch(f"{self.name}.onnx"):
            raise unfit(
                f"an artefact of unknown kind {self.kind!r}, or without a plain name",
                f"use one of: {', '.join(KINDS)}; name it by small letters, digits, - and _",
            )
        if self.kind == "generator":
            _refuse_odd_generator(self.states)
        runs = self.kind == "classifier" or self.states.get("make") == NETWORK
        if runs != (self.onnx is not None):
            raise unfit(
                "an ONNX file belongs to a classifier or a generator network, and to nothing else",
                "hand over what it runs as",
            )
        if not all(np.isfinite(tensor).all() for tensor in self.tensors.values()):
            raise unfit("the weights are not all finite numbers", "lower the learning rate")

    def files(self) -> dict[str, bytes]:
        """Its files, by name.

        Raises:
            NumericalDoubt: the ONNX graph gives other answers than the model.
        """
        from safetensors.numpy import save

        said = metadata(kind=self.kind, about=self.about, parameters=self.parameters, **self.states)
        # One entry: the order of several is not fixed, and equal models should be equal files.
        weights = bytes(save(dict(self.tensors), metadata={"stillroom": said}))
        graph = {} if self.onnx is None else {f"{self.name}.onnx": self.onnx()}
        return {f"{self.name}.safetensors": weights, **graph}


def _refuse_odd_generator(states: Mapping[str, Any]) -> None:
    try:
        states_of(states)
    except ValueError as error:
        raise unfit(str(error), "hand over a generator by `generator_artefact`") from None


def classifier(
    model: ReleasedModel,
    classes: tuple[str, ...],
    columns: tuple[str, ...] | None = None,
    name: str = "model",
    pictures: Mapping[str, Any] | None = None,
) -> Artefact:
    """A classifier as an artefact.

    Args:
        model: what is released; a `LinearModel`, a `TorchModel`, a `CompressedModel`, or anything
            alike.
        classes: the names of the classes.
        columns: the names of a record's features, where the records have some; public.
        name: of its files.
        pictures: what pictures of any size and mode are brought to before it sees them, as
            `PictureForm.to_json` says it.

    Raises:
        BadInput: the model has another number of outputs, or a weight is not finite.
    """
    if model.outputs != len(classes):
        raise unfit(
            f"the model gives {model.outputs} scores per record, there are {len(classes)} classes",
            "hand over the model that belongs to these classes",
        )
    return Artefact(
        name,
        "classifier",
        model.about,
        model.parameters,
        model.tensors(),
        lambda: checked_onnx(model, classes),
        {"shape": model.shape, "classes": classes, "columns": columns, "pictures": pictures},
    )


def generator_artefact(
    generator: ReleasedGenerator, classes: tuple[str, ...], name: str = "generator"
) -> Artefact:
    """A generator as an artefact.

    Args:
        generator: what is released; a `SketchGenerator`, a `NetworkGenerator`, or anything alike.
        classes: the names of the classes.
        name: of its files.

    Raises:
        BadInput: a number of it is not finite.
    """
    network = generator.states["make"] == NETWORK

    def onnx() -> bytes:
        content = generator.checked_onnx()
        assert content is not None
        return content

    return Artefact(
        name,
        "generator",
        generator.about,
        generator.parameters,
        generator.tensors(),
        onnx if network else None,
        {"shape": generator.shape, "classes": classes, **generator.states},
    )


def compact_artefact(model: CompressedModel, of: str = "model", name: str = COMPACT) -> Artefact:
    """The compact file of a classifier, as an artefact of its own.

    Args:
        model: the classifier.
        of: the name of its artefact.
        name: of the compact file.
    """
    return Artefact(
        name,
        "parameters",
        ABOUT,
        model.kept,
        packed_tensors(model.tensors(), model.codes),
        states={"make": COMPACT, "of": of, "tensors": described(model.codes)},
    )


@dataclass(frozen=True, eq=False)
class Party:
    """Whose records were used.

    Args:
        name: unique within the release; `data` where it is the only one.
        ledger: the ledger of its sensitive data.
        blocks: the row numbers of every block of this release, training and evaluation.
    """

    name: str
    ledger: Ledger
    blocks: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ReleaseRecord:
    """A finished release with everything its certificate has to say.

    Assumes: artefacts and samples saw nothing of the sensitive records but what the blocks of the
    parties paid for.

    Args:
        method: the method's name.
        mode: certified or as-published.
        artefacts: what is released.
        recipe: the recipe's text.
        parties: whose records were used, each with its own ledger.
        unit: whom the headline protects.
        delta: the recipe's own delta.
        assumptions: name -> "checked: how", "assumed: ..." or "failed: ...".
        tuning: none, public, charged or undeclared (K8).
        public_knowledge: what public things were used.
        sections: what the sections of the certificate are made of, by name; of a section that is
            not in the registry its body, under `package:name`.
        warnings: further sentences a reader of the certificate must see.
        asked: the epsilon the recipe asks for.
        facts: what else the method's statements rest on, by name.
        unproven: pairs that the way the data were split does not support, whatever was drawn.
        package: where the method came from.
        versions: of packages whose methods or sections are used, beside this one's.

    Raises:
        BadInput: the parts do not fit together.
        DoesNotVerify: an assumption failed.
    """

    method: str
    mode: str
    artefacts: tuple[Artefact, ...]
    recipe: str
    parties: tuple[Party, ...]
    unit: Unit
    delta: float
    assumptions: Mapping[str, str]
    tuning: str
    public_knowledge: tuple[str, ...]
    sections: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    asked: float | None = None
    facts: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    unproven: tuple[Pair, ...] = ()
    package: str = "stillroom"
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.mode not in MODES:
            raise unfit(f"unknown mode {self.mode!r}", f"use one of: {', '.join(MODES)}")
        if self.tuning not in TUNING:
            raise unfit(f"unknown tuning {self.tuning!r}", f"use one of: {', '.join(TUNING)}")
        if any(party.ledger.promises.unit is not self.unit for party in self.parties):
            raise unfit(f"the ledger does not protect each {self.unit}", "use the ledger's unit")
        if len({party.ledger.purpose for party in self.parties}) != 1:
            raise unfit("ledgers for several purposes, or none", "use ledgers for one purpose")
        check_assumptions(self.assumptions, "assumptions")


def classifier_record(
    *,
    model: ReleasedModel,
    classes: tuple[str, ...],
    evaluation: Evaluation | None,
    controls: Sequence[Control] = (),
    claim: Claim = NO_CLAIM,
    compression: CompressionReport | None = None,
    samples: npt.NDArray[Any] | None = None,
    columns: tuple[str, ...] | None = None,
    pictures: Mapping[str, Any] | None = None,
    generator: ReleasedGenerator | None = None,
    **core: Any,
) -> ReleaseRecord:
    """The record of the ordinary case: one classifier and what stands beside it.

    Args:
        model, classes, columns, pictures: as `classifier` takes them; of a `CompressedModel` the
            compact file is released beside it.
        evaluation: what a test counted, if there was one.
        controls: other models on the same test, each of them paid for where it is protected; a
            private one only for benchmark or audit, with a public test.
        claim: what the method's paper publishes, and whether it holds.
        compression: teacher and released model measured side by side.
        samples: pictures drawn from a sanitised sketch or generator, for the card, as `Sheet.of`
            takes them.
        generator: what anyone may draw records from, released beside the classifier.
        core: everything else that `ReleaseRecord` takes.
    """
    more = () if generator is None else (generator_artefact(generator, classes),)
    compact = (compact_artefact(model),) if isinstance(model, CompressedModel) else ()
    return ReleaseRecord(
        artefacts=(classifier(model, classes, columns, pictures=pictures), *more, *compact),
        sections={
            "published": claim,
            "evaluation": evaluation,
            "controls": controls or None,
            "compression": compression,
            "samples": None if samples is None else Sheet.of(samples),
        },
        **core,
    )


def check_assumptions(assumptions: Mapping[str, str], where: str) -> None:
    """Refuse an assumption that failed, or that does not say how it stands."""
    for name, text in assumptions.items():
        standing = text.partition(":")[0]
        if standing not in STANDINGS:
            raise unfit(
                f"the assumption {name!r} does not say how it stands",
                f"begin its text with one of: {', '.join(s + ':' for s in STANDINGS)}",
            )
        if standing == "failed":
            raise DoesNotVerify(
                f"the assumption {name!r} failed",
                where=where,
                why="the guarantee rests on it, so no epsilon can be vouched for",
                remedy="mend what the assumption names and release again",
            )


def unfit(what: str, remedy: str) -> BadInput:
    return BadInput(
        what, where="release", why="a certificate must describe the model it is for", remedy=remedy
    )
