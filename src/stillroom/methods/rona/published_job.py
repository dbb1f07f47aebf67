"""RONA as published: source plain, one ordinary teacher, the paper's algorithm to the letter."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.methods.base import Result
from stillroom.methods.rona.job import RonaJob
from stillroom.methods.rona.public_part import blocks_of
from stillroom.methods.rona.published import hint_width, train
from stillroom.methods.rona.terms import AUXILIARY, CALLS, shows_ceiling
from stillroom.release.compression import report
from stillroom.sources.base import Passages
from stillroom.sources.plain import PlainAnswers


class PublishedJob(RonaJob):
    """A student of one teacher that saw everything, in the literal or in the residual reading."""

    def _refuse_misfits(self) -> None:
        """Networks that do not fit are found before anything is paid for."""
        student = blocks_of(self.student, "rona.student")
        auxiliary = blocks_of(self.public.network(self.part.auxiliary), "rona.auxiliary")
        teacher, plan = blocks_of(self._untrained(), "plain.teacher"), self.recipe.published_plan
        given = self.public.pictures.given
        if not self.part.hint_epochs:
            self._hint_width = 1
            return
        widths = {hint_width(student, network, plan, given) for network in (auxiliary, teacher)}
        if len(widths) > 1:
            raise BadInput(
                "the hint layers of teacher and auxiliary teacher differ in shape",
                where="plain.teacher, rona.auxiliary",
                why="the auxiliary teacher stands in for the other where hints are bounded",
                remedy="leave plain.teacher out: it is then of the auxiliary teacher's make",
            )
        self._hint_width = widths.pop()

    @property
    def width(self) -> int:
        """Of a hint."""
        return self._hint_width

    def run(self, passages: Passages) -> Result:
        """Algorithm 1, each call of it through the gate."""
        public, plan, size = self.public, self.recipe.published_plan, len(self.public.x)
        progress, answers = self.setting.progress, self.source.open(passages)
        assert isinstance(answers, PlainAnswers)
        progress.tell("student")
        taught = train(
            blocks_of(self.student, "rona.student"),
            answers.teacher,
            blocks_of(self.auxiliary, "rona.auxiliary"),
            public.pictures(torch.from_numpy(np.array(public.x))),
            torch.from_numpy(np.array(public.data.y)),
            plan,
            answers.passages,
            lambda call: progress.step(call, plan.calls(size)),
        )
        model = self.released(self.student, f"network `{self.part.student}`, a student")
        auxiliary = self.released(self.auxiliary, f"network `{self.part.auxiliary}`")
        controls = self.controls({AUXILIARY: auxiliary})
        if shows_ceiling(self.recipe):
            controls["teacher"] = answers.teacher
        make = self.released(self._untrained(), f"network `{self.recipe.teacher_network}`")
        return Result(
            model,
            {CALLS: taught.calls},
            controls=controls,
            compression=report(make, model, self.setting.facts.classes),
        )

    def _untrained(self) -> nn.Module:
        """The teacher's make alone: its weights saw everything."""
        return self.public.network(self.recipe.teacher_network)
