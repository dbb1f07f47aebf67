"""`stillroom recipe`: what a recipe says, and what a release of it would meet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stillroom.cli.new_recipe import new
from stillroom.cli.release import RecipeFile

app = typer.Typer(help="Recipes: new, check, explain.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Recipes: new, check, explain."""


app.command("new")(new)


@app.command("explain")
def explain(
    recipe: Annotated[
        Path | None, typer.Argument(help="The recipe, a TOML file.", metavar="RECIPE")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Instead of a recipe: every key that such a recipe may have.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show every key of a recipe, its value, and whether that is the default.

    Example: stillroom recipe explain examples/direct.toml

    Example: stillroom recipe explain --method rona
    """
    from stillroom.cli.printing import print_json, table
    from stillroom.errors import BadInput
    from stillroom.methods.registry import method_named, read
    from stillroom.recipe.reading import explain as lines_of
    from stillroom.recipe.reading import explain_kind

    if (recipe is None) == (method is None):
        raise BadInput(
            "neither a recipe nor a method is given, or both",
            where="recipe explain",
            why="keys and defaults are those of one method",
            remedy="give a recipe's file, or --method direct",
        )
    if recipe is not None:
        lines = lines_of(read(recipe)[0])
    else:
        lines = explain_kind(method_named(str(method)).recipe)
    if json:
        print_json(
            [dict(zip(("key", "value", "from", "about"), line, strict=True)) for line in lines]
        )
    else:
        table("", ("key", "value", "from", "what it means"), lines)


@app.command("check")
def check(
    recipe: RecipeFile,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the bundle will be, to look at that as well."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The private key it will be signed with.")
    ] = None,
    accept_infinite: Annotated[
        bool, typer.Option("--accept-infinite", help="As the release will be told.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Open the data and find all that a release would refuse. Pays, draws and keeps nothing.

    What it prints is exact and not private: for your eyes. Exit 0 if a release could start, 2 if
    not. `stillroom release --dry-run` says what a recipe costs, without opening any data.

    Example: stillroom recipe check scans.toml

    Example: stillroom recipe check scans.toml -o scans-model
    """
    from stillroom.cli.checking import show
    from stillroom.cli.printing import print_json
    from stillroom.cli.progress import shown
    from stillroom.pipeline.checking import check as check_recipe

    with shown() as progress:
        report = check_recipe(
            recipe,
            output,
            sign_with=key,
            accept_infinite=accept_infinite,
            progress=progress,
        )
    if json:
        print_json(report.to_json())
    else:
        show(str(recipe), report)
    if not report.could_start:
        raise typer.Exit(2)
