"""The student of method votes: a network over public records that nobody labelled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from stillroom.engine.workers import one_thread
from stillroom.errors import BadInput
from stillroom.methods.votes.queries import PublicPart
from stillroom.methods.votes.terms import about_model
from stillroom.models import AsPictures, build
from stillroom.models.checkpoints import Checkpoint
from stillroom.public.few_labels import learn
from stillroom.public.vote_regression import NoisyShares
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.torch_model import TorchModel
from stillroom.sources import Setting

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe


class VotesStudent:
    """A network that will learn from votes, looked at before anything is paid for.

    Args:
        setting: of a recipe of method votes.

    Raises:
        BadInput: the network does not fit the records, or there are too few of them.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._recipe: VotesRecipe = setting.recipe
        shape, classes, part = setting.facts.shape, setting.facts.classes, self._recipe.student
        self._pictures = AsPictures(shape, self._recipe.features.full_scale)
        network = build(part.model, self._pictures.given, len(classes), seed=0)
        if not isinstance(network, nn.Sequential) or len(network) < 2:
            raise BadInput(
                f"the student `{part.model}` has no block before the last",
                where="student.model",
                why="neighbours are found where its last block begins",
                remedy="give a torch.nn.Sequential whose last block gives the classes",
            )
        if len(setting.public.records) <= part.neighbours:
            raise BadInput(
                f"there are not more than {part.neighbours} public records",
                where="student.neighbours, data.public",
                why="votes spread over neighbours, and no record is its own",
                remedy="make more records public, or look for fewer neighbours",
            )
        layers = nn.Sequential(self._pictures, network)
        refuse_unexportable(part.model, layers, shape, classes)

    def taught(self, public: PublicPart, told: NoisyShares, state: Path) -> TorchModel:
        """The released network.

        Args:
            public: records and features.
            told: the entities' noisy votes.
            state: a file for its state; named after the run.
        """
        progress, recipe = self._setting.progress, self._recipe
        progress.tell("student")
        with one_thread():
            network = learn(
                np.asarray(public.x),
                public.rows,
                told,
                recipe.student.plan,
                full_scale=recipe.features.full_scale,
                graph=public.graph,
                on_step=progress.step,
                kept=Checkpoint(state, state.stem),
            )
        layers = nn.Sequential(self._pictures, network).eval()
        return TorchModel(layers, self._setting.facts.shape, about_model(recipe))
