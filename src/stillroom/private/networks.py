"""The clipped gradient sum of a whole network: Opacus computes, the gate samples and draws noise.

A network's gradient has no closed form, so this room works in floating point (E6). Each record's
gradient is clipped, the clipped gradients are added in double precision and the sum is rounded to
an integer grid once. What is declared to the gate is 1 % more than the clip; `NetworkClip` says
what that covers. Unlike the linear layer's sum it is not exact: see `network_clip.ASSUMPTIONS`.

The last bits of a gradient depend on how many rows are computed together (E1b), so a chunk always
has the same number of rows, filled up with blank ones. Once a draw is charged nothing that is said
or done may depend on a record (K10): one that cannot be clipped counts as a blank row.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import nn
from torch.random import fork_rng

from stillroom.errors import BadInput
from stillroom.models.augmentation import Augment
from stillroom.models.flat_weights import Flat, unflatten
from stillroom.private.class_weights import weight_per_class
from stillroom.private.network_check import check_gradients
from stillroom.private.network_clip import LARGEST_WIDTH, NORM_TOLERANCE, NetworkClip
from stillroom.private.network_gradients import LayerByLayer, NetworkGradients, Owners
from stillroom.private.quantise import one_term
from stillroom.vocabulary import Bounded, Integers, SecretSample, Unit

Places = npt.NDArray[np.intp]
ROWS = 64
"""A chunk has a multiple of this many rows, so that matrix kernels have no odd rows left over."""


class NetworkRecords:
    """Sensitive records and the network that is trained on them, ready for clipped gradient sums.

    Guarantee: a record's term is the clipped gradient of its own loss, averaged over its views; a
    record that is not finite, or has no finite gradient, has none. That a record's gradient is its
    own is tried on made-up records when this is made: `network_check`.
    Assumes: each record was scaled by itself, with public numbers; and what
    `network_clip.ASSUMPTIONS` says.

    Args:
        x: the records, single precision: (number, channels, height, width), or rows of features.
        y: the label of each record.
        classes: how many classes there are.
        network: gives one logit per class; a copy is used. The sum is taken at other weights, but
            its own are among those that are checked.
        augment: how views of a record are made; None for the record itself.
        views: how many augmented views a record's gradient is averaged over (De et al. 2022).
        chunk: how many rows are computed at a time, a multiple of 64; memory grows with it.
        ghost: keep norms of gradients only, and go backward twice; one view only.
        class_weights: what a record's loss is multiplied by, by its class; public numbers. The clip
            comes after it and bounds what comes out, so they change no guarantee.

    Raises:
        BadInput: the records, the network and the options do not go together, or the network mixes
            records, draws random numbers, or uses a weight where Opacus cannot see it.
    """

    def __init__(
        self,
        x: torch.Tensor,
        y: npt.NDArray[np.int64],
        classes: int,
        network: nn.Module,
        *,
        augment: Augment | None = None,
        views: int = 1,
        chunk: int = ROWS,
        ghost: bool = False,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        labels = np.asarray(y, dtype=np.int64)
        if x.dtype != torch.float32 or x.ndim < 2 or labels.shape != (len(x),):
            raise _unfit("records", "x must be float32, a row or picture and a label per record")
        if len(labels) and not (labels.min() >= 0 and labels.max() < classes):
            raise _unfit("labels", f"a label is not one of the {classes} classes")
        if views < 1:
            raise _unfit("views", "there must be at least 1")
        if chunk < ROWS or chunk % ROWS:
            raise _unfit("chunk", f"it must be a multiple of {ROWS}")
        if views > 1 and (augment is None or ghost):
            raise _unfit("views", "several views need an augmentation, and gradients, not norms")
        if augment is not None and (x.ndim != 4 or not 0 <= augment.shift < min(x.shape[-2:])):
            raise _unfit("augment", "it needs pictures, and a shift smaller than they are")
        weights = None if class_weights is None else weight_per_class(class_weights, classes)
        self._usable = torch.isfinite(x).flatten(1).all(dim=1)
        self._x = torch.where(self._usable.reshape(-1, *[1] * (x.ndim - 1)), x, 0.0)
        self._labels = torch.from_numpy(labels.copy())
        self._chunk, self.classes = chunk, classes
        self._shape = tuple(x.shape[1:])
        try:
            # On made-up records: what does not fit is found before anything is drawn.
            kind = LayerByLayer if ghost else NetworkGradients
            self._gradients = kind(network, augment=augment, views=views, class_weights=weights)
            if not 0 < self.width <= LARGEST_WIDTH:
                raise _unfit("network", "it must have between 1 and 2^32 trainable weights")
            with torch.no_grad(), fork_rng(devices=[]):
                logits = self._gradients.network(x.new_zeros((1, *self._shape)))
            if logits.shape != (1, classes):
                raise _unfit("network", f"it must give {classes} logits per record")
            check_gradients(self._gradients, self._shape, classes, chunk)
        except BadInput:
            raise
        except Exception as wrong:
            said = f"{type(wrong).__name__}: {wrong}".strip().splitlines()[0]
            what = f"Opacus cannot compute its gradients record by record ({said})"
            raise _unfit("network", what) from wrong

    @property
    def width(self) -> int:
        """Coordinates of a gradient: the trainable weights."""
        return sum(weight.numel() for weight in self._gradients.weights)

    def __repr__(self) -> str:
        return f"NetworkRecords(<hidden>, weights={self.width}, classes={self.classes})"

    def clipped_sum(
        self, weights: Flat, clip: NetworkClip, sample: SecretSample | None, *, step: int
    ) -> Bounded:
        """The sum of the sampled records' clipped gradients of the cross-entropy, in grid units.

        Guarantee: whether it raises, and what, does not depend on a record (K10).

        Args:
            weights: all trainable weights, as one vector; public.
            clip: the largest norm of one record's gradient.
            sample: which records take part; None for all.
            step: which step of the training this is: for augmentation, and for errors to name.

        Raises:
            BadInput: the weights are too many or too few, are not finite, or give not even a blank
                record a finite gradient; the draw, if there was one, stays charged.
        """
        self._load(weights, step)
        chosen = np.arange(len(self._x))
        if sample is not None:
            chosen = chosen[sample.open_secret(len(self._x))]
        starts = range(0, len(chosen), self._chunk)
        grid = self._on_grid((chosen[a : a + self._chunk] for a in starts), clip, step)
        return Bounded(grid.reshape(1, -1), one_term(clip.squared_norm, Unit.RECORD), sample)

    def _on_grid(self, chunks: Iterable[Places], clip: NetworkClip, step: int) -> Integers:
        """The clipped sum of all chunks of records, in grid units."""
        total = np.zeros(self.width)
        with warnings.catch_warnings():
            # A network may warn of what it meets in a record.
            warnings.simplefilter("ignore")
            for places in chunks:
                total += self._sum(places, clip, step)
        return np.rint(total / clip.unit).astype(np.int64)

    def _load(self, weights: Flat, step: int) -> None:
        """Put the weights into the network, and see that they are of any use at all."""
        if not np.isfinite(weights).all():
            raise BadInput(
                "a weight is not a finite number",
                where="weights",
                why="no gradient can be computed with it",
                remedy="lower the learning rate",
            )
        network = self._gradients.network
        unflatten(network, weights)
        with self._gradients.without_hooks():
            blank = self._x.new_zeros((1, *self._shape)).requires_grad_()
            loss = F.cross_entropy(network(blank), self._labels.new_zeros(1))
            parts = torch.autograd.grad(loss, self._gradients.weights, allow_unused=True)
        if not all(torch.isfinite(part).all() for part in parts if part is not None):
            raise BadInput(
                "with these weights not even a blank record has a finite gradient",
                where=f"step {step}",
                why="there is nothing to clip; what was drawn for the step stays charged",
                remedy="lower the learning rate",
            )

    def _units(self, places: Places) -> list[Places]:
        """The records of a chunk, those together that are clipped as one."""
        return [places[i : i + 1] for i in range(len(places))]

    def _owners(self, places: Places, taking: torch.Tensor) -> Owners | None:
        """Whose the rows of a chunk are; None where each is its own."""
        return None

    def _sum(self, places: Places, clip: NetworkClip, step: int) -> npt.NDArray[np.float64]:
        """The clipped sum of at most a chunk of records, whatever the network does with them."""
        with suppress(Exception):
            return self._filled_sum(places, clip, step)
        # What it raises for blank records too has nothing to do with records, and comes out here.
        self._attempt(*self._filled(places[:0]), None, clip, step)
        units = self._units(places)
        if len(units) == 1:
            return np.zeros(self.width)
        # Otherwise a record makes it raise: each unit counts by itself, and that one not at all.
        total = np.zeros(self.width)
        for own in units:
            total += self._sum(own, clip, step)
        return total

    def _filled_sum(self, places: Places, clip: NetworkClip, step: int) -> npt.NDArray[np.float64]:
        x, y, taking = self._filled(places)
        while True:
            owners = self._owners(places, taking)
            total, sound = self._attempt(x, y, taking, owners, clip, step)
            bad = taking & ~sound
            if not bad.any():
                return total
            # Rows only ever become blank, so this ends; and each is judged by its own numbers.
            x[bad], y[bad] = 0, 0
            taking = taking & sound

    def _filled(self, places: Places) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """A chunk of these records and blank ones, and which of its rows take part."""
        size, part = len(places), torch.from_numpy(places)
        x, y = self._x.new_zeros((self._chunk, *self._shape)), self._labels.new_zeros(self._chunk)
        x[:size], y[:size] = self._x[part], self._labels[part]
        taking = torch.zeros(self._chunk, dtype=torch.bool)
        taking[:size] = self._usable[part]
        return x, y, taking

    def _attempt(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
        taking: torch.Tensor,
        owners: Owners | None,
        clip: NetworkClip,
        step: int,
    ) -> tuple[npt.NDArray[np.float64], torch.Tensor]:
        """The clipped sum of a chunk, and which of its rows are finite and no longer than the clip.

        A row is as long as the sum that it is clipped with. Where one that takes part is not sound,
        the sum means nothing.
        """
        norms = _by_row(self._gradients.norms(x, y, step, owners), owners)
        sound = torch.isfinite(norms)
        if not sound[taking].all():
            return np.zeros(self.width), sound
        factors = torch.where(taking, self._factors(norms, clip), 0.0)
        total, lengths = self._gradients.weighted(factors)
        return total, _by_row(lengths, owners) * factors <= float(clip.norm) * (1 + NORM_TOLERANCE)

    @staticmethod
    def _factors(norms: torch.Tensor, clip: NetworkClip) -> torch.Tensor:
        return (float(clip.norm) / norms.clamp(min=1e-30)).clamp(max=1.0)


def _by_row(lengths: torch.Tensor, owners: Owners | None) -> torch.Tensor:
    return lengths if owners is None else lengths[owners.of]


def guesses(network: nn.Module, weights: Flat, x: torch.Tensor) -> Integers:
    """The class the weights give to each record, one by one: no record sways another's.

    Guarantee: a record that is not a number gets some class, and nothing is raised for it (K10).

    Args:
        network: a copy is used.
        weights: all trainable weights, as one vector.
        x: the records, as the network is given them.
    """
    own = copy.deepcopy(network).eval()
    unflatten(own, weights)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([_guess(own, one) for one in x], dtype=np.int64)


def _guess(network: nn.Module, one: torch.Tensor) -> int:
    with suppress(Exception):
        return int(network(one[None]).argmax())
    # The network cannot read this record; what it raises for a blank one too is no secret.
    return int(network(torch.zeros_like(one)[None]).argmax())


def _unfit(where: str, what: str) -> BadInput:
    return BadInput(
        what,
        where=where,
        why="one record's gradient could not be bounded",
        remedy="see the arguments of NetworkRecords",
    )
