"""A network pruned and quantised: batch norms folded, unimportant weights zero, the others coded.

All of it is post-processing of a sanitised network with public pictures, and costs nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from stillroom.engine.workers import one_thread
from stillroom.public.codebooks import MOST_WEIGHTS, Coded, coded
from stillroom.public.pruning import Kept, most_important

TOGETHER = 32
"""Pictures whose gradients are added before importance is measured."""
MOST_PICTURES = 1024


def importance(
    network: nn.Module, pictures: npt.NDArray[Any], labels: npt.NDArray[Any] | None = None
) -> dict[str, npt.NDArray[np.float32]]:
    """How much each weight matters: |weight x gradient| of the cross-entropy on pictures.

    To first order that is by how much the loss changes when the weight becomes zero. It is averaged
    over batches: over all pictures at once, what a weight does for some cancels what it does
    against others, and far more accuracy is lost when the weights are pruned.

    Guarantee: nothing is looked at but the arguments.

    Args:
        network: from pictures to one score per class; not changed, and used in eval mode.
        pictures: public ones.
        labels: their classes; those the network itself gives them when left out.

    Returns:
        One array per parameter, by its name in the network.
    """
    twin = copy.deepcopy(network).eval().requires_grad_(True)
    found = {name: torch.zeros_like(weights) for name, weights in twin.named_parameters()}
    with one_thread():
        for start in range(0, len(pictures), TOGETHER):
            some = np.array(pictures[start : start + TOGETHER], dtype=np.float32)
            scores = twin(torch.from_numpy(some))
            wanted = (
                scores.detach().argmax(1)
                if labels is None
                else torch.from_numpy(np.array(labels[start : start + TOGETHER], dtype=np.int64))
            )
            twin.zero_grad()
            loss = nn.functional.cross_entropy(scores, wanted, reduction="sum")
            loss.backward()  # type: ignore[no-untyped-call]
            for name, weights in twin.named_parameters():
                if weights.grad is not None:
                    found[name] += (weights * weights.grad).detach().abs() / len(pictures)
    return {name: told.detach().numpy() for name, told in found.items()}


def folded(network: nn.Module) -> nn.Module:
    """A copy of a network whose batch norms are folded into the layers right before them.

    That is what they come to once training is over. An ONNX file has them folded, and it holds the
    codes of weights only if these are the weights that it would hold.

    Args:
        network: sequences of layers, at any depth.
    """
    whole = copy.deepcopy(network).eval()
    for sequence in whole.modules():
        if not isinstance(sequence, nn.Sequential):
            continue
        for place in range(len(sequence) - 1):
            fused = _fused(sequence[place], sequence[place + 1])
            if fused is not None:
                sequence[place], sequence[place + 1] = fused, nn.Identity()
    return whole


def _fused(layer: nn.Module, norm: nn.Module) -> nn.Module | None:
    if not isinstance(norm, _BatchNorm) or norm.running_var is None:
        return None
    if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return fuse_conv_bn_eval(layer, norm)
    return fuse_linear_bn_eval(layer, norm) if isinstance(layer, nn.Linear) else None


def compressed(
    network: nn.Module,
    pictures: npt.NDArray[Any],
    *,
    kept: Fraction | float,
    codebook_bits: int,
    residual_bits: int,
) -> tuple[nn.Module, dict[str, Coded]]:
    """A network with the given share of its weights, each as centroid and residual.

    Guarantee: `array` of each code is, bit for bit, the tensor of that name in the new network.

    Args:
        network: from pictures to one score per class; not changed.
        pictures: public ones; the network itself labels them. A thousand are enough, and of more
            no more are looked at.
        kept: the share of the weights in tensors of two and more dimensions that is kept.
        codebook_bits: of a code, 1 to 8.
        residual_bits: of a residual, 0 to 8.

    Returns:
        The new network, its batch norms folded, and the codes by the names of its tensors.

    Raises:
        BadInput: a number is out of range, or the network has no such tensors.
    """
    whole = folded(network)
    # Evenly, since records may stand there class by class.
    some = np.linspace(0, len(pictures) - 1, min(len(pictures), MOST_PICTURES)).astype(np.int64)
    masks = most_important(importance(whole, pictures[some]), kept)
    codes = coded_tensors(whole, masks, codebook_bits, residual_bits)
    return with_codes(whole, codes), codes


def coded_tensors(
    network: nn.Module, kept: Kept, codebook_bits: int, residual_bits: int
) -> dict[str, Coded]:
    """The tensors that are pruned, each with a codebook of its own; too large ones are left out."""
    weights = dict(network.named_parameters())
    return {
        name: coded(weights[name].detach().numpy(), mask, codebook_bits, residual_bits)
        for name, mask in kept.items()
        if mask.size <= MOST_WEIGHTS
    }


def with_codes(network: nn.Module, codes: Mapping[str, Coded]) -> nn.Module:
    """A copy of a network with what the codes stand for in place of its own tensors."""
    whole = copy.deepcopy(network)
    state = {name: torch.from_numpy(code.array()) for name, code in codes.items()}
    whole.load_state_dict(state, strict=False)
    return whole
