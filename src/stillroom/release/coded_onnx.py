"""An ONNX file whose weights are codes: a few plain operators make the tensors when it is loaded.

A coded tensor takes the place of the float32 one where that makes the file smaller. Codes of up to
four bits share bytes; small tables take them apart. Kept weights find their places by one bit per
weight, or, where few are kept, by how far each is from the one before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.public.codebooks import Coded
from stillroom.release.bits import pack

LONGEST_GAP = 255


def coded_onnx(content: bytes, codes: Mapping[str, Coded]) -> bytes:
    """An ONNX file with codes in place of the tensors that they decode to.

    Guarantee: every tensor that is decoded when the file is run has the bits it had before.

    Args:
        content: the ONNX file, weights inside.
        codes: of any of its tensors; which they are is seen by their bits.
    """
    from onnx import checker, load_model_from_string, numpy_helper

    model = load_model_from_string(content)
    graph, known = model.graph, _by_bits(codes.values())
    nodes: list[Any] = []
    tensors: dict[str, Any] = {}
    for tensor in list(graph.initializer):
        array = numpy_helper.to_array(tensor)
        code = known.get((array.dtype.str, array.shape, array.tobytes()))
        if code is None:
            continue
        made = _Decoding(tensor.name, str(len(tensors)), code)
        new = {name: one for name, one in made.tensors.items() if name not in tensors}
        parts = [*made.nodes, *new.values()]
        if sum(part.ByteSize() for part in parts) < tensor.ByteSize():
            graph.initializer.remove(tensor)
            nodes, tensors = [*nodes, *made.nodes], tensors | new
    graph.initializer.extend(tensors.values())
    others = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *others])
    checker.check_model(model, full_check=True)
    found: bytes = model.SerializeToString(deterministic=True)
    return found


def _by_bits(codes: Collection[Coded]) -> dict[tuple[str, tuple[int, ...], bytes], Coded]:
    """Codes by the tensors they stand for; exporters transpose some matrices."""
    both = [*codes, *(code.transposed() for code in codes if len(code.shape) == 2)]
    arrays = [code.array() for code in both]
    return {
        (array.dtype.str, array.shape, array.tobytes()): code
        for array, code in zip(arrays, both, strict=True)
    }


class _Decoding:
    """The nodes that make a tensor, and the tensors they make it of.

    Args:
        name: of the tensor.
        prefix: of the names of all else; short, since each stands in the file twice.
        code: what it decodes to.
    """

    def __init__(self, name: str, prefix: str, code: Coded) -> None:
        self._prefix = prefix
        self.nodes: list[Any] = []
        self.tensors: dict[str, Any] = {}
        shape = self._tensor("shape", np.array(code.shape, dtype=np.int64))
        count, size = len(code.codes), code.kept.size
        if not count:
            zero = self._shared("zero", np.zeros(1, dtype=np.float32))
            self._node("Expand", zero, shape, output=name)
            return
        flat = self._values(code)
        if count < size:
            gaps = np.diff(np.flatnonzero(code.kept), prepend=0)
            long = np.flatnonzero(gaps > LONGEST_GAP)
            far = count + 8 * len(long) < size // 8
            flat = self._by_gaps(flat, gaps, long, size) if far else self._by_bits(flat, code.kept)
        self._node("Reshape", flat, shape, output=name)

    def _values(self, code: Coded) -> str:
        """The kept weights, in order."""
        book = self._tensor("codebook", code.codebook)
        found = self._node("Gather", book, self._codes("codes", code.codes, code.code_bits))
        if code.residuals is None:
            return found
        middle = 2 ** (code.residual_bits - 1)
        steps = np.arange(-middle, middle).astype(np.float32) * np.float32(code.step)
        numbers = code.residuals.astype(np.int64) + middle
        residuals = self._codes("residuals", numbers, code.residual_bits)
        more = self._node("Gather", self._tensor("steps", steps), residuals)
        return self._node("Add", found, more)

    def _by_bits(self, values: str, kept: npt.NDArray[np.bool_]) -> str:
        """Each weight is the value of its number among the kept, or zero, which stands first."""
        bits = self._codes("kept", kept.ravel(), 1)
        number = self._node("CumSum", bits, self._shared("axis", np.array(0, dtype=np.int32)))
        place = self._node("Mul", number, bits)
        zero = self._shared("zero", np.zeros(1, dtype=np.float32))
        return self._node("Gather", self._node("Concat", zero, values, axis=0), place)

    def _by_gaps(
        self,
        values: str,
        gaps: npt.NDArray[np.int64],
        long: npt.NDArray[np.int64],
        size: int,
    ) -> str:
        """Values are put into zeros, each so far behind the one before."""
        near = np.where(gaps > LONGEST_GAP, 0, gaps).astype(np.uint8)
        away = self._cast(self._tensor("gaps", near))
        if len(long):
            which = self._tensor("long", long.astype(np.int32))
            far = self._tensor("far", gaps[long].astype(np.int32))
            away = self._node("ScatterElements", away, which, far)
        places = self._node("CumSum", away, self._shared("axis", np.array(0, dtype=np.int32)))
        zero = self._shared("zero", np.zeros(1, dtype=np.float32))
        zeros = self._node("Expand", zero, self._tensor("size", np.array([size], dtype=np.int64)))
        return self._node("ScatterElements", zeros, places, values)

    def _codes(self, word: str, numbers: npt.NDArray[Any], bits: int) -> str:
        """Numbers of a few bits as int32; those that fit share a byte."""
        each = next(wide for wide in (1, 2, 4, 8) if wide >= bits)
        found = self._cast(self._tensor(word, pack(numbers, each)))
        if each == 8:
            return found
        found = self._apart(found, 8, 4)
        if each < 4:
            found = self._apart(found, 4, each)
        line = self._shared("line", np.array([-1], dtype=np.int64))
        flat = self._node("Reshape", found, line)
        if len(numbers) * each % 8 == 0:
            return flat
        start = self._shared("start", np.zeros(1, dtype=np.int64))
        end = self._tensor(f"{word}.count", np.array([len(numbers)], dtype=np.int64))
        return self._node("Slice", flat, start, end)

    def _apart(self, numbers: str, bits: int, each: int) -> str:
        """Numbers of some bits as rows of numbers with fewer, by a table of all there are."""
        every = np.arange(2**bits)[:, None] >> np.arange(0, bits, each)
        table = (every % 2**each).astype(np.uint8)
        return self._cast(self._node("Gather", self._shared(f"{bits}to{each}", table), numbers))

    def _cast(self, value: str) -> str:
        from onnx import TensorProto

        return self._node("Cast", value, to=TensorProto.INT32)

    def _tensor(self, word: str, array: npt.NDArray[Any]) -> str:
        return self._shared(f"{self._prefix}/{word}", array)

    def _shared(self, name: str, array: npt.NDArray[Any]) -> str:
        """A tensor that others of the file may use as well."""
        from onnx import numpy_helper

        whole = f"/{name}"
        self.tensors[whole] = numpy_helper.from_array(np.asarray(array, order="C"), whole)
        return whole

    def _node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        made = output or f"/{self._prefix}/{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [made], **attributes))
        return made
