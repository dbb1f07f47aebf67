"""An ONNX file as a network: run by ONNX Runtime, without gradients, which no teacher needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.extras import needed

SCORES = "logits"


def read_onnx(path: Path, given: tuple[int, ...]) -> tuple[nn.Module, list[npt.NDArray[Any]]]:
    """The network in an ONNX file, and its weights.

    Args:
        path: the file.
        given: the shape of one picture as networks are given it.

    Raises:
        BadInput: it cannot be read, or takes or gives something else.
    """
    with needed("onnx", where="plain.file", why="it shows what the model takes and gives"):
        import onnx
    with needed("onnxruntime", where="plain.file", why="ONNX Runtime runs the model"):
        import onnxruntime
    content = path.read_bytes()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        weights = list(_arrays(onnx.load_model_from_string(content).graph))
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise BadInput(
            f"the ONNX file cannot be read ({type(error).__name__})",
            where=str(path),
            why="the model must be whole, and its weights within the file",
            remedy="export it again, into one file, with operators that ONNX Runtime knows",
        ) from None
    inputs, outputs = session.get_inputs(), [value.name for value in session.get_outputs()]
    taken = " and ".join(f"{value.type} {value.shape}" for value in inputs) or "nothing"
    if len(inputs) != 1 or not _takes(inputs[0], given):
        raise unfit(
            path,
            f"the model takes {taken}, not batches of floats of shape {given}",
            "give data.shape as its records are; it is given pictures, channels first, of numbers "
            "from 0 to 1: what else it needs belongs into the file",
        )
    if len(outputs) > 1 and SCORES not in outputs:
        raise unfit(
            path,
            f"the model gives {len(outputs)} things and none is called `{SCORES}`",
            f"let it give one row of scores per picture, or call that output `{SCORES}`",
        )
    # An infinity may be a constant of the graph, such as a mask.
    if not weights or any(np.isnan(array).any() for array in weights):
        raise unfit(path, "the weights are missing, or not all numbers", "save the model again")
    size = inputs[0].shape[0]
    scores = SCORES if SCORES in outputs else outputs[0]
    return _OnnxNetwork(session, scores, size if isinstance(size, int) else None), weights


def unfit(path: Path, what: str, remedy: str) -> BadInput:
    """The refusal of a model that a student cannot learn from."""
    why = "a student can only learn from one row of scores per picture, which is its own"
    return BadInput(what, where=f"plain.file, {path}", why=why, remedy=remedy)


class _OnnxNetwork(nn.Module):
    """An ONNX file behind a module's face, on one thread.

    Args:
        session: of ONNX Runtime.
        output: the name of its scores.
        together: how many pictures it takes at a time; None for any number.
    """

    def __init__(self, session: Any, output: str, together: int | None) -> None:
        super().__init__()
        self._session, self._output, self._together = session, output, together
        self._input = session.get_inputs()[0].name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._together is None:
            return self._scores(x)
        parts = []
        for some in torch.split(x, self._together):
            missing = self._together - len(some)
            filled = torch.cat([some, some.new_zeros(missing, *some.shape[1:])])
            parts.append(self._scores(filled)[: len(some)])
        return torch.cat(parts)

    def _scores(self, x: torch.Tensor) -> torch.Tensor:
        (said,) = self._session.run([self._output], {self._input: x.contiguous().numpy()})
        return torch.from_numpy(said)


def _takes(value: Any, given: tuple[int, ...]) -> bool:
    """Whether an input takes batches of such pictures; a size with a name is any size."""
    batch, *sizes = value.shape or [0]
    return (
        value.type == "tensor(float)"
        and batch != 0
        and len(sizes) == len(given)
        and all(not isinstance(a, int) or a == b for a, b in zip(sizes, given, strict=True))
    )


def _arrays(graph: Any) -> Iterator[npt.NDArray[Any]]:
    """The weights of an ONNX graph and of the graphs within it: floats, and numbers of 8 bits."""
    from onnx import numpy_helper

    tensors = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            tensors += [attribute.t] if attribute.HasField("t") else []
            tensors += attribute.tensors
            inner = [attribute.g] if attribute.HasField("g") else []
            for part in (*inner, *attribute.graphs):
                yield from _arrays(part)
    for tensor in tensors:
        if tensor.data_location or tensor.external_data:
            raise ValueError("it keeps weights outside the file")
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f" or array.dtype.itemsize == 1:
            yield array
