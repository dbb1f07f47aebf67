"""The numbers of RONA as published: how often Algorithm 1 calls the teacher, and what is paid."""

from __future__ import annotations

from dataclasses import dataclass

from stillroom.errors import BadInput
from stillroom.gate import GaussianAnswers, Mechanism, Unprotected
from stillroom.methods.rona.section import PublishedSection, RonaSection
from stillroom.sources import Request
from stillroom.vocabulary import Unit

STEPS = 1 << 20
"""Grid units of the bound."""
HINTS, OUTPUTS, LOSSES = "hints", "outputs", "losses"


@dataclass(frozen=True)
class PublishedPlan:
    """What Algorithm 1 is told beforehand; all of it public.

    Args:
        rona: T_h, R, T_s, T_d, S, S' and the rest.
        published: the paper's noise, bound and reading.

    >>> rona = RonaSection.of(hint_epochs=40, rounds=5, distillation_epochs=8, batch=512)
    >>> plan = PublishedPlan(rona, PublishedSection())
    >>> plan.calls(40_000), plan.claimed_calls(40_000)
    (3200, 3125)
    """

    rona: RonaSection
    published: PublishedSection

    @property
    def literal(self) -> bool:
        """Whether noise is added to a batch loss, as printed."""
        return self.published.reading == "literal"

    @property
    def temperature(self) -> float:
        """Softens the probabilities."""
        return self.rona.temperature or 3.0

    @property
    def layers(self) -> tuple[int, int]:
        """The teacher's hint layer and the student's guided layer, counted from 1."""
        return self.rona.hint_layer or 1, self.rona.guided_layer or 1

    @property
    def _epochs(self) -> int:
        return self.rona.hint_epochs + self.rona.rounds * self.rona.distillation_epochs

    def asked(self, public: int) -> int:
        """How many of the public samples are x_q.

        Raises:
            BadInput: they do not fill a batch.
        """
        asked = int(self.rona.queries * public)
        if asked < self.rona.batch:
            raise BadInput(
                f"{asked} queries do not fill a batch of {self.rona.batch}",
                where="queries, batch",
                why="every call is paid for as a whole batch",
                remedy="use a smaller batch, or more public samples",
            )
        return asked

    def batches(self, public: int) -> int:
        """Batches in an epoch: the inner loops run from 0 to |x_q| / S, inclusive."""
        return self.asked(public) // self.rona.batch + 1

    def calls(self, public: int) -> int:
        """How often privacy_sanitize is executed."""
        return self._epochs * self.batches(public)

    def claimed_calls(self, public: int) -> int:
        """The paper's T = (T_h + R T_d) |x_q| / S."""
        return self._epochs * self.asked(public) // self.rona.batch

    def requests(
        self, public: int, hint_width: int, classes: int, *, unit: Unit = Unit.RECORD
    ) -> list[Request]:
        """What `train` must be given a passage for: outputs, hints, and noise on losses.

        Where the budget is short, distillation ends early and not the hints.

        Args:
            public: how many public samples there are.
            hint_width: numbers in one hint, see `published.hint_width`.
            classes: numbers in one output.
            unit: whom the block is paid for.
        """
        hints = self.rona.hint_epochs * self.batches(public)
        outputs = self.calls(public) - hints
        stages = {OUTPUTS: (classes, outputs), HINTS: (hint_width, hints)}
        requests = [
            Request.fixed(
                name,
                self._mechanism(name, self.rona.batch * width, unit),
                count,
                wide=name == HINTS,
            )
            for name, (width, count) in stages.items()
            if count
        ]
        if self.literal:
            noise = GaussianAnswers(self.published.sigma * STEPS, 1, STEPS**2, unit)
            requests.append(Request.fixed(LOSSES, noise, self.calls(public)))
        return requests

    def _mechanism(self, name: str, width: int, unit: Unit) -> Mechanism:
        if self.literal:
            why = f"RONA as published: a student's gradient uses the teacher's {name} as they are"
            return Unprotected(width, why, unit)
        return GaussianAnswers(self.published.sigma * STEPS, width, 4 * STEPS**2, unit)
