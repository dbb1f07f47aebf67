"""What a release is compared with: other models on the same test, and the paper's own claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stillroom.errors import BadInput
from stillroom.release.evaluation import tables_in
from stillroom.release.files import number, spelled

BASE = "Base"
"""The paper's word for the same student trained on public labels alone."""
MODES = ("certified", "as-published")
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


@dataclass(frozen=True)
class Claim:
    """What the paper publishes, and whether it holds.

    Args:
        epsilon: the paper's own figure; None where it has none for this case.
        status: whether it holds and why, in one sentence.

    Raises:
        BadInput: the figure is not a positive number, or nothing is said of its standing.
    """

    epsilon: float | None
    status: str

    def __post_init__(self) -> None:
        if not (self.epsilon is None or self.epsilon > 0) or not self.status.strip():
            raise BadInput(
                "a claim needs an epsilon above 0, or none, and a word on whether it holds",
                where="claim",
                why="a figure without its standing would be taken for a guarantee",
                remedy='write for instance Claim(7.68, "does not hold: ...")',
            )

    def to_json(self) -> dict[str, Any]:
        """The claim for the certificate."""
        return {"epsilon": spelled(self.epsilon), "status": self.status}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Claim:
        """The claim that `to_json` wrote."""
        told = body["epsilon"]
        return cls(None if told is None else number(told), body["status"])


NO_CLAIM = Claim(None, "none: no claim was handed over")


def check_controls(
    controls: Sequence[Control],
    purpose: str,
    blocks: Sequence[Mapping[str, Any]],
    *,
    protected: bool | None,
) -> list[dict[str, Any]]:
    """The controls for the certificate.

    Guarantee: no figure of a model that saw sensitive records without protection leaves with a
    release, or where the test records are sensitive: the noise on its counts hides who is tested,
    not who it was trained on.
    Where the test records are sensitive, every figure has an answer of the blocks that paid for it.

    Args:
        controls: the controls.
        purpose: what the ledger is for.
        blocks: what was drawn, as a certificate says it.
        protected: whether the evaluation came through the gate; None where there is none.

    Raises:
        BadInput: a control may not stand here.
    """
    if controls and protected is None:
        raise BadInput(
            "controls need an evaluation",
            where="controls",
            why="a figure beside no figure compares nothing",
            remedy="measure the released model on the same test, or leave the controls out",
        )
    for control in controls:
        if control.private and (protected or purpose not in _EXACT_PURPOSES):
            raise BadInput(
                f"the control {control.name!r} saw sensitive records without protection",
                where="controls",
                why="its accuracy tells about those records, and nothing paid for that",
                remedy="leave it out; measure it on a ledger for benchmark or audit, with test "
                "records that are declared public",
            )
    if protected and tables_in(blocks)[1] < 1 + len(controls):
        raise BadInput(
            "fewer noisy tables were drawn than figures are told of sensitive test records",
            where="evaluation, controls",
            why="a figure without an answer that paid for it tells about the tested records",
            remedy="release each table through the gate, or declare the test part public",
        )
    return [control.to_json() for control in controls]


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
