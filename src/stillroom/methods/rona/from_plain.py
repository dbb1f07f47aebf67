"""RONA as published: source plain, one ordinary teacher, the paper's algorithm to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from stillroom.data import Split
from stillroom.gate import Passage
from stillroom.methods.outcome import Outcome, Rival
from stillroom.methods.recipe import Recipe
from stillroom.methods.rona.claims import claim_of, claimed_epsilon
from stillroom.methods.rona.plans import published_of, published_wishes
from stillroom.methods.rona.public_side import blocks_of
from stillroom.methods.rona.published import hint_width, train
from stillroom.methods.rona.road import Progress, RonaWay, Tell
from stillroom.private.plain import PlainTeacher
from stillroom.release.compression import report
from stillroom.release.controls import Claim


class FromPlain(RonaWay):
    """A student of one teacher that saw everything, in the literal or in the residual reading."""

    def __init__(self, recipe: Recipe, split: Split, run_folder: Path) -> None:
        super().__init__(recipe, split, run_folder)
        # Networks that do not fit are found before anything is paid for.
        for network in (self.student, self.public.network(self.part.auxiliary)):
            blocks_of(network, "rona")
        blocks_of(self._untrained(), "published.teacher")

    def prepare(self, tell: Tell, on_step: Progress) -> None:
        """Train the auxiliary teacher, Base and, in the clear, the teacher."""
        super().prepare(tell, on_step)
        part = self.recipe.published
        assert part is not None
        tell("training the teacher in the clear")
        self._teacher = self.public.in_the_clear(
            part.teacher, part.teacher_epochs, self.engine, on_step
        )

    @property
    def width(self) -> int:
        """Of a hint."""
        if not self.part.hint_epochs:
            return 1
        networks = blocks_of(self.student, "rona"), blocks_of(self.auxiliary, "rona")
        return hint_width(*networks, published_of(self.recipe), self.public.pictures.given)

    def follow(self, ways: Sequence[Passage], tell: Tell, on_step: Progress) -> Outcome:
        """Algorithm 1, each call of it through the gate."""
        public, plan, size = self.public, published_of(self.recipe), len(self.public.x)
        part = self.recipe.published
        assert part is not None
        names = published_wishes(self.recipe, public.classes, self.width, size)
        total = plan.calls(size)
        tell("student")
        taught = train(
            blocks_of(self.student, "rona"),
            PlainTeacher(blocks_of(self._teacher, "published.teacher")),
            blocks_of(self.auxiliary, "rona"),
            public.pictures(torch.from_numpy(np.array(public.x))),
            torch.from_numpy(np.array(self.split.public.y)),
            plan,
            dict(zip(names, ways, strict=True)),
            lambda call: on_step(call, total),
        )
        delta = self.recipe.privacy.delta
        claimed = claimed_epsilon(plan.claimed_calls(size), float(plan.sigma), delta)
        model = self.released(self.student, f"network `{self.part.student}`, a student")
        auxiliary = self.released(self.auxiliary, f"network `{self.part.auxiliary}`")
        teacher = self.released(self._teacher, "teacher")
        rivals = [
            Rival(
                "auxiliary teacher",
                "a network trained on public labels only",
                self.guesses(auxiliary),
                public_only=True,
            )
        ]
        if self.shows_ceiling:
            about = "an ordinary network that saw all records: not private"
            rivals.append(Rival("teacher", about, self.guesses(teacher), private=True))
        early = f"The budget ended early: {taught.calls} of {total} calls were paid for and made."
        return Outcome(
            model=model,
            guesses=self.guesses(model),
            assumptions={"calls": "checked: each executed call is a row of the ledger"},
            knowledge=(public.knowledge,),
            warnings=() if taught.finished else (early,),
            rivals=self.controls(*rivals),
            compression=report(
                self.released(self._untrained(), f"network `{part.teacher}`"),
                model,
                self.split.public.classes,
            ),
            claim=Claim(claimed, claim_of(plan, size, delta)),
        )

    def _untrained(self) -> nn.Module:
        """The teacher's make alone: its weights saw everything."""
        part = self.recipe.published
        assert part is not None
        return self.public.network(part.teacher)
