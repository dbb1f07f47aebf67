"""DPDFD's direct training as label-only privacy: records are public, their labels are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from stillroom.errors import BadInput
from stillroom.methods.base import Result
from stillroom.methods.dpdfd.published_direct import train_directly
from stillroom.methods.dpdfd.published_terms import BROKEN_AT, ITERATIONS, about_student
from stillroom.models import AsPictures, build, check_fits
from stillroom.private.label_gradients import LabelledRecords
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.torch_model import TorchModel
from stillroom.sources import Setting
from stillroom.sources.base import Passages
from stillroom.vocabulary import Unit

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe


class DirectJob:
    """A network trained on public records and the noisy gradients of their labels.

    Args:
        setting: of a recipe of method dpdfd with `published.direct`.

    Raises:
        BadInput: the network does not fit, or there are too few records; nothing is paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, facts = setting, setting.facts
        self.recipe: DpdfdRecipe = setting.recipe
        self.plan, own = self.recipe.published_plan, self.recipe.dpdfd
        self.pictures, self._classes = (
            AsPictures(facts.shape, self.recipe.features.full_scale),
            len(facts.classes),
        )
        given = self.pictures.given
        self.network = build(own.student, given, self._classes, seed=own.start_seed)
        check_fits(self.network, given, self._classes, private_training=False)
        layers = nn.Sequential(self.pictures, self.network)
        refuse_unexportable(own.student, layers, facts.shape, facts.classes)
        setting.begin()
        unit = Unit(self.recipe.data.unit)
        self._records = LabelledRecords(setting.only_party().data, self.pictures, unit)
        if len(self._records) < self.plan.part.batch:
            raise BadInput(
                "there are fewer records than a batch has",
                where="published.batch",
                why="a record may be in a batch once",
                remedy="use a smaller batch",
            )

    @property
    def width(self) -> int:
        """Of a gradient of outputs."""
        return self._classes

    def run(self, passages: Passages) -> Result:
        """Algorithm 1 without a generator, each iteration of it through the gate."""
        progress, planned = self.setting.progress, self.plan.part.iterations
        progress.tell("training on public records")
        taught = train_directly(
            self.network,
            self._records,
            self.plan,
            passages[self.setting.only_party().name],
            lambda iteration: progress.step(iteration, planned),
        )
        layers = nn.Sequential(self.pictures, self.network).eval()
        model = TorchModel(layers, self.setting.facts.shape, about_student(self.recipe))
        observed = {ITERATIONS: taught.iterations, BROKEN_AT: taught.broken_at or 0}
        return Result(model, observed)
