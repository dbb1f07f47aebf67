"""Whether a model fits the data, and whether it may be trained privately, before anything is spent.

Only zeros and made-up numbers are shown to the model: a check must not look at records.
"""

from __future__ import annotations

import copy
import warnings

import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.randomness import normals, seeded_torch


def parameter_count(model: nn.Module) -> int:
    """How many trained numbers a model has.

    >>> parameter_count(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in model.parameters())


def check_fits(
    model: nn.Module, shape: tuple[int, ...], classes: int, *, private_training: bool
) -> None:
    """Refuse a model that does not give one finite row of class scores a record.

    Guarantee: with `private_training`, what the model computes for one record does not change with
    the records beside it, as far as made-up records show; clipping one record's gradient bounds
    that record's influence only then.

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
    # On a copy: a batch norm learns from every batch it sees in training.
    trial = copy.deepcopy(model).cpu()
    _check_scores(trial.eval(), shape, classes)
    if private_training:
        trial.train()
        _refuse_batch_norm(trial)
        _refuse_mixing(trial, shape)
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
            remedy="let its first layer take this shape; pictures are (channels, height, width)",
        ) from error
    given = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
    if given != (2, classes):
        raise BadInput(
            f"the model gives {given} for 2 records, not (2, {classes})",
            where="model",
            why="each record needs one score a class",
            remedy=f"end it with a linear layer of {classes} outputs and return its result alone",
        )
    if not torch.isfinite(scores).all():
        raise BadInput(
            "the model's scores are not finite, already for a record of zeros",
            where="model",
            why="a gradient that is no number cannot be clipped",
            remedy="look for a division by zero, a logarithm, or weights that are not finite",
        )


def _refuse_batch_norm(model: nn.Module) -> None:
    for name, layer in model.named_modules():
        # All batch norms and, through their buffers, instance norms that keep running averages.
        if isinstance(layer, nn.modules.batchnorm._NormBase) and (
            isinstance(layer, nn.modules.batchnorm._BatchNorm) or layer.track_running_stats
        ):
            raise _mixes(f"the layer {name or 'itself'} ({type(layer).__name__}) mixes records")


def _refuse_mixing(model: nn.Module, shape: tuple[int, ...]) -> None:
    """Catch by its deeds what has no telling name: one record, in two kinds of company."""
    one, other = torch.from_numpy(normals(0, "made-up records", size=(2, *shape))).float()
    scores = []
    with torch.no_grad():
        for beside in (other, 3 * other + 1):
            with seeded_torch(0, "company"):
                scores.append(model(torch.stack([one, beside]))[0])
    if not torch.allclose(scores[0], scores[1], rtol=1e-3, atol=1e-5):
        raise _mixes("a record's scores change with the records beside it")


def _mixes(what: str) -> BadInput:
    return BadInput(
        what,
        where="model",
        why="one record then moves the gradients of others, and clipping no longer bounds it",
        remedy="use GroupNorm or LayerNorm instead, which work within one record",
    )


def _refuse_what_opacus_cannot(model: nn.Module) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from opacus.validators import ModuleValidator
        except ImportError:
            return
        faults = ModuleValidator.validate(model, strict=False)
    if faults:
        raise BadInput(
            f"a layer has no gradient of single records: {faults[0]}",
            where="model",
            why="a record whose gradient is not known cannot be clipped",
            remedy="replace the layer by one that opacus supports, such as GroupNorm or DPLSTM",
        )
