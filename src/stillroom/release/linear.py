"""A linear layer over a recipe's features, as a model that can be released."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stillroom.features.feature_map import FeatureMap
from stillroom.release.model import LinearModel, ReleasedModel


def linear_model(features: FeatureMap, weights: npt.NDArray[np.float32]) -> ReleasedModel:
    """A numpy graph for fixed features, else torch layers."""
    if features.extractor is None:
        return LinearModel(weights, features.name, features.shape)
    from stillroom.features.layers import LinearOverFeatures
    from stillroom.release.torch_model import TorchModel

    extractor = features.extractor
    layers = LinearOverFeatures(extractor.network, extractor.shortest, features.projection, weights)
    about = f"linear layer over features `{features.name}`"
    return TorchModel(layers, features.shape, about)
