"""A finished model pruned and coded, as a recipe's [compression] says; that costs nothing."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from stillroom.public.compression import compressed
from stillroom.recipe.compression import CompressionSection
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.torch_model import TorchModel


def compressed_model(
    model: TorchModel, pictures: npt.NDArray[Any], section: CompressionSection
) -> CompressedModel:
    """A released network with fewer weights, and fewer bits for each.

    Assumes: the model is sanitised, and the pictures are public.

    Args:
        model: the network, from records as they are stored.
        pictures: such records; they tell which weights matter, by the labels the model gives them.
        section: how much of it is kept.
    """
    network, codes = compressed(
        model.network,
        pictures,
        kept=section.kept,
        codebook_bits=section.codebook_bits,
        residual_bits=section.residual_bits,
    )
    return CompressedModel(TorchModel(network, model.shape, model.about), codes)
