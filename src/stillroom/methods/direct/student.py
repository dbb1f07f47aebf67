"""A student that never saw a real picture: samples of the sketch, labelled by the private model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from stillroom.models import AsPictures, build, check_fits
from stillroom.models.checkpoints import Checkpoint
from stillroom.models.training import NetworkTraining, by_logits, fitting_temperature
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.model import ReleasedModel
from stillroom.release.torch_model import TorchModel
from stillroom.sources import Facts, Progress
from stillroom.sources.trained import TrainedAnswers

if TYPE_CHECKING:
    from stillroom.methods.direct import DirectRecipe


def refuse_unfit_student(recipe: DirectRecipe, facts: Facts) -> None:
    """Find a student that does not fit, or could not be released, before anything is paid for.

    Raises:
        BadInput: it is one.
    """
    assert recipe.student is not None
    scale, network = _untaught(recipe, facts.shape, len(facts.classes))
    layers = nn.Sequential(scale, network)
    refuse_unexportable(recipe.student.model, layers, facts.shape, facts.classes)


def taught(
    recipe: DirectRecipe, answers: TrainedAnswers, progress: Progress, state: Path
) -> ReleasedModel:
    """A network distilled from a private model on pictures of the sketch.

    Guarantee: sees sanitised things only, so it costs nothing.

    Args:
        recipe: its numbers.
        answers: the private model, and the sketch.
        progress: told.
        state: a file for its state, so that a run that is cut off goes on; named after the run.
    """
    progress.tell("student")
    part, teacher = recipe.student, answers.model
    assert part is not None
    pictures = answers.samples(part.samples, part.start_seed + 2)
    assert pictures is not None
    x, scores = torch.from_numpy(pictures), torch.from_numpy(teacher.logits(pictures))
    scale, network = _untaught(recipe, teacher.shape, teacher.outputs)
    training = NetworkTraining(
        network,
        scale,
        epochs=part.epochs,
        learning_rate=part.learning_rate,
        seed=part.start_seed,
    )
    loss = by_logits(fitting_temperature(scores))
    kept = Checkpoint(state, state.stem)
    if (found := kept.load()) is not None:
        training.restore(found)
    for epoch in range(training.done, part.epochs):
        training.distil(x, scores, part.batch, loss, balanced=True)
        kept.keep(training.state)
        progress.step(epoch + 1, part.epochs)
    about = f"network `{part.model}`, a student of a {teacher.about}"
    return TorchModel(nn.Sequential(scale, network).eval(), teacher.shape, about)


def _untaught(
    recipe: DirectRecipe, shape: tuple[int, ...], classes: int
) -> tuple[AsPictures, nn.Module]:
    assert recipe.student is not None
    scale = AsPictures(shape, recipe.features.full_scale)
    network = build(recipe.student.model, scale.given, classes, seed=recipe.student.start_seed)
    check_fits(network, scale.given, classes, private_training=False)
    return scale, network
