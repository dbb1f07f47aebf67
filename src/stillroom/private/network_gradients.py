"""Each record's own gradient of a network's loss, for a chunk of records at a time.

Opacus finds them during one backward pass, weight by weight. They are single-precision numbers, and
whatever is made of them, lengths and weighted sums, is double precision: a record's length and its
term of a sum come from the very same numbers, so that the one bounds the other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from opacus.grad_sample import GradSampleModule
from torch import nn

from stillroom.models.augmentation import Augment
from stillroom.models.flat_weights import trainable

BLOCK = 2**22
"""Numbers turned into double precision at a time, so that this costs no memory to speak of."""

CANCELLED = 2.0**-30
"""Share of (the sum of lengths)^2 that is added to the square of a sum's length.

Gradients of one person may cancel each other: what double precision then leaves of their sum is
rounding, which differs from one order of adding to another. It is below 2^-32 of the lengths.
"""


@dataclass(frozen=True, eq=False)
class Owners:
    """Whose record each row is, where a person's gradients are summed before they are clipped.

    Args:
        of: the owner of each row, numbered from 0.
        count: how many owners there are.
    """

    of: torch.Tensor
    count: int

    def sums(self, rows: torch.Tensor) -> torch.Tensor:
        """The sum of each owner's rows, double precision."""
        total = torch.zeros((self.count, *rows.shape[1:]), dtype=torch.float64)
        return total.index_add_(0, self.of, rows.double())

    def margin(self, squares: torch.Tensor) -> torch.Tensor:
        """What to add to the squared length of a sum, from the squared lengths of its terms."""
        return CANCELLED * self.sums(squares.sqrt()).square()


