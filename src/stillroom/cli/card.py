"""`stillroom card`: the page of a bundle, made again from its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def card(
    folder: Annotated[Path, typer.Argument(help="The bundle's folder.", metavar="BUNDLE")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where to write it; BUNDLE.card.html by default."),
    ] = None,
) -> None:
    """Make a bundle's card again, by this version; the bundle itself is not changed.

    Everything but the old card is verified first. Exit 4 if it is not whole.

    Example: stillroom card digits-model -o card.html
    """
    from stillroom.errors import BadInput
    from stillroom.pipeline.verify import new_card

    page = new_card(folder)
    place = output or folder.resolve().with_name(f"{folder.resolve().name}.card.html")
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise BadInput(
            f"the card cannot be written ({error.strerror})",
            where=str(place),
            why="an existing file is never overwritten",
            remedy="name a new file in a folder that can be written to",
        ) from None
    typer.echo(f"Read it: {place}")
