"""Answers of a model on the terminal: a line per record as they come, or one JSON document."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from stillroom.cli.printing import csv_lines, printable

if TYPE_CHECKING:
    from stillroom.release.strangers_model import Labels, Logits


class Printed:
    """Prints answers: lines at once; JSON, which is one document, in the end.

    Until then an answer takes its name, four bytes per class and sixteen more.

    Args:
        classes: their names.
        style: how.
    """

    def __init__(self, classes: Sequence[str], style: Literal["text", "csv", "json"]) -> None:
        self._classes, self._style = classes, style
        self._names: list[str] = []
        self._labels, self._shares, self._logits = array("q"), array("d"), array("f")
        self.count = 0

    def add(self, names: Sequence[str], labels: Labels, logits: Logits) -> None:
        """Answers to some records."""
        from stillroom.release.predict import probabilities

        shares = probabilities(logits).max(axis=1)
        if self._style == "json":
            self._names += names
            self._labels.extend(labels.tolist())
            self._shares.extend(shares.tolist())
            self._logits.frombytes(logits.tobytes())
        else:
            rows = zip(names, labels.tolist(), shares.tolist(), strict=True)
            shown = [(printable(n), self._classes[label], f"{s:.4f}") for n, label, s in rows]
            if self._style == "csv":
                head = () if self.count else (("name", "class", "probability"),)
                sys.stdout.write(csv_lines((*head, *shown)))
            else:
                sys.stdout.write("".join("\t".join(row) + "\n" for row in shown))
            sys.stdout.flush()
        self.count += len(names)

    def end(self, left_out: Sequence[str]) -> None:
        """The document, where there is an answer to stand in it."""
        if self._style != "json" or not self.count:
            return
        wide = len(self._classes)
        columns = {
            "names": iter(self._names),
            "labels": (self._classes[label] for label in self._labels),
            "probabilities": iter(self._shares),
            "logits": (
                self._logits[start : start + wide].tolist()
                for start in range(0, len(self._logits), wide)
            ),
            "left_out": iter(left_out),
        }
        write = sys.stdout.write
        for place, (name, values) in enumerate(columns.items()):
            write(f"{',' if place else '{'}\n  {json.dumps(name)}: [")
            for row, value in enumerate(_texts(values)):
                write(f"{',' if row else ''}\n    {value}")
            write("\n  ]")
        write("\n}\n")
        sys.stdout.flush()


def _texts(values: Iterator[Any]) -> Iterator[str]:
    return (json.dumps(value, allow_nan=False) for value in values)
