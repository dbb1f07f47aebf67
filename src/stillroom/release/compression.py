"""Teacher and student measured in one run: what they weigh and how long they take."""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stillroom.release.model import ReleasedModel, fixed_records
from stillroom.release.predict import session_of
from stillroom.release.sections.compression import IMAGES, REPEATS, CompressionReport, Measured


def report(
    teacher: ReleasedModel, student: ReleasedModel, classes: tuple[str, ...]
) -> CompressionReport:
    """Measure teacher and student in one run, turn by turn, so that a busy moment hits both.

    Guarantee: nothing is looked at but the two models; the images are fixed and public.
    Assumes: whatever is told about `teacher` may be told. A teacher trained through the gate is
    itself sanitised. Of a teacher that saw records without protection hand over the same
    architecture with untrained weights: parameters, size and speed then say nothing of the records.

    Args:
        teacher: the model that was compressed, or its architecture.
        student: the released model.
        classes: the names of the classes.
    """
    both = [
        _Candidate(model.onnx(classes), model.shape, model.parameters, model.about)
        for model in (teacher, student)
    ]
    measured = _measure_together(both)
    return CompressionReport(teacher=measured[0], student=measured[1])


def measure(onnx: bytes, shape: tuple[int, ...], parameters: int, name: str) -> Measured:
    """Measure one model alone: sizes, and the median time of several rounds of 100 images.

    Args:
        onnx: its ONNX file, as `ReleasedModel.onnx` writes it.
        shape: of one record.
        parameters: how many trained numbers it has.
        name: which model, in one line.
    """
    (measured,) = _measure_together([_Candidate(onnx, shape, parameters, name)])
    return measured


@dataclass(frozen=True)
class _Candidate:
    onnx: bytes
    shape: tuple[int, ...]
    parameters: int
    name: str


class _Runner:
    """A model ready to run, and how long each round took."""

    def __init__(self, onnx: bytes, shape: tuple[int, ...]) -> None:
        self._session = session_of(onnx)
        records = fixed_records(shape, IMAGES)
        self._feeds = [{"x": records[i : i + 1]} for i in range(IMAGES)]
        self._rounds: list[float] = []
        self._session.run(["logits", "label"], self._feeds[0])

    def round(self) -> None:
        start = time.perf_counter()
        for feed in self._feeds:
            self._session.run(["logits", "label"], feed)
        self._rounds.append(time.perf_counter() - start)

    @property
    def seconds(self) -> float:
        return statistics.median(self._rounds)


def _measure_together(candidates: Sequence[_Candidate]) -> list[Measured]:
    plain = [_Runner(candidate.onnx, candidate.shape) for candidate in candidates]
    small = [_int8(candidate) for candidate in candidates]
    for _ in range(REPEATS):
        for runner in [*plain, *(runner for _, runner, _ in small if runner is not None)]:
            runner.round()
    return [
        Measured(
            name=candidate.name,
            parameters=candidate.parameters,
            size=len(candidate.onnx),
            int8_size=size,
            seconds=own.seconds,
            int8_seconds=None if runner is None else runner.seconds,
            int8_note=note,
        )
        for candidate, own, (size, runner, note) in zip(candidates, plain, small, strict=True)
    ]


def _int8(candidate: _Candidate) -> tuple[int | None, _Runner | None, str]:
    try:
        content = quantised(candidate.onnx)
    except Exception as error:
        return None, None, f"it cannot be quantised ({type(error).__name__})"
    try:
        return len(content), _Runner(content, candidate.shape), ""
    except Exception as error:
        return None, None, f"ONNX Runtime cannot run it quantised ({type(error).__name__})"


def quantised(onnx: bytes) -> bytes:
    """An ONNX file with weights of 8 bits; activations are quantised as they come."""
    from onnx import load_model_from_string
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder, _quiet():
        file = Path(folder) / "int8.onnx"
        # Unsigned: on a CPU, ONNX Runtime has no convolution with signed weights of 8 bits.
        quantize_dynamic(load_model_from_string(onnx), file, weight_type=QuantType.QUInt8)
        return file.read_bytes()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the quantiser's advice, and without the log handler it would leave behind."""
    before, handler = logging.root.manager.disable, logging.NullHandler()
    logging.root.addHandler(handler)
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
        logging.root.removeHandler(handler)
