"""A bundle's model, run in a process of its own: it may be anybody's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Timer
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, DoesNotVerify
from stillroom.extras import unloaded
from stillroom.release import runner
from stillroom.release.graph import check_graph

Labels = npt.NDArray[np.int64]
Logits = npt.NDArray[np.float32]

TOGETHER = 256
"""Records run at once: a network's inner layers can be a thousand times as large as a record."""
SECONDS = 5.0
"""For a batch, beside `SECONDS_PER_RECORD`."""
SECONDS_PER_RECORD = 1.0
SECONDS_TO_OPEN = 20.0
"""For reading the model."""
SECONDS_TO_START = 120.0
"""For loading ONNX Runtime, of which the model knows nothing yet."""


class _CannotRun(Exception):
    """ONNX Runtime gave up; it goes on with the next batch."""


class StrangersGraph(AbstractContextManager[Any]):
    """An ONNX file that is run with limits on its operators, its time and its memory.

    Guarantee: whatever the file holds, it ends: in answers of the right kind, or in an error.

    Args:
        content: the ONNX file.
        place: where it came from, for messages.
        gives: the outputs by name: the shape of one row's answer, and its type.
        command: the command that runs it.

    Raises:
        BadInput: ONNX Runtime is not installed.
        DoesNotVerify: the file is none, or does what is not run here.
    """

    def __init__(
        self,
        content: bytes,
        place: Path,
        gives: Mapping[str, tuple[tuple[int, ...], type]],
        command: str,
    ) -> None:
        self._place, self._gives, self._together = place, gives, TOGETHER
        try:
            check_graph(content, gives)
        except ValueError as error:
            raise self._refused(f"it is not run here: {error}") from None
        self._child = subprocess.Popen(
            [sys.executable, "-P", runner.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            head, _ = self._ask({}, b"", seconds=SECONDS_TO_START)
            if "unloaded" in head:
                absent = head["unloaded"] == "absent"
                why = "it runs the bundle's model"
                raise unloaded("onnxruntime", command, why, absent=absent)
            self._ask({"outputs": list(gives)}, content, seconds=SECONDS_TO_OPEN)
        except _CannotRun as error:
            self.close()
            raise self._refused(f"ONNX Runtime cannot open it ({error})") from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        for stream in (self._child.stdin, self._child.stdout):
            assert stream is not None
            with suppress(OSError):  # what could not be sent any more
                stream.close()
        self._child.wait()

    def answers(self, x: npt.NDArray[np.float32]) -> list[npt.NDArray[Any]]:
        """What it gives to some rows, to fewer at once where the memory is too small.

        Raises:
            BadInput: an answer is not a finite number.
            DoesNotVerify: the model takes too long or too much memory, or answers with something
                else than what it should give.
        """
        answers, start = [], 0
        while start < len(x):
            some = x[start : start + self._together]
            try:
                answers.append(self._answer(some))
            except _CannotRun as error:
                if len(some) == 1:
                    raise self._refused(f"ONNX Runtime cannot run it ({error})") from None
                self._together = len(some) // 2
                continue
            start += len(some)
        return [np.concatenate(parts) for parts in zip(*answers, strict=True)]

    def _answer(self, x: npt.NDArray[np.float32]) -> list[npt.NDArray[Any]]:
        seconds = SECONDS + SECONDS_PER_RECORD * len(x)
        head, bodies = self._ask({"shape": x.shape}, x.tobytes(), seconds=seconds)
        found = []
        for (name, (tail, kind)), body in zip(self._gives.items(), bodies, strict=True):
            shape = [len(x), *tail]
            if head[name] != {"shape": shape, "dtype": np.dtype(kind).str}:
                raise self._refused(
                    f"its `{name}` are not {' x '.join(map(str, tail)) or 'one'} "
                    f"{np.dtype(kind).name} per record"
                )
            array: npt.NDArray[Any] = np.frombuffer(body, dtype=kind).reshape(shape)
            if not np.isfinite(array).all():
                raise BadInput(
                    f"the model gives `{name}` that are not finite numbers",
                    where=str(self._place),
                    why="such an answer means nothing",
                    remedy="give records in the range the model was trained on",
                )
            found.append(array)
        return found

    def _ask(
        self, head: dict[str, Any], body: bytes, *, seconds: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            child.kill()

        timer = Timer(seconds, end)
        timer.start()
        try:
            runner.send(child.stdin, head, body)
            answer = runner.receive(child.stdout)
        except BrokenPipeError:
            answer = None
        finally:
            timer.cancel()
        if late:
            raise self._refused(f"it takes longer than {seconds:g} seconds")
        if answer is None:
            raise self._refused("ONNX Runtime ended with it")
        if "fault" in answer[0]:
            raise _CannotRun(answer[0]["fault"])
        return answer

    def _refused(self, what: str) -> DoesNotVerify:
        return DoesNotVerify(
            f"the model in {self._place.name} cannot be used: {what}",
            where=str(self._place),
            why="a model from a stranger is a program, and gets no more time, memory and freedom "
            "than its answers need",
            remedy="ask whoever released it for an unchanged copy; if you trust this one, run it "
            "with ONNX Runtime yourself",
        )


class StrangersModel(StrangersGraph):
    """A classifier, run with limits.

    Guarantee: whatever the file holds, it ends: in scores and labels of the right kind, or in an
    error.

    Args:
        content: the ONNX file.
        place: where it came from, for messages.
        classes: how many there are.
        command: the command that runs it.

    Raises:
        BadInput: ONNX Runtime is not installed.
        DoesNotVerify: the file is none, or does what is not run here.
    """

    def __init__(self, content: bytes, place: Path, classes: int, command: str = "predict") -> None:
        self._classes = classes
        gives = {"logits": ((classes,), np.float32), "label": ((), np.int64)}
        super().__init__(content, place, gives, command)

    def run(self, x: npt.NDArray[np.float32]) -> tuple[Logits, Labels]:
        """The logits and labels of some records; raises as `answers`, and for other labels."""
        logits, labels = self.answers(x)
        if len(labels) and not 0 <= labels.min() <= labels.max() < self._classes:
            raise self._refused("it gives a label that is none of its classes")
        return logits, labels


class StrangersGenerator(StrangersGraph):
    """A generator, run with limits: from rows of latent numbers to records in [0, full_scale].

    Args:
        content: the ONNX file.
        place: where it came from, for messages.
        shape: of one record.
        full_scale: the largest value of a record.

    Raises:
        BadInput: ONNX Runtime is not installed.
        DoesNotVerify: the file is none, or does what is not run here.
    """

    def __init__(
        self, content: bytes, place: Path, shape: tuple[int, ...], full_scale: float
    ) -> None:
        self._full_scale = np.float32(full_scale)
        super().__init__(content, place, {"records": (shape, np.float32)}, "sample")

    def run(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The records of some rows; raises as `answers`, and for records out of range."""
        (records,) = self.answers(rows)
        if len(records) and not 0 <= records.min() <= records.max() <= self._full_scale:
            raise self._refused("it gives records out of their range")
        return records
