"""One ordinary teacher, trained on public and sensitive records without any protection.

It is what Wang et al. 2019 publish about, so it is here: to run their method as published. One
record may change the whole teacher, in any way. What it says outside is therefore either
unprotected, with no sensitivity for any unit, or a residual that is clipped as a whole (reading R3
in docs/theory.md).

Claim of R3: for each batch of queries the answer is an integer vector of a norm of at most
`steps`, whatever the teacher is. Any two teachers are at most 2 * steps apart, so D = 2B for a
record, a person or an entity, added, removed or changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from stillroom.data import Dataset
from stillroom.engine import Engine
from stillroom.errors import BadInput, check_ranges
from stillroom.models.supervised import SupervisedTraining, train_all
from stillroom.private.quantise import check_ball, clip_to_ball, softmax
from stillroom.private.sealed import Records, opened
from stillroom.private.unprotected import unprotected
from stillroom.vocabulary import Bounded, Integers, Norm, Sensitivity, Unit

CHUNK = 512

Doubles = npt.NDArray[np.float64]


class PlainTeacher:
    """An ordinary network that saw every record.

    Guarantee: none by itself. `residual` bounds what one batch of answers shows, see there.
    Assumes: queries, layers, bounds and the student's outputs are public or sanitised.

    Args:
        network: a trained network that gives logits; where it is a sequence of blocks,
            `network[:k]` ends with block k.
        pictures: from records as they are stored to what the network is given.
    """

    def __init__(self, network: nn.Module, pictures: nn.Module | None = None) -> None:
        self._network = network.eval()
        self._pictures = nn.Identity() if pictures is None else pictures

    def __repr__(self) -> str:
        return "PlainTeacher(<hidden>)"

    def __reduce__(self) -> NoReturn:
        raise BadInput(
            "a plain teacher cannot be pickled",
            why="its weights were trained on sensitive records without any protection",
            remedy="release a student instead",
        )

    def in_the_clear(self, queries: torch.Tensor) -> torch.Tensor:
        """The logits of pictures, with their gradient; for makers of bounded values in `private/`.

        Guarantee: none.
        """
        logits: torch.Tensor = self._network(queries)
        return logits

    def guesses(self, data: Dataset) -> Integers:
        """The class it gives to each record, stored as it is.

        Guarantee: none. It is the ceiling of a benchmark, on public test records.
        """
        logits = self._answers(self._pictures(torch.from_numpy(np.array(data.x))), None)
        best: Integers = logits.argmax(axis=1)
        return best

    def outputs(self, queries: torch.Tensor) -> Bounded:
        """The logits of a batch as one row, in units of 1/GRID; unprotected."""
        return unprotected(self._answers(queries, None))

    def hints(self, queries: torch.Tensor, layer: int, shape: tuple[int, ...]) -> Bounded:
        """What block `layer`, counted from 1, says of a batch, as one row; unprotected.

        Args:
            queries: public records.
            layer: the hint layer.
            shape: of one hint: a smaller height and width is averaged to, a flat one flattened to.
        """
        return unprotected(self._answers(queries, layer, shape))

    def residual(
        self,
        queries: torch.Tensor,
        student: npt.NDArray[np.floating],
        *,
        bound: float,
        steps: int,
        layer: int | None = None,
        temperature: float = 1.0,
    ) -> Bounded:
        """R3: what the student says minus what the teacher says, clipped to `bound` as one vector.

        Guarantee: the row is an integer vector of a norm of at most `steps`, checked in integers,
        for every teacher; D = 2 * steps for every unit and relation.

        Args:
            queries: public records, one batch.
            student: the student's adapted hints (with `layer`), or else its softened probabilities;
                their difference is the gradient of the softened cross-entropy with respect to the
                student's logits, up to 1 / temperature.
            bound: B, a public or sanitised number.
            steps: grid units the bound has.
            layer: the hint layer, counted from 1; None for the teacher's softened probabilities.
            temperature: divides the teacher's logits before the softmax.

        Raises:
            BadInput: the bound or the steps are out of range.
        """
        check_ball(steps)
        fine = {"bound": 0 < bound < float("inf"), "temperature": 1e-6 <= temperature <= 1e6}
        check_ranges("residual", fine)
        taught = self._answers(queries, layer, tuple(student.shape[1:]))
        if layer is None:
            taught = softmax(taught, temperature)
        if taught.shape != student.shape:
            raise BadInput(
                f"the student says {student.shape}, the teacher's layer {taught.shape}",
                where="student",
                why="a hint is compared with it number by number",
                remedy="adapt the student's layer to the teacher's",
            )
        with np.errstate(all="ignore"):
            away = (student.astype(np.float64) - taught).reshape(1, -1) * (steps / bound)
        # The whole teacher may change, with whatever unit did it.
        proven = Sensitivity.uniform(Norm.L2_SQUARED, 4 * steps**2, Unit.PERSON)
        return Bounded(clip_to_ball(away, steps), proven)

    def _answers(
        self, queries: torch.Tensor, layer: int | None, shape: tuple[int, ...] = ()
    ) -> Doubles:
        part = self._network
        if layer is not None:
            if not isinstance(part, nn.Sequential) or not 1 <= layer <= len(part):
                raise BadInput(
                    f"the teacher has no block {layer}",
                    where="layer",
                    why="a hint is what comes out of a block of a torch.nn.Sequential",
                    remedy="name a block of its network, counted from 1",
                )
            part = part[:layer]
        rows: list[npt.NDArray[Any]] = []
        with torch.no_grad():
            for some in torch.split(queries, CHUNK):
                said = part(some)
                rows.append((said if layer is None else _reshaped(said, shape)).numpy())
        return np.concatenate(rows).astype(np.float64)


def train_in_the_clear(
    records: Records,
    public: Dataset,
    training: Callable[[Dataset], SupervisedTraining],
    *,
    engine: Engine,
    folder: Path,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> PlainTeacher:
    """A network trained on all labels, public and sensitive ones, without any protection.

    Guarantee: none; see `PlainTeacher` for what may leave it.

    Args:
        records: the sensitive records.
        public: the public ones, which come first.
        training: what to train on all of them together.
        engine: where to train.
        folder: private work: keeps the trained network, for its owner alone.
        on_done: told how many trainings are done.
    """
    wanted = training(joined(public, opened(records)))
    (network,) = train_for_the_owner([wanted], engine=engine, folder=folder, on_done=on_done)
    return PlainTeacher(network, wanted.scale)


def joined(public: Dataset, sensitive: Dataset) -> Dataset:
    """All records, the public ones first; maybe none at all, which must not be told (K10)."""
    if not len(public) or not len(sensitive):
        return public if len(public) else sensitive
    return Dataset(
        np.concatenate([public.x, sensitive.x]),
        np.concatenate([public.y, sensitive.y]),
        public.classes,
        name="all",
        ids=(*public.ids, *sensitive.ids),
    )


def train_for_the_owner(
    wanted: Sequence[SupervisedTraining],
    *,
    engine: Engine,
    folder: Path,
    on_done: Callable[[int, int], None],
) -> list[nn.Module]:
    """Networks that saw sensitive records, kept in a folder that its owner alone can read."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return train_all(wanted, engine=engine, folder=folder, on_done=on_done)


def bounded_loss(loss: float, bound: float, steps: int) -> Bounded:
    """A batch loss clipped to `bound`, in whole units of bound/steps: what Algorithm 2 noises.

    Guarantee: a whole number from 0 to `steps`, so D = B for whatever unit moves the loss.

    >>> bounded_loss(7.0, bound=2.0, steps=100)
    Bounded(<hidden>, shape=(1, 1), norm=l2-squared)
    """
    proven = Sensitivity.uniform(Norm.L2_SQUARED, steps**2, Unit.PERSON)
    return Bounded(np.array([[loss_steps(loss, bound, steps)]]), proven)


def loss_steps(loss: float, bound: float, steps: int) -> int:
    """The clipped loss in whole units of bound/steps; 0 for what is no number.

    >>> loss_steps(7.0, 2.0, 100), loss_steps(1.0, 2.0, 100), loss_steps(float("nan"), 2.0, 100)
    (100, 50, 0)
    """
    share = loss / bound
    if math.isnan(share):
        return 0
    return int(min(max(share, 0.0), 1.0) * steps)


def _reshaped(said: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    if len(shape) == 3:
        return F.adaptive_avg_pool2d(said, shape[1:])
    return said.flatten(1)
