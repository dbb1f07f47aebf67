"""A bundle's model, run in a process of its own: it may be anybody's."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Timer
from typing import Any

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


class StrangersModel(AbstractContextManager["StrangersModel"]):
    """An ONNX file that is run with limits on its operators, its time and its memory.

    Guarantee: whatever the file holds, it ends: in scores and labels of the right kind, or in an
    error.

    Args:
        content: the ONNX file.
        place: where it came from, for messages.
        classes: how many there are.

    Raises:
        BadInput: ONNX Runtime is not installed.
        DoesNotVerify: the file is none, or does what is not run here.
    """

    def __init__(self, content: bytes, place: Path, classes: int) -> None:
        self._place, self._classes, self._together = place, classes, TOGETHER
        try:
            check_graph(content)
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
                raise unloaded("onnxruntime", "predict", why, absent=absent)
            self._ask({}, content, seconds=SECONDS_TO_OPEN)
        except _CannotRun as error:
            self.close()
            raise self._refused(f"ONNX Runtime cannot open it ({error})") from None
        except BaseException:
            self.close()
            raise

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

    def run(self, x: npt.NDArray[np.float32]) -> tuple[Logits, Labels]:
        """The logits and labels of some records, of fewer at once where the memory is too small.

        Raises:
            BadInput: a score is not a finite number.
            DoesNotVerify: the model takes too long or too much memory, or answers with something
                else than a score per class and a label per record.
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
        logits, labels = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        return logits, labels

    def _answer(self, x: npt.NDArray[np.float32]) -> tuple[Logits, Labels]:
        seconds = SECONDS + SECONDS_PER_RECORD * len(x)
        head, bodies = self._ask({"shape": x.shape}, x.tobytes(), seconds=seconds)
        expected = {"logits": [len(x), self._classes], "label": [len(x)]}
        kinds = {"logits": np.float32, "label": np.int64}
        found = {}
        for (name, kind), body in zip(kinds.items(), bodies, strict=True):
            if head[name] != {"shape": expected[name], "dtype": np.dtype(kind).str}:
                raise self._refused(f"its `{name}` are not one per record and class")
            found[name] = np.frombuffer(body, dtype=kind).reshape(expected[name])
        logits, labels = found["logits"], found["label"]
        if labels.min() < 0 or labels.max() >= self._classes:
            raise self._refused("it gives a label that is none of its classes")
        if not np.isfinite(logits).all():
            raise BadInput(
                "the model gives a score that is not a finite number",
                where=str(self._place),
                why="such a label means nothing",
                remedy="give records in the range the model was trained on",
            )
        return logits, labels

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
            "than labels need",
            remedy="ask whoever released it for an unchanged copy; if you trust this one, run it "
            "with ONNX Runtime yourself",
        )
