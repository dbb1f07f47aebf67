"""`stillroom predict`: use the model of a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
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
    file are found by name.

    Example: stillroom predict bundle digits

    Example: stillroom predict bundle scans/ --csv > answers.csv

    Example: stillroom predict bundle monday.png tuesday.png
    """
    from stillroom.cli.printing import csv_lines, print_json, printable
    from stillroom.errors import BadInput
    from stillroom.release.predict import model_of

    if csv and json:
        raise BadInput("--csv and --json were both asked for", remedy="ask for one of them")
    described, _ = model_of(bundle)
    found = _answers(bundle, records, described)
    if json:
        told: dict[str, list[Any]] = {name: [] for name in _JSON}
        for some in found:
            columns = (some.names, some.classes, some.sure.tolist(), some.logits.tolist())
            for column, more in zip(told.values(), columns, strict=True):
                column += more
        print_json(told)
        return
    if csv:
        typer.echo(csv_lines([("name", "class", "probability")]), nl=False)
    # Some lines at a time: writing each by itself would take longer than the model does.
    for some in found:
        sure = (f"{share:.4f}" for share in some.sure.tolist())
        rows = zip(map(printable, some.names), some.classes, sure, strict=True)
        lines = csv_lines(rows) if csv else "".join("\t".join(row) + "\n" for row in rows)
        typer.echo(lines, nl=False)


_JSON = ("names", "labels", "probabilities", "logits")


@dataclass(frozen=True)
class _Answers:
    """What a model says of some records."""

    names: list[str]
    classes: list[str]
    sure: Any
    logits: Any


def _answers(bundle: Path, records: list[str], described: Described) -> Iterator[_Answers]:
    from stillroom.release.asked import batches
    from stillroom.release.predict import answered, no_records, probabilities
    from stillroom.release.strangers_model import TOGETHER

    waiting: list[list[str]] = []

    def parts() -> Iterator[Any]:
        for one in records:
            there = False
            for names, x in batches(one, described, TOGETHER):
                waiting.append(names)
                there = True
                yield x
            if not there:
                raise no_records("there is no record", "give at least one record", one)

    for labels, logits in answered(bundle, parts()):
        classes = [described.classes[label] for label in labels.tolist()]
        sure = probabilities(logits).max(axis=1)
        yield _Answers(waiting.pop(0), classes, sure, logits)
