"""`stillroom sample`: draw records from the generator of a bundle."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stillroom.cli.printing import Json


class Labels(StrEnum):
    """Which class a sample is given."""

    DRAWN = "drawn"
    MODEL = "model"


def sample(
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.", metavar="BUNDLE")],
    output: Annotated[Path, typer.Option("-o", "--output", help="A new npz file.")],
    count: Annotated[int, typer.Option("-n", "--count", help="How many samples.")],
    seed: Annotated[int, typer.Option(help="The same one gives the same file.")] = 0,
    labels: Annotated[
        Labels | None,
        typer.Option(
            help="The class it was drawn for, or the class the bundle's model gives, with scores. "
            "When left out: the first, where there is one."
        ),
    ] = None,
    agreeing: Annotated[
        bool, typer.Option("--agreeing", help="Only samples whose two classes agree.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only-class", help="Draw this class; given again, that one too.", metavar="NAME"
        ),
    ] = None,
    varied: Annotated[
        bool,
        typer.Option(
            "--varied",
            help="Pictures joined, retouched and random ones like them, to teach another model by "
            "the scores; with --labels model.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Draw records from the bundle's generator, or from its sketch; that is free.

    The file has x, in units of the data; y and the names of the classes, where they are known; and
    scores with --labels model.

    Example: stillroom sample bundle -n 10000 -o synthetic.npz

    Example: stillroom sample bundle -n 10000 -o sure.npz --labels model --agreeing

    Example: stillroom sample bundle -n 60000 -o lessons.npz --labels model --varied
    """
    from stillroom.cli.printing import print_json
    from stillroom.release.sample import Wish
    from stillroom.release.sample import sample as draw

    given = None if labels is None else str(labels)
    wish = Wish(count, seed, given, agreeing, tuple(only or ()), varied)
    drawn = draw(bundle, output, wish)
    if json:
        print_json(drawn)
        return
    shape = " x ".join(map(str, drawn["shape"]))
    typer.echo(
        f"{output}: {count} samples, {shape}, {drawn['type']}; drawn from {drawn['generator']}"
    )
    if agreeing:
        typer.echo(f"kept {count} of {drawn['drawn']} that were drawn")
    if drawn["classes"] is None:
        typer.echo(
            "no classes: this generator is told none; --labels model asks the bundle's model"
        )
    else:
        told = "the model's" if drawn["labels"] == "model" else "as drawn for"
        found = ", ".join(f"{name}: {many}" for name, many in drawn["classes"].items() if many)
        typer.echo(f"classes, {told}: {found}")
