"""Networks from outside the zoo: what must hold before anything is paid for."""

from __future__ import annotations

import copy

from torch import nn

from stillroom.release.model import checked_onnx
from stillroom.release.torch_model import TorchModel


def refuse_unexportable(
    name: str, layers: nn.Module, shape: tuple[int, ...], classes: tuple[str, ...]
) -> None:
    """See that an untrained network can be released; those of the zoo can.

    Args:
        name: in the zoo, or package.module:callable.
        layers: from stored records to scores.
        shape: of a record.
        classes: their names.

    Raises:
        BadInput: it has a part that ONNX cannot say, or that `predict` does not run.
        NumericalDoubt: its ONNX file gives other scores.
    """
    if ":" in name:
        untrained = copy.deepcopy(layers).eval()
        checked_onnx(TorchModel(untrained, shape, f"network `{name}`"), classes)