class Written:
    """One weight's gradients, one per record, written out in rows."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows.detach().reshape(len(rows), -1)
        self._block = max(1, BLOCK // max(1, self.rows.shape[1]))

    def __len__(self) -> int:
        return len(self.rows)

    def squares(self, owners: Owners | None = None) -> torch.Tensor:
        """The squared length of each, or of each owner's sum; double precision."""
        blocks = torch.split(self.rows, self._block)
        own = torch.cat([torch.linalg.vector_norm(b.double(), dim=1) for b in blocks]).square()
        if owners is None:
            return own
        squares = owners.margin(own)
        for columns in torch.split(self.rows, max(1, BLOCK // max(1, len(self.rows))), dim=1):
            squares += owners.sums(columns).square().sum(dim=1)
        return squares

    def weighted(self, factors: torch.Tensor) -> torch.Tensor:
        """Their sum, each times its factor; one with factor zero takes no part, even if NaN."""
        total = torch.zeros(self.rows.shape[1], dtype=torch.float64)
        for some in torch.split(torch.nonzero(factors)[:, 0], self._block):
            total += factors[some] @ self.rows[some].double()
        return total


class Outer:
    """The same for a linear layer: outer products, whose length is that of the two factors."""

    def __init__(self, left: torch.Tensor, right: torch.Tensor) -> None:
        self._left, self._right = left.detach(), right.detach()

    def __len__(self) -> int:
        return len(self._left)

    def squares(self, owners: Owners | None = None) -> torch.Tensor:
        left, right = self._left.double(), self._right.double()
        own = left.square().sum(dim=1) * right.square().sum(dim=1)
        if owners is None:
            return own
        # (l r^T, m s^T) = (l, m)(r, s): the sum's square by two Gram matrices.
        gram = (left @ left.T) * (right @ right.T)
        alike = torch.where(owners.of[:, None] == owners.of, gram, 0.0).sum(dim=1)
        return owners.sums(alike).clamp(min=0.0) + owners.margin(own)

    def weighted(self, factors: torch.Tensor) -> torch.Tensor:
        some = torch.nonzero(factors)[:, 0]
        left = factors[some, None] * self._left[some].double()
        return (left.T @ self._right[some].double()).reshape(-1)


RecordGradients = Written | Outer
Take = Callable[[nn.Parameter, RecordGradients], None]


class _Hooked(GradSampleModule):  # type: ignore[misc]
    """Opacus' hooks; each weight's gradients are handed on as soon as they are complete."""

    def __init__(self, network: nn.Module, *, factored: bool) -> None:
        super().__init__(network, loss_reduction="sum")
        self._factored = factored
        self.take: Take = lambda weight, gradients: None

    def start_afresh(self) -> None:
        """Forget what a pass that was broken off has left behind."""
        for layer in self._module.modules():
            for name in ("activations", "max_batch_len"):
                if name in layer.__dict__:
                    delattr(layer, name)
        for weight in trainable(self._module):
            weight.grad_sample, weight._forward_counter = None, 0  # type: ignore[attr-defined]
            if hasattr(weight, "_current_grad_sample"):
                del weight._current_grad_sample

    def capture_backprops_hook(
        self, module: Any, given: Any, back: Any, loss_reduction: str, batch_first: bool
    ) -> None:
        """What Opacus calls for each layer on the way back."""
        if not self.hooks_enabled:
            return
        if self._is_outer(module, back[0]):
            activations, backprops = self.rearrange_grad_samples(
                module=module,
                backprops=back[0].detach(),
                loss_reduction=loss_reduction,
                batch_first=batch_first,
            )
            self.take(module.weight, Outer(backprops, activations[0]))
            if module.bias is not None and module.bias.requires_grad:
                self.take(module.bias, Written(backprops))
            return
        super().capture_backprops_hook(module, given, back, loss_reduction, batch_first)
        for weight in trainable(module):
            found = getattr(weight, "grad_sample", None)
            if isinstance(found, torch.Tensor):
                self.take(weight, Written(found))
                weight.grad_sample = None  # type: ignore[attr-defined]

    def _is_outer(self, module: nn.Module, back: torch.Tensor) -> bool:
        """Whether a linear layer is used once only, for one row per record."""
        return (
            self._factored
            and type(module) is nn.Linear
            and back.dim() == 2
            and module.weight.requires_grad
            and all(
                weight._forward_counter == 1  # type: ignore[attr-defined]
                and not hasattr(weight, "_current_grad_sample")
                for weight in trainable(module)
            )
        )


class NetworkGradients:
    """Gradients of the cross-entropy, record by record, all weights at once.

    Assumes: what the hooks find is the loss's own gradient; `network_check` compares them.

    Args:
        network: a copy is used, in training mode.
        augment: how views of a record are made; None for the record itself.
        views: how many views a record's gradient is averaged over.
        class_weights: what a record's loss is multiplied by, by its class; public numbers.
    """

    factored = False

    def __init__(
        self,
        network: nn.Module,
        *,
        augment: Augment | None,
        views: int,
        class_weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.network = copy.deepcopy(network).train()
        self.weights = trainable(self.network)
        self.views, self._augment = views, augment
        self._hooked = _Hooked(self.network, factored=self.factored)
        given = class_weights
        self._class_weights = None if given is None else torch.from_numpy(given).float()

    def norms(
        self, x: torch.Tensor, y: torch.Tensor, step: int, owners: Owners | None = None
    ) -> torch.Tensor:
        """The length of each record's gradient; NaN where not every weight has one per record.

        Args:
            x: the records.
            y: their labels.
            step: of the training, for augmentation.
            owners: sum the gradients of each owner, and give the length of the sum instead.
        """
        self._kept: dict[int, Written] = {}
        complete = [self._visit(x, y, step, view, self._keep) for view in range(self.views)]
        squares = torch.zeros(len(x) if owners is None else owners.count, dtype=torch.float64)
        for gradients in self._kept.values():
            squares += gradients.squares(owners)
        self._lengths = squares.sqrt().div_(self.views) if all(complete) else squares * torch.nan
        return self._lengths

    def weighted(self, factors: torch.Tensor) -> tuple[npt.NDArray[np.float64], torch.Tensor]:
        """The sum of the gradients that `norms` has just measured, each times its factor.

        Args:
            factors: one per record; a record with factor zero takes no part.

        Returns:
            The sum, as one vector, and the lengths that `norms` gave.
        """
        kept, self._kept = self._kept, {}
        parts = {key: found.weighted(factors / self.views) for key, found in kept.items()}
        return self._joined(parts), self._lengths

    def seen(self, x: torch.Tensor, step: int, view: int) -> torch.Tensor:
        """The records as the network is shown them."""
        return x if self._augment is None else self._augment(x, step, view)

    def losses(self, scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """What the gradients are of: each record's cross-entropy, times the weight of its class."""
        losses = F.cross_entropy(scores, y, reduction="none")
        return losses if self._class_weights is None else losses * self._class_weights[y]

    @contextmanager
    def without_hooks(self) -> Iterator[None]:
        """The network as autograd sees it."""
        self._hooked.disable_hooks()
        try:
            yield
        finally:
            self._hooked.enable_hooks()

    def _keep(self, weight: nn.Parameter, found: RecordGradients) -> None:
        assert isinstance(found, Written)
        if id(weight) in self._kept:
            self._kept[id(weight)].rows.add_(found.rows)
        else:
            self._kept[id(weight)] = found

    def _joined(self, parts: dict[int, torch.Tensor]) -> npt.NDArray[np.float64]:
        """One vector, in the order of the weights; zeros for a weight without gradients."""
        joined = [
            parts.get(id(weight), torch.zeros(weight.numel(), dtype=torch.float64))
            for weight in self.weights
        ]
        return torch.cat(joined).numpy()

    def _visit(self, x: torch.Tensor, y: torch.Tensor, step: int, view: int, take: Take) -> bool:
        """One backward pass; whether every weight came once, with a gradient per record."""
        met: list[int] = []
        whole = True

        def once(weight: nn.Parameter, found: RecordGradients) -> None:
            nonlocal whole
            whole = whole and id(weight) not in met and len(found) == len(x)
            met.append(id(weight))
            if whole:
                take(weight, found)

        self._hooked.start_afresh()
        self._hooked.take = once
        # Gradients of the input only: those of the weights, summed without a clip, never exist.
        seen = self.seen(x, step, view).clone().requires_grad_()
        losses = self.losses(self._hooked(seen), y)
        torch.autograd.grad(losses.sum(), [seen])
        return whole and len(met) == len(self.weights)


class LayerByLayer(NetworkGradients):
    """The same without keeping them (ghost clipping): one pass for lengths, another for the sum.

    A linear layer's gradients are never written out, those of other layers one layer at a time.
    The second pass makes the same numbers again, and measures them again.
    """

    factored = True

    def norms(
        self, x: torch.Tensor, y: torch.Tensor, step: int, owners: Owners | None = None
    ) -> torch.Tensor:
        self._shown, self._owners = (x, y, step), owners
        return self._measured(lambda weight, found: None)

    def weighted(self, factors: torch.Tensor) -> tuple[npt.NDArray[np.float64], torch.Tensor]:
        parts: dict[int, torch.Tensor] = {}

        def add(weight: nn.Parameter, found: RecordGradients) -> None:
            parts[id(weight)] = found.weighted(factors)

        lengths = self._measured(add)
        return self._joined(parts), lengths

    def _measured(self, take: Take) -> torch.Tensor:
        """Another pass; the lengths of the gradients that it hands on."""
        (x, y, step), owners = self._shown, self._owners
        squares = torch.zeros(len(x) if owners is None else owners.count, dtype=torch.float64)

        def measure(weight: nn.Parameter, found: RecordGradients) -> None:
            squares.add_(found.squares(owners))
            take(weight, found)

        complete = self._visit(x, y, step, 0, measure)
        return squares.sqrt() if complete else squares * torch.nan
