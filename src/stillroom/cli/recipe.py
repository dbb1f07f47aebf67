"""`stillroom recipe`: what a recipe says, defaults included."""

from __future__ import annotations

from typing import Annotated

import typer

from stillroom.cli.release import RecipeFile

app = typer.Typer(help="Recipes: explain one.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Recipes: explain one."""


@app.command("explain")
def explain(
    recipe: RecipeFile, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Show every key of a recipe, its value, and whether that is the default.

    Example: stillroom recipe explain examples/direct.toml
    """
    from stillroom.cli.printing import print_json, table
    from stillroom.methods.registry import read
    from stillroom.recipe.reading import explain as lines_of

    lines = lines_of(read(recipe)[0])
    if json:
        print_json(
            [dict(zip(("key", "value", "from", "about"), line, strict=True)) for line in lines]
        )
    else:
        table("", ("key", "value", "from", "what it means"), lines)
