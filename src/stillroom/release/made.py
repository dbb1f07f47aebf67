"""What a method hands over when it is done: a model, where it came from, what it was paid with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Ledger
from stillroom.release.compression import CompressionReport
from stillroom.release.controls import MODES, NO_CLAIM, Claim, Control
from stillroom.release.evaluation import Evaluation
from stillroom.release.model import ReleasedModel
from stillroom.release.samples import check_samples
from stillroom.vocabulary import Pair, Unit, check_delta

TUNING = ("none", "public", "charged", "undeclared")
STANDINGS = ("checked", "assumed", "failed")


@dataclass(frozen=True, eq=False)
class Made:
    """A finished model with everything its certificate has to say.

    Assumes: `model` and `samples` saw nothing of the sensitive records but what `blocks` paid for.

    Args:
        method: the method's name.
        mode: certified or as-published.
        model: what is released; a `LinearModel`, a `TorchModel`, or anything alike.
        classes: the names of the classes.
        recipe: the recipe's text.
        ledger: the ledger of the sensitive data.
        blocks: the row numbers of every block of this release, training and evaluation.
        unit: whom the headline protects.
        delta: the recipe's own delta.
        assumptions: name -> "checked: how", "assumed: ..." or "failed: ...".
        tuning: none, public, charged or undeclared (K8).
        public_knowledge: what public things were used.
        evaluation: what a test counted, if there was one.
        warnings: further sentences a reader of the certificate must see.
        asked: the epsilon the recipe asks for.
        facts: what else the method's statements rest on, by name.
        unproven: pairs that the way the data were split does not support, whatever was drawn.
        samples: pictures drawn from a sanitised sketch, for the card: (n, H, W) or (n, H, W, 3),
            uint8, or floats from 0 to 1.
        compression: teacher and released model measured side by side.
        controls: other models on the same test, each of them paid for where it is protected; a
            private one only for benchmark or audit, with a public test.
        claim: what the method's paper publishes, and whether it holds.
        columns: the names of a record's features, where the records have some; public.

    Raises:
        BadInput: the parts do not fit together.
        DoesNotVerify: an assumption failed.
    """

    method: str
    mode: str
    model: ReleasedModel
    classes: tuple[str, ...]
    recipe: str
    ledger: Ledger
    blocks: tuple[int, ...]
    unit: Unit
    delta: float
    assumptions: Mapping[str, str]
    tuning: str
    public_knowledge: tuple[str, ...]
    evaluation: Evaluation | None
    warnings: tuple[str, ...] = ()
    asked: float | None = None
    facts: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    unproven: tuple[Pair, ...] = ()
    samples: npt.NDArray[Any] | None = None
    compression: CompressionReport | None = None
    controls: tuple[Control, ...] = ()
    claim: Claim = NO_CLAIM
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.mode not in MODES:
            raise _unfit(f"unknown mode {self.mode!r}", f"use one of: {', '.join(MODES)}")
        if self.tuning not in TUNING:
            raise _unfit(f"unknown tuning {self.tuning!r}", f"use one of: {', '.join(TUNING)}")
        if self.unit is not self.ledger.promises.unit:
            raise _unfit(f"the ledger does not protect each {self.unit}", "use the ledger's unit")
        if self.model.outputs != len(self.classes):
            raise _unfit(
                f"the model gives {self.model.outputs} scores a record, there are "
                f"{len(self.classes)} classes",
                "hand over the model that belongs to these classes",
            )
        if not all(np.isfinite(tensor).all() for tensor in self.model.tensors().values()):
            raise _unfit("the weights are not all finite numbers", "lower the learning rate")
        if self.samples is not None:
            check_samples(self.samples)
        check_assumptions(self.assumptions, "assumptions")


def check_assumptions(assumptions: Mapping[str, str], where: str) -> None:
    """Refuse an assumption that failed, or that does not say how it stands."""
    for name, text in assumptions.items():
        standing = text.partition(":")[0]
        if standing not in STANDINGS:
            raise _unfit(
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


def _unfit(what: str, remedy: str) -> BadInput:
    return BadInput(
        what, where="release", why="a certificate must describe the model it is for", remedy=remedy
    )
