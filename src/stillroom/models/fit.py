"""Whether a model fits the data, and whether it may be trained privately, before anything is spent.

Only zeros and made-up numbers are shown to the model: a check must not look at records.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn
from torch.random import fork_rng

from stillroom.errors import BadInput
from stillroom.extras import is_absent
from stillroom.models.flat_weights import trainable
from stillroom.randomness import normals, uniforms

COMPANY_TOLERANCE = 1e-4
"""What a record's company may change in its gradient, as a share of the gradient."""


def parameter_count(model: nn.Module) -> int:
    """How many trained numbers a model has.

    >>> parameter_count(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in model.parameters())


def check_fits(
    model: nn.Module, shape: tuple[int, ...], classes: int, *, private_training: bool
) -> None:
    """Refuse a model that does not give one finite row of class scores per record.

    Guarantee: with `private_training`, what the model computes for one record, scores and
    gradients, does not change with the records beside it, with its place or from one time to the
    next, as far as made-up records show; clipping one record's gradient bounds that record's
    influence only then.

    Args:
        model: is left as it was.
        shape: of one record as the model is given it.
        classes: how many classes there are.
        private_training: whether single records' gradients of it will be clipped.

    Raises:
        BadInput: it does not fit; the error says how to mend it.

    >>> check_fits(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), (1, 8, 8), 10,
    ...            private_training=True)
    """
    # On a copy, and with the generator put back: a batch norm learns from every batch it sees in
    # training, and a dropout draws.
    trial = copy.deepcopy(model).cpu()
    with fork_rng(devices=[]):
        _check_scores(trial.eval(), shape, classes)
        if private_training:
            trial.train()
            _refuse_batch_norm(trial)
            _refuse_company(trial, shape, classes)
            _refuse_what_opacus_cannot(trial)


def _check_scores(model: nn.Module, shape: tuple[int, ...], classes: int) -> None:
    try:
        with torch.no_grad():
            scores = model(torch.zeros(2, *shape))
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"the model cannot read records of shape {tuple(shape)}: {lines[0]}",
            where="model",
            why="it could not be trained on a single record",
            remedy="let its first layer take this shape; pictures are (channels, height, width)",
        ) from error
    given = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
    if given != (2, classes):
        raise BadInput(
            f"the model gives {given} for 2 records, not (2, {classes})",
            where="model",
            why="each record needs one score per class",
            remedy=f"end it with a linear layer of {classes} outputs and return its result alone",
        )
    if not torch.isfinite(scores).all():
        raise not_finite("for a record of zeros")


def _refuse_batch_norm(model: nn.Module) -> None:
    for name, layer in model.named_modules():
        # All batch norms and, through their buffers, instance norms that keep running averages.
        if isinstance(layer, nn.modules.batchnorm._NormBase) and (
            isinstance(layer, nn.modules.batchnorm._BatchNorm) or layer.track_running_stats
        ):
            raise mixes(f"the layer {name or 'itself'} ({type(layer).__name__}) mixes records")


def made_up_records(
    shape: tuple[int, ...], classes: int, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Public records of numbers between 0 and 1, and labels for them.

    >>> made_up_records((1, 8, 8), 10, 3)[0].shape
    torch.Size([3, 1, 8, 8])
    """
    records = torch.from_numpy(uniforms(0, "made-up records", size=(size, *shape))).float()
    return records, torch.arange(size) % classes


@contextmanager
def refuse_draws() -> Iterator[None]:
    """Refuse what draws from torch's generator inside; the generator is put back afterwards.

    Layers are not asked by their class: a dropout may be a mere function.

    Raises:
        BadInput: something was drawn.
    """
    with fork_rng(devices=[]):
        before = torch.get_rng_state()
        yield
        drawn = not torch.equal(torch.get_rng_state(), before)
    if drawn:
        raise BadInput(
            "the model draws random numbers while it learns, as dropout does",
            where="model",
            why="what is drawn for a record goes by its place, so that one record more or less "
            "changes the gradients of all others, and clipping no longer bounds it",
            remedy="leave dropout and other random layers out of private training; its noise keeps "
            "a model from learning by heart",
        )


def mixes(what: str) -> BadInput:
    """The refusal of a model in which a record's company matters."""
    return BadInput(
        what,
        where="model",
        why="one record then moves the gradients of others, and clipping no longer bounds it",
        remedy="use GroupNorm or LayerNorm instead, which work within one record, and leave out "
        "layers that draw random numbers",
    )


def _refuse_company(model: nn.Module, shape: tuple[int, ...], classes: int) -> None:
    """Find by trial what no class name tells: the same records, in several kinds of company.

    Nothing is seeded in between, so that what is drawn anew shows too.
    """
    own, labels = made_up_records(shape, classes, 2)
    others = torch.from_numpy(normals(0, "company", size=(2, *shape))).float()
    companies = {
        "others": (torch.cat([own, others]), [0, 1]),
        "larger others, and another place": (torch.cat([3 * others + 1, own.flip(0)]), [3, 2]),
        "blank records": (torch.cat([own, torch.zeros_like(own)]), [0, 1]),
        "their own likes": (torch.cat([0.9 * own, own]), [2, 3]),
    }
    weights = trainable(model)
    first: list[torch.Tensor] = []
    for beside, (x, places) in companies.items():
        with refuse_draws():
            scores = model(x)[places]
            loss = F.cross_entropy(scores, labels, reduction="sum")
            slopes: tuple[torch.Tensor, ...] = ()
            if weights and loss.requires_grad:
                slopes = torch.autograd.grad(
                    loss, weights, allow_unused=True, materialize_grads=True
                )
        # One vector of all weights: a slope that is zero by design has no digits of its own.
        found = [scores.detach(), torch.cat([scores.new_zeros(1), *map(torch.ravel, slopes)])]
        first = first or found
        if not all(torch.isfinite(part).all() for part in first):
            raise not_finite("for made-up records of numbers between 0 and 1")
        if not all(
            torch.linalg.vector_norm(a - b) <= COMPANY_TOLERANCE * torch.linalg.vector_norm(b)
            for a, b in zip(found, first, strict=True)
        ):
            raise mixes(f"a record's scores or gradients change with its company ({beside})")


def not_finite(when: str) -> BadInput:
    """The refusal of a model that gives no numbers."""
    return BadInput(
        f"the model's scores or gradients are not finite, already {when}",
        where="model",
        why="a gradient that is no number cannot be clipped",
        remedy="look for a division by zero, a logarithm, or weights that are not finite",
    )


def _refuse_what_opacus_cannot(model: nn.Module) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from opacus.validators import ModuleValidator
        except ModuleNotFoundError as fault:
            if not is_absent("opacus", fault):
                raise
            return
        faults = ModuleValidator.validate(model, strict=False)
    if faults:
        raise BadInput(
            f"a layer has no gradient of single records: {faults[0]}",
            where="model",
            why="a record whose gradient is not known cannot be clipped",
            remedy="replace the layer by one that opacus supports, such as GroupNorm or DPLSTM",
        )
