"""How much smaller and faster the student is: teacher and student measured in one run."""

from __future__ import annotations

import logging
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stillroom.errors import BadInput
from stillroom.release.model import ReleasedModel, fixed_records
from stillroom.release.predict import session_of

IMAGES = 100
"""Images of one timing, one a call: "100 images consecutively" (RONA, Table 2)."""
_REPEATS = 5

RATIOS = {
    "parameters": "parameters",
    "size": "size",
    "int8_size": "int8_size",
    "speed": "seconds",
    "int8_speed": "int8_seconds",
}
"""Each ratio, and the entry of teacher and student it is made of."""


@dataclass(frozen=True)
class Measured:
    """What one model weighs and how long it takes.

    Args:
        name: which model, in one line.
        parameters: how many trained numbers it has.
        size: bytes of its ONNX file.
        int8_size: bytes of the file with weights of 8 bits; None where there is none.
        seconds: for `IMAGES` images, one a call, on one thread.
        int8_seconds: the same with weights and activations of 8 bits.
        int8_note: why there are no int8 entries; empty where there are.

    Raises:
        BadInput: an entry is not a positive number, or int8 entries are neither given nor excused.
    """

    name: str
    parameters: int
    size: int
    int8_size: int | None
    seconds: float
    int8_seconds: float | None
    int8_note: str = ""

    def __post_init__(self) -> None:
        counts: list[Any] = [self.parameters, self.size]
        times: list[Any] = [self.seconds]
        if not self.int8_note:
            counts.append(self.int8_size)
            times.append(self.int8_seconds)
        fits = (self.int8_size is None) == (self.int8_seconds is None) == bool(self.int8_note)
        fits = fits and isinstance(self.int8_note, str) and isinstance(self.name, str)
        fits = fits and all(type(count) is int and count > 0 for count in counts)
        fits = fits and all(type(t) in (int, float) and 0 < t < math.inf for t in times)
        if not fits:
            raise BadInput(
                "an entry of a measured model is missing or is not a positive number",
                where="compression",
                why="ratios are made of these entries",
                remedy="measure both models again with `compression.report`",
            )


@dataclass(frozen=True)
class CompressionReport:
    """Teacher against student.

    Assumes: everything told about the teacher is public, see `report`.

    >>> big = Measured("big", 1000, 5000, 2000, 0.5, 0.4)
    >>> small = Measured("small", 100, 1000, None, 0.1, None, "it has no weights of 8 bits")
    >>> CompressionReport(big, small).ratios
    {'parameters': 10.0, 'size': 5.0, 'int8_size': None, 'speed': 5.0, 'int8_speed': None}
    """

    teacher: Measured
    student: Measured

    @property
    def ratios(self) -> dict[str, float | None]:
        """How many times the teacher is the larger or slower one, by the names of `RATIOS`."""
        pairs = {
            ratio: (getattr(self.teacher, entry), getattr(self.student, entry))
            for ratio, entry in RATIOS.items()
        }
        return {
            ratio: None if teacher is None or student is None else teacher / student
            for ratio, (teacher, student) in pairs.items()
        }

    def to_json(self) -> dict[str, Any]:
        """The report for the certificate, ratios included."""
        measured = {"images": IMAGES, "repeats": _REPEATS}
        return {**asdict(self), **measured, "ratios": self.ratios}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CompressionReport:
        """The report that `to_json` wrote; its ratios are made again from the entries.

        Raises:
            BadInput: an entry makes no sense.
        """
        return cls(Measured(**body["teacher"]), Measured(**body["student"]))


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
    for _ in range(_REPEATS):
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
