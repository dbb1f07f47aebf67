"""The commands of `stillroom`, put together."""

from __future__ import annotations

import typer

from stillroom.cli import (
    card,
    data,
    demo,
    keys,
    ledger,
    plan,
    predict,
    recipe,
    release,
    sample,
    verify,
)

app = typer.Typer(
    help="Turn models trained on sensitive data into models that can be given away.",
    epilog="Example: stillroom plan --teachers 250 --classes 10 --queries 2000 --sigma 40",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("plan")(plan.plan)
app.command("release")(release.release)
app.command("verify")(verify.verify)
app.command("card")(card.card)
app.command("predict")(predict.predict)
app.command("sample")(sample.sample)
app.command("demo")(demo.demo)
app.add_typer(recipe.app, name="recipe")
app.add_typer(keys.app, name="keys")
app.add_typer(ledger.app, name="ledger")
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        from stillroom import __version__

        typer.echo(f"stillroom {__version__}")
        raise typer.Exit
