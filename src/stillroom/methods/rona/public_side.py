"""What RONA has in the open: public pictures, the labels of some, and networks trained on them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.data import Dataset, Split, shards
from stillroom.data.store import home
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.methods.public_work import PublicTraining, train_all
from stillroom.methods.recipe import Recipe
from stillroom.methods.rona.algorithm import Guide, Progress
from stillroom.models import AsPictures, build, check_fits
from stillroom.models.augmentation import Views
from stillroom.public.published_losses import adaptation, in_shape, matched
from stillroom.randomness import seeded_torch

PLACES = 10**6
MOST_VIEWS = 200


class PublicSide:
    """The public part of a split, as RONA uses it.

    Args:
        recipe: a recipe of method rona.
        split: its public part is used; its sensitive part only for the ceiling of a benchmark.

    Raises:
        BadInput: there is no public part, or a network does not fit the records.
    """

    def __init__(self, recipe: Recipe, split: Split) -> None:
        assert recipe.rona is not None
        self.part, self._recipe, self._split = recipe.rona, recipe, split
        data = split.public
        place = shards(data.units, PLACES, f"{recipe.data.key}/labelled")
        self.labelled = data.select(np.flatnonzero(place < int(recipe.data.labelled * PLACES)))
        if not len(self.labelled):
            raise BadInput(
                "there are no labelled public records",
                where="data.public, data.labelled",
                why="the student learns on public records, and so does the auxiliary teacher",
                remedy='give a share such as public = "2/5"',
            )
        self.x = data.x
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

    @property
    def epochs(self) -> int:
        """Passes over the public part, of all stages together."""
        part = self.part
        return part.hint_epochs + part.rounds * (part.self_epochs + part.distillation_epochs)

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

    def train(
        self, engine: Engine, *, auxiliary: bool, on_done: Progress
    ) -> tuple[nn.Module, nn.Module | None]:
        """Base and, where it is needed, the auxiliary teacher; kept in the data home.

        Base is the student with public labels alone, and as many steps as the student has.
        """
        part = self.part
        wanted = [self._training(part.student, self.labelled, self.epochs)]
        if auxiliary:
            wanted.append(self._training(part.auxiliary, self.labelled, part.auxiliary_epochs))
        folder = home() / "trained-on-public"
        base, *others = train_all(wanted, engine=engine, folder=folder, on_done=on_done)
        return base, others[0] if others else None

    def in_the_clear(self, model: str, epochs: int, engine: Engine, on_done: Progress) -> nn.Module:
        """A network trained on all labels, sensitive ones included, without any protection."""
        everything = _joined(self._split.public, self._split.sensitive)
        training = self._training(model, everything, epochs)
        folder = home() / "trained-in-the-clear"
        (network,) = train_all([training], engine=engine, folder=folder, on_done=on_done)
        return network

    def _training(self, model: str, data: Dataset, epochs: int) -> PublicTraining:
        # Few records are seen more often: all networks have about as many steps as the student.
        often = Fraction(len(self.x), len(data))
        passes = math.ceil(epochs * often)
        views = min(passes, max(1, math.ceil(self._views.count * often)), MOST_VIEWS)
        return PublicTraining(
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


def _joined(first: Dataset, second: Dataset) -> Dataset:
    return Dataset(
        np.concatenate([first.x, second.x]),
        np.concatenate([first.y, second.y]),
        first.classes,
        name="all",
        ids=(*first.ids, *second.ids),
    )
