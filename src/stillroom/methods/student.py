"""A student that never saw a real picture: samples of the sketch, labelled by the private model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from stillroom.data import Dataset
from stillroom.methods.own_network import refuse_unexportable
from stillroom.methods.recipe import Recipe
from stillroom.models import AsPictures, build, check_fits
from stillroom.models.training import NetworkTraining, by_logits, fitting_temperature
from stillroom.public import Mixture
from stillroom.release.model import ReleasedModel
from stillroom.release.torch_model import TorchModel
from stillroom.vocabulary import Integers


def student_network(recipe: Recipe, shape: tuple[int, ...], classes: int) -> nn.Module:
    """The recipe's student, untaught.

    Raises:
        BadInput: there is no such network, or it does not fit the records.
    """
    assert recipe.student is not None
    given = AsPictures(shape, recipe.features.full_scale).given
    network = build(recipe.student.model, given, classes, seed=recipe.student.start_seed)
    check_fits(network, given, classes, private_training=False)
    return network


def refuse_unfit_student(recipe: Recipe, shape: tuple[int, ...], classes: tuple[str, ...]) -> None:
    """Find a student that does not fit, or could not be released, before anything is paid for.

    Raises:
        BadInput: it is one.
    """
    assert recipe.student is not None
    network = student_network(recipe, shape, len(classes))
    layers = nn.Sequential(AsPictures(shape, recipe.features.full_scale), network)
    refuse_unexportable(recipe.student.model, layers, shape, classes)


class Student:
    """A network distilled from a private model on pictures of the sketch.

    Guarantee: sees sanitised things only, so it costs nothing.
    """

    def __init__(self, layers: nn.Module, shape: tuple[int, ...], about: str) -> None:
        self._layers, self._shape, self._about = layers, shape, about

    @classmethod
    def taught(
        cls,
        recipe: Recipe,
        mixture: Mixture,
        teacher: ReleasedModel,
        on_epoch: Callable[[int, int], None],
    ) -> Student:
        """A student of the recipe's size, taught by the teacher."""
        part, sketch = recipe.student, recipe.sketch
        assert part is not None
        assert sketch is not None
        pictures, _ = mixture.sample(
            part.start_seed + 2, part.samples, sharpen=sketch.sharpen, warp=sketch.warp
        )
        raw = pictures * np.float32(recipe.features.full_scale)
        scores = torch.from_numpy(teacher.logits(raw))
        scale = AsPictures(teacher.shape, recipe.features.full_scale)
        network = student_network(recipe, teacher.shape, teacher.outputs)
        training = NetworkTraining(
            network,
            scale,
            epochs=part.epochs,
            learning_rate=part.learning_rate,
            seed=part.start_seed,
        )
        loss = by_logits(fitting_temperature(scores))
        for epoch in range(part.epochs):
            training.distil(torch.from_numpy(raw), scores, part.batch, loss, balanced=True)
            on_epoch(epoch + 1, part.epochs)
        about = f"network `{part.model}`, a student of a {teacher.about}"
        return cls(nn.Sequential(scale, network).eval(), teacher.shape, about)

    def guesses(self, data: Dataset) -> Integers:
        """The class given to each record, one by one: no record sways another's."""
        with torch.no_grad():
            found = [
                int(self._layers(torch.from_numpy(one[None].astype(np.float32))).argmax())
                for one in data.x
            ]
        return np.array(found, dtype=np.int64)

    def model(self) -> ReleasedModel:
        """The network, from raw records."""
        return TorchModel(self._layers, self._shape, self._about)
