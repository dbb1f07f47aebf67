"""Section `compression`: how much smaller and faster the student is than its teacher."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stillroom.errors import BadInput
from stillroom.release.sections.base import Body, Core, Section, classifier_in, compact_in

IMAGES = 100
"""Images of one timing, one per call: "100 images consecutively" (Wang et al. 2019, Table 2)."""
REPEATS = 5

RATIOS = {
    "parameters": "parameters",
    "size": "size",
    "int8_size": "int8_size",
    "speed": "seconds",
    "int8_speed": "int8_seconds",
}
"""Each ratio, and the entry of teacher and student it is made of."""
_OF_COMPACT = ("kept", "compact_size")


@dataclass(frozen=True)
class Measured:
    """What one model weighs and how long it takes.

    Args:
        name: which model, in one line.
        parameters: how many trained numbers it has.
        size: bytes of its ONNX file.
        int8_size: bytes of the file with weights of 8 bits; None where there is none.
        seconds: for `IMAGES` images, one per call, on one thread.
        int8_seconds: the same with weights and activations of 8 bits.
        int8_note: why there are no int8 entries; empty where there are.
        kept: how many of the parameters are not pruned; None where there is no compact file.
        compact_size: bytes of the compact file; None where there is none.

    Raises:
        BadInput: an entry is not a positive number, int8 entries are neither given nor excused, or
            more parameters are kept than there are.
    """

    name: str
    parameters: int
    size: int
    int8_size: int | None
    seconds: float
    int8_seconds: float | None
    int8_note: str = ""
    kept: int | None = None
    compact_size: int | None = None

    def __post_init__(self) -> None:
        counts: list[Any] = [self.parameters, self.size]
        times: list[Any] = [self.seconds]
        if not self.int8_note:
            counts.append(self.int8_size)
            times.append(self.int8_seconds)
        if self.kept is not None or self.compact_size is not None:
            counts += [self.kept, self.compact_size]
        fits = (self.int8_size is None) == (self.int8_seconds is None) == bool(self.int8_note)
        fits = fits and isinstance(self.int8_note, str) and isinstance(self.name, str)
        fits = fits and all(type(count) is int and count > 0 for count in counts)
        fits = fits and all(type(t) in (int, float) and 0 < t < math.inf for t in times)
        fits = fits and (self.kept is None or self.kept <= self.parameters)
        if not fits:
            raise BadInput(
                "an entry of a measured model is missing or is not a positive number",
                where="compression",
                why="ratios are made of these entries",
                remedy="measure both models again with `compression.report`",
            )

    def to_json(self) -> dict[str, Any]:
        """The entries; without those of a compact file where there is none."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None or name not in _OF_COMPACT
        }


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
        """How many times the teacher is the larger or slower one, by the names of `RATIOS`.

        And `compact_size`, where there is a compact file: the teacher's ONNX file against it.
        """
        pairs = {
            ratio: (getattr(self.teacher, entry), getattr(self.student, entry))
            for ratio, entry in RATIOS.items()
        }
        if self.student.compact_size is not None:
            pairs["compact_size"] = (self.teacher.size, self.student.compact_size)
        return {
            ratio: None if teacher is None or student is None else teacher / student
            for ratio, (teacher, student) in pairs.items()
        }

    def to_json(self) -> dict[str, Any]:
        """The report for the certificate, ratios included."""
        measured = {"images": IMAGES, "repeats": REPEATS}
        models = {"teacher": self.teacher.to_json(), "student": self.student.to_json()}
        return {**models, **measured, "ratios": self.ratios}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CompressionReport:
        """The report that `to_json` wrote; its ratios are made again from the entries.

        Raises:
            BadInput: an entry makes no sense.
        """
        return cls(Measured(**body["teacher"]), Measured(**body["student"]))


def _completed(body: Body | None, core: Core) -> Body | None:
    if body is None:
        return None
    report, model = CompressionReport.from_json(body), classifier_in(core.artefacts)
    size = model["files"][f"{model['name']}.onnx"]["size"]
    student, compact = report.student, compact_in(core.artefacts, model)
    own = (model["about"], model["parameters"], size, *compact)
    measured = (student.name, student.parameters, student.size)
    if (*measured, student.kept, student.compact_size) != own or report.teacher.kept is not None:
        raise BadInput(
            "the compression report is that of another student",
            where="compression",
            why="its name, parameters or file sizes are not those of the released model",
            remedy="measure the model that is released",
        )
    return report.to_json()


def _shown(certificate: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was measured, the rows of a compact file, and the longest bar as a share of fp32."""
    told = certificate["sections"].get("compression")
    if told is None:
        return None
    shares = [
        told[who][entry] / told["teacher"][entry.removeprefix("int8_")]
        for who in ("teacher", "student")
        for entry in RATIOS.values()
        if told[who][entry] is not None
    ]
    rows = [("parameters kept", "kept", ""), ("size, compact", "compact_size", "compact_size")]
    compact = [row for row in rows if row[1] in told["student"]]
    return {"told": told, "longest": max(shares), "compact": compact}


SECTION = Section(
    "compression",
    CompressionReport.to_json,
    _completed,
    _shown,
    word="what was measured of the teacher, and all times",
)
