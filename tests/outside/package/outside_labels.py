"""A method from another package: any source labels public pictures, and a student learns them."""

from typing import Literal

import torch
from pydantic import Field
from torch import nn

from stillroom.methods.base import Plan, Result, Terms
from stillroom.models import AsPictures, build
from stillroom.models.training import NetworkTraining, softened
from stillroom.recipe import Section
from stillroom.release.controls import Claim
from stillroom.release.torch_model import TorchModel
from stillroom.sources import SOURCES, Ask, PublicSide, RecipeWithSource


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

    def prepare(self, recipe, facts, parties, public, test, places, progress):
        side, asked = PublicSide(public, public), Ask(scores=len(public))
        source = SOURCES[recipe.source]
        return LabelsJob(
            recipe, public, source.prepare(recipe, facts, parties, side, asked, places, progress)
        )


class LabelsJob:
    def __init__(self, recipe, public, source):
        self.recipe, self.public, self.source, self.width = recipe, public, source, source.width

    def run(self, passages, progress):
        answers, part = self.source.open(passages, progress), self.recipe.labels
        told = answers.scores(self.public.x)
        answers.close()
        shape, classes = self.public.shape, len(self.public.classes)
        scale = AsPictures(shape, self.recipe.features.full_scale)
        student = build(part.student, scale.given, classes, seed=0)
        x = torch.from_numpy(self.public.x[told.answered].copy())
        scores = torch.from_numpy(told.values).float()
        training = NetworkTraining(
            student, scale, epochs=part.epochs, learning_rate=4e-3, seed=0
        )
        progress.tell("student")
        for epoch in range(part.epochs):
            training.distil(x, scores, 32, softened(1.0))
            progress.step(epoch + 1, part.epochs)
        about = LABELS.terms(self.recipe, answers.observed, 1).about
        model = TorchModel(nn.Sequential(scale, student).eval(), shape, about)
        return Result(model, answers.observed)


LABELS = Labels()
