"""What RONA has in the open: public pictures, the labels of some, and networks trained on them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.methods.rona.algorithm import Guide
from stillroom.methods.rona.losses import adaptation, in_shape, matched
from stillroom.models import AsPictures, build, check_fits
from stillroom.models.augmentation import Views
from stillroom.models.supervised import SupervisedTraining, train_all
from stillroom.randomness import seeded_torch
from stillroom.sources import Setting

if TYPE_CHECKING:
    from stillroom.methods.rona import RonaRecipe

MOST_VIEWS = 200


class PublicPart:
    """The public part of the data, as RONA uses it.

    Args:
        recipe: a recipe of method rona.
        data: the public records.
        labelled: those whose labels are used.

    Raises:
        BadInput: there are no public records, or a network does not fit them.
    """

    def __init__(self, recipe: RonaRecipe, data: Dataset, labelled: Dataset) -> None:
        self.part, self._recipe, self.labelled = recipe.rona, recipe, labelled
        if not len(self.labelled):
            raise BadInput(
                "there are no labelled public records",
                where="data.public, data.labelled",
                why="the student learns on public records, and so does the auxiliary teacher",
                remedy='give a share such as public = "2/5"',
            )
        self.data, self.x = data, data.x
        self.classes = len(data.classes)
        self.pictures = AsPictures(data.shape, recipe.features.full_scale)
        self._views = Views(
            self.part.views, self.part.turn, self.part.shift, self.part.scale, self.part.mirror
        )
        if self.part.views > 1 and len(data.shape) < 2:
            raise BadInput(
                f"views are of pictures, got records of shape {data.shape}",
                where="rona.views",
                why="a row of features cannot be turned or shifted",
                remedy="leave rona.views out",
            )
        # Networks that do not fit are found before anything is paid for.
        self.student()
        self.network(self.part.auxiliary)

    def student(self) -> nn.Module:
        """The student, untaught."""
        return self.network(self.part.student)

    def network(self, model: str) -> nn.Module:
        """A network by name, untrained, the same for the same recipe."""
        given = self.pictures.given
        network = build(model, given, self.classes, seed=self.part.start_seed)
        check_fits(network, given, self.classes, private_training=False)
        return network

    def seen(self) -> Tensor:
        """All views of the public pictures: (views, pictures, ...)."""
        return torch.from_numpy(self._views.of(np.array(self.x), self.part.start_seed))

    def lesson(self, epoch: int) -> tuple[Tensor, Tensor]:
        """A view of the labelled pictures, and their labels."""
        if not hasattr(self, "_labelled_views"):
            views = self._views.of(np.array(self.labelled.x), self.part.start_seed)
            self._labelled_views = torch.from_numpy(views)
            self._labels = torch.from_numpy(np.array(self.labelled.y))
        return self._labelled_views[epoch % len(self._labelled_views)], self._labels

    def train(self, setting: Setting, *, auxiliary: bool) -> tuple[nn.Module, nn.Module | None]:
        """Base and, where it is needed, the auxiliary teacher; kept as public work.

        Base is the student with public labels alone, and as many steps as the student has.
        """
        part = self.part
        wanted = [self.training(part.student, self.labelled, part.epochs)]
        if auxiliary:
            wanted.append(self.training(part.auxiliary, self.labelled, part.auxiliary_epochs))
        base, *others = train_all(
            wanted,
            engine=setting.engine,
            folder=setting.places.work,
            on_done=setting.progress.step,
        )
        return base, others[0] if others else None

    def training(self, model: str, data: Dataset, epochs: int) -> SupervisedTraining:
        """A network on labels alone, with about as many steps as the student has."""
        # Few records are seen more often.
        often = Fraction(len(self.x), len(data))
        passes = math.ceil(epochs * often)
        views = min(passes, max(1, math.ceil(self._views.count * often)), MOST_VIEWS)
        return SupervisedTraining(
            model=model,
            x=np.array(data.x),
            y=np.array(data.y),
            classes=self.classes,
            full_scale=self._recipe.features.full_scale,
            views=replace(self._views, count=views) if self._views.count > 1 else self._views,
            epochs=passes,
            batch=self.part.self_batch,
            learning_rate=self.part.learning_rate,
            start_seed=self.part.start_seed,
        )

    def guide(self, student: nn.Module) -> tuple[Guide, tuple[int, ...]]:
        """The student's guided layer with its adaptation, and the shape of a hint."""
        part = self.part
        networks = {
            "rona.guided_layer": (student, part.guided_layer),
            "rona.hint_layer": (self.network(part.auxiliary), part.hint_layer),
        }
        guided, hinting = (
            _up_to(network, layer, name) for name, (network, layer) in networks.items()
        )
        with torch.no_grad():
            record = torch.zeros(1, *self.pictures.given)
            shapes = tuple(guided(record).shape[1:]), tuple(hinting(record).shape[1:])
        with seeded_torch(part.start_seed, "adaptation"):
            return Guide(guided, adaptation(*shapes)), matched(*shapes)

    def hints(self, network: nn.Module, shape: tuple[int, ...], x: Tensor) -> Tensor:
        """What the hint layer of a public network says of public records."""
        layer = _up_to(network, self.part.hint_layer, "rona.hint_layer")
        with torch.no_grad():
            parts = [in_shape(layer(self.pictures(some)), shape) for some in torch.split(x, 1024)]
        return torch.cat(parts)

    def features(self, student: nn.Module) -> npt.NDArray[np.float32]:
        """The student's last hidden layer at the public pictures."""
        hidden = blocks_of(student, "rona.student")[:-1]
        parts = torch.split(torch.from_numpy(np.array(self.x)), 1024)
        with torch.no_grad():
            found = [hidden(self.pictures(some)).flatten(1) for some in parts]
        return torch.cat(found).numpy()


def blocks_of(network: nn.Module, where: str) -> nn.Sequential:
    """The network, whose layers can be counted.

    Raises:
        BadInput: it is no sequence of blocks.
    """
    if not isinstance(network, nn.Sequential):
        raise BadInput(
            "layers are counted, and this network is no sequence of blocks",
            where=where,
            why="a hidden layer of it has no number",
            remedy="use a network of the zoo, or make yours an nn.Sequential",
        )
    return network


def _up_to(network: nn.Module, layer: int | None, where: str) -> nn.Module:
    """The first blocks of a network."""
    if not isinstance(network, nn.Sequential) or layer is None or layer > len(network):
        raise BadInput(
            "hint learning needs a layer of a network that is a sequence of blocks",
            where=where,
            why="without it there is nothing to follow",
            remedy="name a block, counted from 1, or set hint_epochs = 0",
        )
    return network[:layer]
