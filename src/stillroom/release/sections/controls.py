"""Section `controls`: other models on the same test, and what the sensitive data added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stillroom.errors import BadInput
from stillroom.release.sections.base import Body, Core, Section
from stillroom.release.sections.evaluation import tables_in

BASE = "Base"
"""The paper's word for the same student trained on public labels alone."""
_EXACT_PURPOSES = ("benchmark", "audit")


@dataclass(frozen=True)
class Control:
    """A model that stands beside the released one, and how good it is on the same test.

    Assumes: the accuracy is exact on test records that are declared public, or computed from noisy
    counts that came through the gate on sensitive ones.

    Args:
        name: "Base" for the same student with public labels only; else any name.
        accuracy: share of the test records it labels rightly; None where too few were tested for
            the noise.
        about: what it is, in words.
        private: it saw sensitive records without protection, like a ceiling; such a figure may
            stand on the certificate of a benchmark or an audit only, with a public test.
        public_only: it saw public data alone; Base always did.

    Raises:
        BadInput: the accuracy is no share, or the control saw both too much and nothing.

    >>> Control("Base", 0.989, "the same student, public labels only", private=False).public_only
    True
    """

    name: str
    accuracy: float | None
    about: str
    private: bool
    public_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "public_only", self.public_only or self.name == BASE)
        if self.accuracy is not None and not 0 <= self.accuracy <= 1:
            raise _no_control(self.name, "its accuracy is not between 0 and 1", "give a share")
        if self.private and self.public_only:
            raise _no_control(
                self.name,
                "it cannot have seen sensitive records and public data alone",
                "say which of the two it was",
            )

    def to_json(self) -> dict[str, Any]:
        """The control for the certificate."""
        told = None if self.accuracy is None else float(self.accuracy)
        return {**asdict(self), "accuracy": told}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Control:
        """The control that `to_json` wrote."""
        control = cls(**body)
        words = (control.name, control.about)
        proper = all(isinstance(word, str) and word for word in words)
        if not proper or {type(control.private), type(control.public_only)} != {bool}:
            raise ValueError("not a control")
        return control


def _stated(controls: Sequence[Control]) -> Body:
    return {"models": [control.to_json() for control in controls]}


def _completed(body: Body | None, core: Core) -> Body | None:
    """The controls, each of which may stand here.

    Guarantee: no figure of a model that saw sensitive records without protection leaves with a
    release, or where the test records are sensitive: the noise on its counts hides who is tested,
    not who it was trained on.
    Where the test records are sensitive, every figure has an answer of the blocks that paid for it.
    """
    if body is None:
        return None
    controls = [Control.from_json(model) for model in body["models"]]
    if "evaluation" not in core.sections:
        raise BadInput(
            "controls need an evaluation",
            where="controls",
            why="a figure beside no figure compares nothing",
            remedy="measure the released model on the same test, or leave the controls out",
        )
    protected = core.sections["evaluation"]["protected"]
    for control in controls:
        if control.private and (protected or core.purpose not in _EXACT_PURPOSES):
            raise BadInput(
                f"the control {control.name!r} saw sensitive records without protection",
                where="controls",
                why="its accuracy tells about those records, and nothing paid for that",
                remedy="leave it out; measure it on a ledger for benchmark or audit, with test "
                "records that are declared public",
            )
    if protected and tables_in(core.blocks)[1] < 1 + len(controls):
        raise BadInput(
            "fewer noisy tables were drawn than figures are told of sensitive test records",
            where="evaluation, controls",
            why="a figure without an answer that paid for it tells about the tested records",
            remedy="release each table through the gate, or declare the test part public",
        )
    return _stated(controls) if controls else None


def _unprotected(core: Core) -> list[str]:
    """Noisy counts, of controls too, were paid for."""
    models = core.sections.get("controls", {"models": []})["models"]
    if not models or core.sections["evaluation"]["protected"]:
        return []
    records = core.sections["evaluation"]["records"]
    return [f"accuracy of the models it is compared with, exact, on: {records}"] + [
        f"accuracy of {control['name']}, which saw sensitive records without protection; no "
        "epsilon of this certificate covers it"
        for control in models
        if control["private"]
    ]


def _shown(certificate: Mapping[str, Any]) -> dict[str, Any] | None:
    """The released model beside its controls, and a plain word on what sensitive data gave."""
    sections = certificate["sections"]
    if not sections.get("controls", {"models": []})["models"]:
        return None
    models, measured = sections["controls"]["models"], sections["evaluation"]
    accuracy = measured["accuracy"]
    # Noisy counts have no interval: its width would leave the noise out.
    tested = 0 if measured["protected"] else sum(map(sum, measured["confusion"]))
    known = [one for one in models if accuracy is not None and one["accuracy"] is not None]
    public = [one for one in known if one["public_only"]]
    best = max(public, key=lambda one: one["accuracy"], default=None)
    compared = [one for one in known if one["name"] == BASE][:1]
    if best is not None and best not in compared:
        compared.append(best)
    return {
        "models": models,
        "accuracy": accuracy,
        "gains": [_gain(accuracy, one, tested) for one in compared],
        "verdict": None if best is None else _verdict(_gain(accuracy, best, tested)),
        "tested": tested if public else 0,
    }


def _gain(accuracy: float, other: Mapping[str, Any], tested: int) -> dict[str, Any]:
    interval = None
    if tested:
        interval = [100 * end for end in gain(accuracy, other["accuracy"], tested)]
    points = 100 * (accuracy - other["accuracy"])
    return {"over": other["name"], "points": points, "interval": interval}


def _verdict(found: Mapping[str, Any]) -> str:
    """Beyond chance, or not; without the exact size of the test only the sign is known."""
    if found["interval"] is None:
        return "may be chance" if found["points"] > 0 else "as well"
    low, high = found["interval"]
    if low > 0:
        return "added"
    return "better" if high < 0 else "as well"


def gain(accuracy: float, other: float, tested: int) -> tuple[float, float]:
    """A two-sided 95 % interval for the difference of two accuracies.

    By Agresti and Caffo (2000): one right and one wrong answer are added to each, which keeps the
    interval honest near 0 and 1. It takes the two as tested on different records; on the same ones,
    where models tend to err together, it is wider than it need be.

    Args:
        accuracy: of the one.
        other: of the other.
        tested: how many records each was tested on.

    >>> low, high = gain(0.99, 0.98, 10_000)
    >>> round(low, 4), round(high, 4)
    (0.0066, 0.0134)
    """
    first, second = ((share * tested + 1) / (tested + 2) for share in (accuracy, other))
    spread = (first * (1 - first) + second * (1 - second)) / (tested + 2)
    reach = 1.959964 * math.sqrt(spread)
    return first - second - reach, first - second + reach


def _no_control(name: str, what: str, remedy: str) -> BadInput:
    return BadInput(
        f"the control {name!r} makes no sense: {what}",
        where="controls",
        why="the card compares the released model with it",
        remedy=remedy,
    )


SECTION = Section(
    "controls",
    _stated,
    _completed,
    _shown,
    word="how good the models are that it is compared with",
    unprotected=_unprotected,
)
