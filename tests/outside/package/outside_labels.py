"""A method from another package: any source labels public pictures, and a student learns them."""

from typing import Literal

import torch
from pydantic import Field
from torch import nn

from stillroom.methods.base import Job, Plan, Result, Terms
from stillroom.models import AsPictures, build
from stillroom.models.training import NetworkTraining, softened
from stillroom.recipe import Section
from stillroom.release.sections.published import Claim
from stillroom.release.torch_model import TorchModel
from stillroom.sources import SOURCES, Ask, RecipeWithSource


class LabelsSection(Section):
    student: str = Field("mlp", description="a name in the zoo, or package.module:callable")
    epochs: int = Field(20, ge=1, le=1000, description="passes over what was answered")


class LabelsRecipe(RecipeWithSource):
    method: Literal["labels"] = Field("labels", description="how the model learns")
    labels: LabelsSection = LabelsSection()


class Labels:
    name = "labels"
    recipe = LabelsRecipe

    def plan(self, recipe, facts):
        asked = Ask(scores=facts.public_records)
        return Plan(SOURCES[recipe.source].requests(recipe, facts, asked), Claim(None, "none: new"))

    def terms(self, recipe, observed, paid):
        own = SOURCES[recipe.source].terms(recipe, observed, paid)
        about = f"network `{recipe.labels.student}`, a student of a {own.about}"
        return Terms(about, own.assumptions, own.knowledge, None, own.warnings, own.observed)

    def prepare(self, setting):
        public = setting.public.records
        source = SOURCES[setting.recipe.source].prepare(setting, Ask(scores=len(public)))
        return Job(source.width, lambda passages: taught(setting, source.open(passages)))


def taught(setting, answers):
    recipe, public, part = setting.recipe, setting.public.records, setting.recipe.labels
    told = answers.scores(public.x)
    answers.close()
    scale = AsPictures(public.shape, recipe.features.full_scale)
    student = build(part.student, scale.given, len(public.classes), seed=0)
    x = torch.from_numpy(public.x[told.answered].copy())
    scores = torch.from_numpy(told.values).float()
    training = NetworkTraining(student, scale, epochs=part.epochs, learning_rate=4e-3, seed=0)
    setting.progress.tell("student")
    for epoch in range(part.epochs):
        training.distil(x, scores, 32, softened(1.0))
        setting.progress.step(epoch + 1, part.epochs)
    about = LABELS.terms(recipe, answers.observed, 1).about
    model = TorchModel(nn.Sequential(scale, student).eval(), public.shape, about)
    return Result(model, answers.observed)


LABELS = Labels()
