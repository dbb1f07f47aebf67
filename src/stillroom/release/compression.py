"""Teacher and student measured in one run: what they weigh and how long they take."""

from __future__ import annotations

import io
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from stillroom.release.compressed_model import CompressedModel
from stillroom.release.model import ReleasedModel, fixed_records
from stillroom.release.predict import session_of
from stillroom.release.record import compact_artefact
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
    models = (teacher, student)
    files = [model.onnx(classes) for model in models]
    plain = [_Runner(file, model.shape) for file, model in zip(files, models, strict=True)]
    # Codes are not what weights of 8 bits are made of.
    weights = [
        model.plain_onnx(classes) if isinstance(model, CompressedModel) else file
        for file, model in zip(files, models, strict=True)
    ]
    small = [_int8(file, model.shape) for file, model in zip(weights, models, strict=True)]
    for _ in range(REPEATS):
        for runner in [*plain, *(runner for _, runner, _ in small if runner is not None)]:
            runner.round()
    measured = [
        Measured(
            name=model.about,
            parameters=model.parameters,
            size=len(file),
            int8_size=size,
            seconds=own.seconds,
            int8_seconds=None if runner is None else runner.seconds,
            int8_note=note,
            **_compact(model),
        )
        for model, file, own, (size, runner, note) in zip(models, files, plain, small, strict=True)
    ]
    return CompressionReport(*measured)


def _compact(model: ReleasedModel) -> dict[str, int]:
    if not isinstance(model, CompressedModel):
        return {}
    (content,) = compact_artefact(model).files().values()
    return {"kept": model.kept, "compact_size": len(content)}


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


def _int8(onnx: bytes, shape: tuple[int, ...]) -> tuple[int | None, _Runner | None, str]:
    try:
        content = quantised(onnx)
    except Exception as error:
        return None, None, f"it cannot be quantised ({type(error).__name__})"
    try:
        return len(content), _Runner(content, shape), ""
    except Exception as error:
        return None, None, f"ONNX Runtime cannot run it quantised ({type(error).__name__})"


def quantised(onnx: bytes) -> bytes:
    """An ONNX file with weights of 8 bits; activations are quantised as they come."""
    from onnx import load_model_from_string
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder, quiet():
        file = Path(folder) / "int8.onnx"
        # Unsigned: on a CPU, ONNX Runtime has no convolution with signed weights of 8 bits.
        quantize_dynamic(load_model_from_string(onnx), file, weight_type=QuantType.QUInt8)
        return file.read_bytes()


@contextmanager
def quiet() -> Iterator[None]:
    """Without what quantiser and exporter print, log and warn of, or the log handler they leave.

    Where one fails it prints graphs and file names; the error says enough.
    """
    before, handler, said = logging.root.manager.disable, logging.NullHandler(), io.StringIO()
    logging.root.addHandler(handler)
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(said), redirect_stderr(said), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*LeafSpec.* is deprecated", FutureWarning)
            yield
    finally:
        logging.disable(before)
        logging.root.removeHandler(handler)
