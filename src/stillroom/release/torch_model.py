"""A torch network as a released model; the only module of this room that needs torch."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.engine.workers import one_thread
from stillroom.errors import BadInput
from stillroom.models import parameter_count
from stillroom.release.compression import quiet
from stillroom.release.graph import SCORED
from stillroom.release.linear_graph import IR_VERSION
from stillroom.release.strangers_model import TOGETHER

_OPSET = 18
"""The oldest that the exporter writes without converting."""
_LEFT_OUT = ("doc_string", "metadata_props", "value_info")
"""Where the exporter puts stack traces with the paths of this machine; a graph runs without."""


class TorchModel:
    """A network from raw float32 records to logits, as it was when it was handed over.

    Assumes: without its state dict the network tells nothing about sensitive records.

    Args:
        network: takes records (N, *shape) and gives (N, classes); copied, and used in eval mode.
        shape: of one record as it is stored in a data set.
        about: what kind of model it is, in one line.

    Raises:
        BadInput: the network does not give one row of scores per record.

    >>> layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    >>> model = TorchModel(layers, (8, 8), "one linear layer")
    >>> model.outputs, model.parameters, sorted(model.tensors())
    (3, 195, ['1.bias', '1.weight'])
    """

    def __init__(self, network: nn.Module, shape: tuple[int, ...], about: str) -> None:
        self.shape = tuple(int(size) for size in shape)
        self.about = about
        self.network = copy.deepcopy(network).cpu().float().eval().requires_grad_(False)
        self.outputs = self._count_outputs()
        self._written: dict[tuple[str, ...], bytes] = {}

    @property
    def parameters(self) -> int:
        """How many trained numbers it has."""
        return parameter_count(self.network)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The state dict, buffers included."""
        state = self.network.state_dict()
        return {name: tensor.contiguous().numpy().copy() for name, tensor in state.items()}

    def logits(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The scores of records, by torch on one thread."""
        records = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
        with one_thread(), torch.no_grad():
            parts = [self.network(some) for some in torch.split(records, TOGETHER)]
        scores: npt.NDArray[np.float32] = torch.cat(parts).numpy()
        return scores

    def onnx(self, classes: tuple[str, ...]) -> bytes:
        """The ONNX file: weights inside, nothing in it from the machine it was written on.

        Raises:
            BadInput: the network has a part that ONNX cannot say.
        """
        if classes not in self._written:  # a report and a bundle want the same file
            # Three records: one would be taken for a constant.
            example = torch.zeros(3, *self.shape)
            told = {"classes": json.dumps(list(classes))}
            labelled, names = _Labelled(self.network), list(SCORED)
            self._written[classes] = exported(labelled, example, names, "model.onnx", told)
        return self._written[classes]

    def _count_outputs(self) -> int:
        try:
            with one_thread(), torch.no_grad():
                scores = self.network(torch.zeros(2, *self.shape))
        except Exception as error:
            raise BadInput(
                f"the network cannot read records of shape {self.shape} ({type(error).__name__})",
                where="model",
                why="a released model takes records as they are stored",
                remedy="put `AsPictures` in front of it, or give the shape it takes",
            ) from error
        given = tuple(scores.shape) if isinstance(scores, torch.Tensor) else ()
        if len(given) != 2 or given[0] != 2:
            raise BadInput(
                "the network does not give one row of scores per record",
                where="model",
                why="each record needs one score per class",
                remedy="end it with a linear layer and return its result alone",
            )
        return given[1]


class _Labelled(nn.Module):
    """A network that says the label as well."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.network(x)
        return scores, scores.argmax(dim=1)


def exported(
    network: nn.Module, example: torch.Tensor, gives: list[str], file: str, told: dict[str, str]
) -> bytes:
    """A network as an ONNX file: weights inside, nothing in it from this machine.

    Args:
        network: from rows `x` to its outputs.
        example: some rows.
        gives: the names of the outputs.
        file: what the file will be called, for messages.
        told: what the file says beside its graph.

    Raises:
        BadInput: the network has a part that ONNX cannot say.
    """
    from onnx import checker, helper

    model = _program(network, example, gives, file)
    _strip(model)
    model.ir_version = IR_VERSION
    model.producer_name, model.producer_version = "stillroom", ""
    model.graph.name = "stillroom"
    helper.set_model_props(model, told)
    checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _program(network: nn.Module, example: torch.Tensor, gives: list[str], file: str) -> Any:
    try:
        with one_thread(), torch.no_grad(), quiet():
            program = torch.onnx.export(
                network.eval(),
                (example,),
                input_names=["x"],
                output_names=gives,
                dynamic_shapes=({0: torch.export.Dim("N", min=1)},),
                opset_version=_OPSET,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
    except Exception as error:
        raise BadInput(
            f"the network cannot be written as ONNX ({type(error).__name__})",
            where=file,
            why="whoever receives the model runs it without torch",
            remedy="build it of layers that torch.onnx.export knows, for any number of records",
        ) from error
    assert program is not None
    return program.model_proto


def _strip(message: Any) -> None:
    """Remove every remark from an ONNX message and all it holds."""
    for field, value in message.ListFields():
        if field.name in _LEFT_OUT:
            message.ClearField(field.name)
        elif hasattr(value, "ListFields"):
            _strip(value)
        elif field.message_type is not None:
            for part in value:
                _strip(part)
