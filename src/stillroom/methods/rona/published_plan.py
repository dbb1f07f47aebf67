"""The numbers of RONA as published: what Algorithm 1 is told, and what is paid for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from stillroom.errors import BadInput
from stillroom.gate import GaussianAnswers, Mechanism, Unprotected
from stillroom.methods.plan_numbers import check_plan
from stillroom.vocabulary import Unit

STEPS = 1 << 20
"""Grid units of the bound."""
HINTS, OUTPUTS, LOSSES = "hints", "outputs", "losses"


@dataclass(frozen=True)
class Published:
    """Everything Algorithm 1 needs to know beforehand; all of it public.

    The defaults are those of the authors' demonstration for CIFAR-10.

    Args:
        hint_epochs: T_h.
        rounds: R.
        distillation_epochs: T_d, in each round.
        self_epochs: T_s, in each round.
        batch: S, queries of one call.
        self_batch: S', public samples of a step of self learning.
        queries: the share of the public samples that is asked about in an epoch.
        sigma: noise over bound.
        temperature: softens the probabilities.
        hint_layer: the teacher's block, counted from 1.
        guided_layer: the student's block, counted from 1.
        learning_rate: of Adam; the paper names no optimiser.
        bound: B; None for the running average over a stage of what an auxiliary teacher, trained
            on public samples, shows instead of the teacher.
        reading: "literal" or "residual".
        selection: how distillation selects its queries, a name in `public.selection`.
        detached: whether the divisor of Algorithm 2 is a constant; literal only.
        start_seed: of everything but the privacy noise.

    Raises:
        BadInput: a number is out of range.

    >>> Published().calls(40_000), Published().claimed_calls(40_000)
    (3200, 3125)
    """

    hint_epochs: int = 40
    rounds: int = 5
    distillation_epochs: int = 8
    self_epochs: int = 8
    batch: int = 512
    self_batch: int = 128
    queries: Fraction = Fraction(1, 2)
    sigma: Fraction = Fraction(10)
    temperature: float = 3.0
    hint_layer: int = 4
    guided_layer: int = 7
    learning_rate: float = 1e-3
    bound: float | None = None
    reading: str = "literal"
    selection: str = "k-centre"
    detached: bool = True
    start_seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", Fraction(self.queries))
        object.__setattr__(self, "sigma", Fraction(self.sigma))
        counts = ("hint_epochs", "rounds", "distillation_epochs", "self_epochs")
        sizes = ("batch", "self_batch", "hint_layer", "guided_layer")
        numbers = ("sigma", "temperature", "learning_rate")
        checks = {
            **{name: getattr(self, name) >= 0 for name in counts},
            **{name: getattr(self, name) >= 1 for name in sizes},
            **{name: 0 < getattr(self, name) < math.inf for name in numbers},
            "queries": 0 < self.queries <= 1,
            "bound": self.bound is None or 0 < self.bound < math.inf,
            "reading": self.reading in ("literal", "residual"),
        }
        check_plan(self, checks)

    def asked(self, public: int) -> int:
        """How many of the public samples are x_q.

        Raises:
            BadInput: they do not fill a batch.
        """
        asked = int(self.queries * public)
        if asked < self.batch:
            raise BadInput(
                f"{asked} queries do not fill a batch of {self.batch}",
                where="queries, batch",
                why="every call is paid for as a whole batch",
                remedy="use a smaller batch, or more public samples",
            )
        return asked

    def batches(self, public: int) -> int:
        """Batches in an epoch: the inner loops run from 0 to |x_q| / S, inclusive."""
        return self.asked(public) // self.batch + 1

    def calls(self, public: int) -> int:
        """How often privacy_sanitize is executed."""
        epochs = self.hint_epochs + self.rounds * self.distillation_epochs
        return epochs * self.batches(public)

    def claimed_calls(self, public: int) -> int:
        """The paper's T = (T_h + R T_d) |x_q| / S."""
        epochs = self.hint_epochs + self.rounds * self.distillation_epochs
        return epochs * self.asked(public) // self.batch

    def wishes(
        self,
        public: int,
        hint_width: int,
        classes: int,
        *,
        unit: Unit = Unit.RECORD,
        most: int | None = None,
    ) -> dict[str, tuple[Mechanism, int]]:
        """What `train` must be given a paid way for, by name.

        Args:
            public: how many public samples there are.
            hint_width: numbers in one hint, see `hint_width`.
            classes: numbers in one output.
            unit: whom the block is paid for.
            most: pay for no more calls than that, the earliest; all when left out.
        """
        calls = self.calls(public) if most is None else min(most, self.calls(public))
        hints = min(calls, self.hint_epochs * self.batches(public))
        stages = {HINTS: (hint_width, hints), OUTPUTS: (classes, calls - hints)}
        wishes: dict[str, tuple[Mechanism, int]] = {
            name: (self._mechanism(name, self.batch * width, unit), count)
            for name, (width, count) in stages.items()
            if count
        }
        if self.reading == "literal" and calls:
            sigma = self.sigma * STEPS
            wishes[LOSSES] = (GaussianAnswers(sigma, 1, STEPS**2, unit), calls)
        return wishes

    def _mechanism(self, name: str, width: int, unit: Unit) -> Mechanism:
        if self.reading == "literal":
            why = f"RONA as published: a student's gradient uses the teacher's {name} as they are"
            return Unprotected(width, why, unit)
        return GaussianAnswers(self.sigma * STEPS, width, 4 * STEPS**2, unit)
