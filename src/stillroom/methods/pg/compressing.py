"""Pruned and coded weights of a generated network: post-processing, so the price stays the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import nn

from stillroom.models.flat_weights import Flat
from stillroom.public.compression import coded_tensors, with_codes
from stillroom.public.pruning import LEAST_DIMENSIONS, Kept
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.torch_model import TorchModel


def coded_network(
    layers: nn.Module,
    kept: Kept,
    shape: tuple[int, ...],
    about: str,
    *,
    codebook_bits: int,
    residual_bits: int,
) -> CompressedModel:
    """A network whose kept weights are codes, and the others zero.

    Args:
        layers: from records as they are stored to scores.
        kept: which weights are, by the name of their tensor.
        shape: of a record.
        about: what kind of model it is.
        codebook_bits: of a code.
        residual_bits: of what it leaves over.
    """
    codes = coded_tensors(layers, kept, codebook_bits, residual_bits)
    return CompressedModel(TorchModel(with_codes(layers, codes), shape, about), codes)


def masks_of(layers: nn.Module, kept: npt.NDArray[np.bool_]) -> Kept:
    """A mask of flat weights by the names of their tensors; biases and norms are not coded."""
    masks, start = {}, 0
    for name, weight in layers.named_parameters():
        own = kept[start : start + weight.numel()].reshape(weight.shape)
        start += weight.numel()
        if own.ndim >= LEAST_DIMENSIONS:
            masks[name] = own
    return masks


def flat_importance(told: dict[str, npt.NDArray[np.float32]]) -> Flat:
    """The importance of all weights, in the order of the flat vector."""
    return np.concatenate([one.reshape(-1) for one in told.values()])
