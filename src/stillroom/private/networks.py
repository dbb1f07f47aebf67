"""The clipped gradient sum of a whole network: Opacus computes, the gate samples and draws noise.

A network's gradient has no closed form, so this room works in floating point (E6). Each record's
gradient is clipped, the clipped gradients are added in double precision and the sum is rounded to
an integer grid once. What is declared to the gate is 1 % more than the clip; `NetworkClip` says
what that covers. Unlike the linear layer's sum it is not exact: see `network_clip.ASSUMPTIONS`.

Per-record gradients are Opacus' `GradSampleModule`. With `ghost` only their norms are kept
(`GradSampleModuleFastGradientClipping`), and a second, weighted backward pass gives the sum.
"""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from opacus.grad_sample import GradSampleModule
from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
    GradSampleModuleFastGradientClipping,
)
from torch import nn

from stillroom.errors import BadInput, NumericalDoubt
from stillroom.models.augmentation import Augment
from stillroom.models.flat import Flat, trainable, unflatten
from stillroom.private.network_clip import LARGEST_WIDTH, NORM_TOLERANCE, NetworkClip
from stillroom.vocabulary import (
    Bounded,
    Integers,
    Norm,
    Pair,
    Relation,
    SecretSample,
    Sensitivity,
    Unit,
)


