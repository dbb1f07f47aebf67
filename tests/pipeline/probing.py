"""A stand-in for a data-free method: a student of a teacher's bounded answers to made-up pictures.

It is registered by name for a test; nothing of it is released with the package.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from stillroom.gate import GaussianAnswers, Unprotected
from stillroom.methods.base import Job, Plan, Result, Terms
from stillroom.models import AsPictures, build
from stillroom.randomness import uniforms
from stillroom.recipe import Recipe, Section
from stillroom.release.sections.published import Claim
from stillroom.release.torch_model import TorchModel
from stillroom.sources import SOURCES, Ask, Request
from stillroom.sources.plain import PlainSection

STEPS, STUDENT = 1 << 16, "linear"


class ProbingSection(Section):
    steps: int = Field(6, ge=1, le=100, description="batches that are asked about")
    batch: int = Field(32, ge=1, le=1000, description="made-up pictures in each")


class ProbingRecipe(Recipe):
    method: Literal["probing"] = Field("probing", description="how the model learns")
    source: Literal["plain", "trained"] = Field("plain", description="where it comes from")
    probing: ProbingSection = ProbingSection()
    plain: PlainSection | None = Field(None, description="for source plain")

    @property
    def sound_plain(self):
        return True  # its answers are bounded

    def misfits(self):
        return {**super().misfits(), **SOURCES["plain"].misfits(self)}


class Probing:
    name, recipe = "probing", ProbingRecipe

    def plan(self, recipe, facts):
        width = recipe.probing.batch * len(facts.classes)
        unit, count = recipe.data.pair.unit, recipe.probing.steps

        def noisy(scale: Fraction):
            return GaussianAnswers(2 * scale * STEPS, width, 4 * STEPS**2, unit)

        asked = Request("answers", noisy, count)
        if recipe.mode == "as-published":
            asked = Request.fixed("answers", Unprotected(width, "as they are", unit), count)
        return Plan([asked], Claim(None, "none: a stand-in"))

    def terms(self, recipe, observed, paid):
        own = SOURCES["plain"].terms(recipe, observed, paid)
        about = f"network `{STUDENT}`, a student of a {own.about}"
        return Terms(about, own.assumptions, own.knowledge, None, own.warnings, own.observed)

    def prepare(self, setting):
        source = SOURCES["plain"].prepare(setting, Ask())
        return Job(source.width, lambda passages: taught(setting, source.open(passages)))


def taught(setting, answers):
    recipe, facts, part = setting.recipe, setting.facts, setting.recipe.probing
    pictures, classes = AsPictures(facts.shape, recipe.features.full_scale), len(facts.classes)
    student = build(STUDENT, pictures.given, classes, seed=0)
    descent = torch.optim.SGD(student.parameters(), lr=2.0)
    for step in range(part.steps):
        # As a generator gives them: with a history of their own.
        drawn = uniforms(0, "queries", step, size=(part.batch, *pictures.given))
        queries = torch.from_numpy(drawn).float().requires_grad_()
        said = torch.softmax(student(queries), 1)
        own = said.detach().numpy()
        passage = answers.passages["answers"]
        if recipe.mode == "as-published":
            told = passage.answer(
                f"{step}".encode(), lambda q=queries: answers.teacher.outputs(q)
            ).value
            away = own - torch.softmax(torch.from_numpy(told.reshape(own.shape) / STEPS), 1).numpy()
        else:
            told = passage.answer(
                f"{step}".encode(),
                lambda q=queries, o=own: answers.teacher.residual(q, o, bound=1.0, steps=STEPS),
            ).value
            away = told.reshape(own.shape) / STEPS
        descent.zero_grad()
        student(queries.detach()).backward(torch.from_numpy(away.astype(np.float32) / part.batch))
        descent.step()
        setting.progress.step(step + 1, part.steps)
    answers.close()
    about = PROBING.terms(recipe, {}, 1).about
    return Result(TorchModel(nn.Sequential(pictures, student).eval(), facts.shape, about))


PROBING = Probing()
