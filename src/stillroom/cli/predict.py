"""`stillroom predict`: use the model of a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def predict(
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.", metavar="BUNDLE")],
    records: Annotated[
        str,
        typer.Argument(
            help="A data set by name, a folder of pictures, or a file: npz, CSV, or npy (records "
            "without labels).",
            metavar="INPUT",
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with logits.")] = False,
) -> None:
    """Print the class the model gives to each record, one per line.

    Example: stillroom predict bundle digits

    Example: stillroom predict bundle records.npy --json
    """
    from stillroom.cli.printing import print_json
    from stillroom.release import predict as model

    described, _ = model.model_of(bundle)
    labels, logits = model.predict(bundle, model.read_records(records, described))
    names = [described.classes[label] for label in labels]
    if json:
        print_json({"labels": names, "logits": logits.tolist()})
    else:
        typer.echo("\n".join(names))
