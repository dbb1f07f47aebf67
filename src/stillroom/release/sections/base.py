"""What a section of the certificate is: a writer, a checker, a part of the card, and a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stillroom.release.compact_parts import COMPACT

Body = dict[str, Any]


@dataclass(frozen=True)
class Core:
    """What a section is checked against.

    Args:
        purpose: what the ledgers are for.
        blocks: what was drawn, of all parties, as the certificate says it.
        artefacts: what was released, as the certificate says it.
        sections: the sections before this one, completed.
    """

    purpose: str
    blocks: Sequence[Mapping[str, Any]]
    artefacts: Sequence[Mapping[str, Any]]
    sections: dict[str, Body] = field(default_factory=dict)


def classifier_in(artefacts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first classifier: an evaluation or a compression is about it, and `predict` runs it.

    Raises:
        ValueError: there is none.
    """
    for artefact in artefacts:
        if artefact["kind"] == "classifier":
            return artefact
    raise ValueError("no classifier was released")


def compact_in(
    artefacts: Sequence[Mapping[str, Any]], model: Mapping[str, Any]
) -> tuple[int | None, int | None]:
    """How many parameters of a classifier are kept, and the bytes of its compact file.

    Both are None where it has none.
    """
    for artefact in artefacts:
        if artefact.get("make") == COMPACT and artefact["of"] == model["name"]:
            (file,) = artefact["files"].values()
            return artefact["parameters"], file["size"]
    return None, None


@dataclass(frozen=True)
class Section:
    """A named section of the certificate.

    Args:
        name: its key in `sections`; its template is templates/sections/NAME.html.
        stated: the writer: what the releaser states, from what the record holds under this name.
        completed: the checker: the whole body that follows from what is stated and the core; None
            where there is no such section. Called without a body too, to refuse its absence.
        shown: what its template says, from the whole certificate; None where it says nothing.
        word: what of it remains the releaser's word; empty where all of it follows.
        place: where on the card it stands: among the tiles, below the model or below the warnings.
        unprotected: what it tells exactly, for the list of what is not protected (K1).
    """

    name: str
    stated: Callable[[Any], Body]
    completed: Callable[[Body | None, Core], Body | None]
    shown: Callable[[Mapping[str, Any]], dict[str, Any] | None]
    word: str = ""
    place: str = "model"
    unprotected: Callable[[Core], list[str]] = lambda core: []
