"""`stillroom predict`: use the model of a bundle."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stillroom.cli.answers import Printed
from stillroom.cli.printing import printable

if TYPE_CHECKING:
    from stillroom.release.asked_pictures import LeftOut
    from stillroom.release.predict import Described


def predict(
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.", metavar="BUNDLE")],
    records: Annotated[
        list[str],
        typer.Argument(
            help="A data set by name; a folder of pictures, or single ones; or a file: CSV, npz, "
            "or npy. Labels are not needed.",
            metavar="INPUT...",
        ),
    ],
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with logits.")] = False,
) -> None:
    """Print the name, the class and its probability of each record, one line each.

    The name is that of a picture's file, the id of a record, or else its number. Columns of a CSV
    file are found by name. Pictures are brought to the size and mode of the bundle's recipe. One
    that cannot be read is left out: it is named, all others are answered, and the exit code is 2.

    Example: stillroom predict bundle digits

    Example: stillroom predict bundle scans/ --csv > answers.csv

    Example: stillroom predict bundle monday.png tuesday.png
    """
    from stillroom.errors import BadInput
    from stillroom.release.asked_pictures import LeftOut
    from stillroom.release.predict import model_of

    if csv and json:
        raise BadInput(
            "--csv and --json were both asked for",
            where="predict",
            why="the answers are printed once, in one form",
            remedy="ask for one of them",
        )
    described, _ = model_of(bundle)
    left_out = LeftOut(lambda line: print(printable(line), file=sys.stderr))
    printed = Printed(described.classes, "json" if json else "csv" if csv else "text")
    try:
        for some in _answers(bundle, records, described, left_out):
            printed.add(*some)
    finally:
        # What was answered is paid for in minutes of work; an error later on takes nothing back.
        printed.end(left_out.names)
    if (error := left_out.error(printed.count)) is not None:
        raise error


def _answers(
    bundle: Path, records: list[str], described: Described, left_out: LeftOut
) -> Iterator[tuple[list[str], Any, Any]]:
    """Names, labels and logits, some at a time."""
    from stillroom.release.asked import batches
    from stillroom.release.predict import answered, no_records, refuse_other_shape
    from stillroom.release.strangers_model import TOGETHER

    waiting: list[list[str]] = []
    alone = len(records) == 1
    # Opened before anything is answered: a name that is wrong is told at once.
    asked = [batches(one, described, TOGETHER, left_out, alone=alone) for one in records]

    def parts() -> Iterator[Any]:
        for one, found in zip(records, asked, strict=True):
            there = len(left_out.names)
            for names, x in found:
                refuse_other_shape(x, described, one)
                waiting.append(names)
                there = -1
                yield x
            if there == len(left_out.names):
                raise no_records("there is no record", "give at least one record", one)

    for labels, logits in answered(bundle, parts()):
        yield waiting.pop(0), labels, logits