class NetworkRecords:
    """Sensitive records and the network that is trained on them, ready for clipped gradient sums.

    Guarantee: a record's term is the clipped gradient of its own loss, averaged over its views.
    Assumes: no layer of the network mixes records; each record was scaled by itself, with public
    numbers; and what `network_clip.ASSUMPTIONS` says.

    Args:
        x: the records, single precision: (number, channels, height, width), or rows of features.
        y: the label of each record.
        classes: how many classes there are.
        network: gives one logit a class; a copy is used, and its own weights do not matter.
        augment: how views of a record are made; None for the record itself.
        views: how many augmented views a record's gradient is averaged over (De et al. 2022).
        chunk: how many records are computed at a time; memory grows with it.
        ghost: keep norms of gradients only, and go backward twice; one view only.

    Raises:
        BadInput: the records, the network and the options do not go together.
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
        chunk: int = 128,
        ghost: bool = False,
    ) -> None:
        labels = np.asarray(y, dtype=np.int64)
        if x.dtype != torch.float32 or x.ndim < 2 or labels.shape != (len(x),):
            raise _unfit("records", "x must be float32, a row or picture and a label a record")
        if not torch.isfinite(x).all():
            raise _unfit("records", "a record holds something that is not a finite number")
        if len(labels) and not (labels.min() >= 0 and labels.max() < classes):
            raise _unfit("labels", f"a label is not one of the {classes} classes")
        if views < 1 or chunk < 1:
            raise _unfit("views, chunk", "views and chunk must be at least 1")
        if views > 1 and (augment is None or ghost):
            raise _unfit("views", "several views need an augmentation, and gradients, not norms")
        if augment is not None and (x.ndim != 4 or not 0 <= augment.shift < min(x.shape[-2:])):
            raise _unfit("augment", "it needs pictures, and a shift smaller than they are")
        self._x, self._labels = x, torch.from_numpy(labels.copy())
        self._augment, self._views, self._chunk, self._ghost = augment, views, chunk, ghost
        self._network = copy.deepcopy(network).train()
        self._weights = trainable(self._network)
        self.classes = classes
        if not 0 < self.width <= LARGEST_WIDTH:
            raise _unfit("network", "it must have between 1 and 2^32 trainable weights")
        wrap = GradSampleModuleFastGradientClipping if ghost else GradSampleModule
        blank, label = x.new_zeros((1, *x.shape[1:])), self._labels.new_zeros(1)
        try:
            # One blank record: what does not fit is found before anything is drawn.
            with torch.no_grad():
                logits = self._network(blank)
            self._module = wrap(self._network, loss_reduction="sum")
            self._sum(blank, label, NetworkClip(Fraction(1)), 0)
        except (NotImplementedError, RuntimeError, ValueError, TypeError, IndexError) as wrong:
            what = "Opacus cannot compute its gradients record by record"
            raise _unfit("network", what) from wrong
        if logits.shape != (1, classes):
            raise _unfit("network", f"it must give {classes} logits a record")

    @property
    def width(self) -> int:
        """Coordinates of a gradient: the trainable weights."""
        return sum(weight.numel() for weight in self._weights)

    def __repr__(self) -> str:
        return f"NetworkRecords(<hidden>, weights={self.width}, classes={self.classes})"

    def clipped_sum(
        self, weights: Flat, clip: NetworkClip, sample: SecretSample | None, *, step: int
    ) -> Bounded:
        """The sum of the sampled records' clipped gradients of the cross-entropy, in grid units.

        Args:
            weights: all trainable weights, as one vector; public.
            clip: the largest norm of one record's gradient.
            sample: which records take part; None for all.
            step: which step of the training this is: for augmentation, and for errors to name.

        Raises:
            BadInput: a loss is not a number; the draw, if there was one, stays charged.
            NumericalDoubt: a clipped gradient is longer than the clip.
        """
        self._load(weights)
        chosen = np.arange(len(self._x))
        if sample is not None:
            chosen = chosen[sample.open_secret(len(self._x))]
        total = np.zeros(self.width)
        for start in range(0, len(chosen), self._chunk):
            part = torch.from_numpy(chosen[start : start + self._chunk])
            total += self._sum(self._x[part], self._labels[part], clip, step)
        grid = np.rint(total / clip.unit).astype(np.int64)
        bounds = {Pair(Unit.RECORD, relation): Fraction(clip.squared_norm) for relation in Relation}
        return Bounded(grid.reshape(1, -1), Sensitivity(Norm.CONTRIBUTION_SQUARED, bounds), sample)

    def guesses(self, weights: Flat) -> Integers:
        """The class the weights give to each record, one by one: no record sways another's."""
        self._load(weights)
        self._network.eval()
        with torch.no_grad():
            guesses = [int(self._network(one[None]).argmax()) for one in self._x]
        self._network.train()
        return np.array(guesses, dtype=np.int64)

    def _load(self, weights: Flat) -> None:
        if not np.isfinite(weights).all():
            raise BadInput(
                "a weight is not a finite number",
                where="weights",
                why="no gradient can be computed with it",
                remedy="lower the learning rate",
            )
        unflatten(self._network, weights)

    def _sum(
        self, x: torch.Tensor, y: torch.Tensor, clip: NetworkClip, step: int
    ) -> npt.NDArray[np.float64]:
        """The clipped sum of one chunk."""
        return (self._ghost_sum if self._ghost else self._plain_sum)(x, y, clip, step)

    def _plain_sum(
        self, x: torch.Tensor, y: torch.Tensor, clip: NetworkClip, step: int
    ) -> npt.NDArray[np.float64]:
        total: list[torch.Tensor] = []
        for view in range(self._views):
            self._losses(x, y, step, view)
            own = [_per_record(weight, "grad_sample", len(y)) for weight in self._weights]
            total = [a.add_(b) for a, b in zip(total, own, strict=True)] if total else own
        gradients = [gradient.double() for gradient in total]
        squares = [torch.linalg.vector_norm(gradient, dim=1) ** 2 for gradient in gradients]
        norms = torch.stack(squares).sum(dim=0).sqrt() / self._views
        factors = self._checked_factors(norms, clip, step) / self._views
        return np.concatenate([(factors @ gradient).numpy() for gradient in gradients])

    def _ghost_sum(
        self, x: torch.Tensor, y: torch.Tensor, clip: NetworkClip, step: int
    ) -> npt.NDArray[np.float64]:
        losses = self._losses(x, y, step, 0)
        own = [_per_record(weight, "_norm_sample", len(y)) for weight in self._weights]
        norms = torch.cat(own, dim=1).double().square().sum(dim=1).sqrt()
        factors = self._checked_factors(norms, clip, step)
        self._module.disable_hooks()
        try:
            parts = torch.autograd.grad((losses * factors).sum(), self._weights)
        finally:
            self._module.enable_hooks()
        total = np.concatenate([part.double().reshape(-1).numpy() for part in parts])
        # No single term can be seen here, but terms of these lengths add up to no more than this.
        if not np.linalg.norm(total) <= float((norms * factors).sum()) * (1 + NORM_TOLERANCE):
            raise _too_long(step)
        return total

    def _losses(self, x: torch.Tensor, y: torch.Tensor, step: int, view: int) -> torch.Tensor:
        """Each record's loss, after a backward pass in which Opacus' hooks have looked at it."""
        for weight in self._weights:
            weight.grad_sample = weight._norm_sample = None  # type: ignore[attr-defined]
        seen = x if self._augment is None else self._augment(x, step, view)
        # Gradients of the input only: those of the weights, summed without a clip, never exist.
        seen = seen.clone().requires_grad_()
        losses = F.cross_entropy(self._module(seen), y, reduction="none")
        torch.autograd.grad(losses.sum(), [seen], retain_graph=self._ghost)
        return losses

    def _checked_factors(self, norms: torch.Tensor, clip: NetworkClip, step: int) -> torch.Tensor:
        """What each record's gradient is multiplied with, after a look at what comes out."""
        if not torch.isfinite(norms).all():
            raise BadInput(
                "a loss is not a number",
                where=f"step {step}",
                why="clipping cannot bound it; what was drawn for the step stays charged",
                remedy="lower the learning rate, or scale the records to smaller numbers",
            )
        factors = self._factors(norms, clip)
        if not (norms * factors <= float(clip.norm) * (1 + NORM_TOLERANCE)).all():
            raise _too_long(step)
        return factors

    @staticmethod
    def _factors(norms: torch.Tensor, clip: NetworkClip) -> torch.Tensor:
        return (float(clip.norm) / norms.clamp(min=1e-30)).clamp(max=1.0)


def _per_record(weight: nn.Parameter, name: str, size: int) -> torch.Tensor:
    """What Opacus' hooks have left on a weight, a row a record."""
    found = getattr(weight, name)
    if not isinstance(found, torch.Tensor) or len(found) != size:
        raise _unfit("network", "a weight has no gradient of its own for every record")
    return found.detach().reshape(size, -1)


def _unfit(where: str, what: str) -> BadInput:
    return BadInput(
        what,
        where=where,
        why="one record's gradient could not be bounded",
        remedy="see the arguments of NetworkRecords",
    )


def _too_long(step: int) -> NumericalDoubt:
    return NumericalDoubt(
        "a clipped gradient is longer than the clip",
        where=f"step {step}",
        why="the noise would be too small for it; what was drawn for the step stays charged",
        remedy="report this: it is a fault of the arithmetic, not of the data",
    )
