"""`stillroom predict`: use the model of a bundle."""

from __future__ import annotations

from collections.abc import Iterator
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
    from stillroom.cli.printing import csv_line, print_json, printable
    from stillroom.errors import BadInput
    from stillroom.release.predict import model_of

    if csv and json:
        raise BadInput("--csv and --json were both asked for", remedy="ask for one of them")
    described, _ = model_of(bundle)
    found = _answers(bundle, records, described)
    if json:
        columns = zip(*found, strict=True)
        print_json(dict(zip(_JSON, map(list, columns), strict=True)))
        return
    if csv:
        typer.echo(csv_line("name", "class", "probability"))
    for name, label, sure, _ in found:
        shown = (printable(name), label, f"{sure:.4f}")
        typer.echo(csv_line(*shown) if csv else "\t".join(shown))


_JSON = ("names", "labels", "probabilities", "logits")


def _answers(
    bundle: Path, records: list[str], described: Described
) -> Iterator[tuple[str, str, float, Any]]:
    """Name, class, probability and logits of each record."""
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
        sure = probabilities(logits).max(axis=1)
        for name, label, share, own in zip(waiting.pop(0), labels, sure, logits, strict=True):
            yield name, described.classes[label], float(share), own.tolist()
