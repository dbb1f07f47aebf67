"""`stillroom demo`: a private model of real digits, from the recipe to the verified bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RECIPE = """\
# The recipe of `stillroom demo`: a linear layer on the built-in digits, by DP-SGD.
method = "direct"
purpose = "benchmark"    # the demo's ledger is made anew each time; nothing is released from it

[data]
source = "digits"
key = "demo"
test = "1/5"
test_is_public = true    # measured exactly; the certificate lists it as unprotected
declared_size = 1440

[features]
name = "edges"

[training]
steps = 60
rate = "1/2"
clip = "1/2"
learning_rate = 8.0
momentum = 0.9

[privacy]
epsilon = 2.0
delta = 1e-5
tuning = "undeclared"
"""
BUDGET = 4.0


def demo(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A new folder for the bundle.")
    ] = None,
) -> None:
    """Train a private model of handwritten digits, certify it, verify it, and say where to look.

    Example: stillroom demo -o digits-model
    """
    import tempfile

    from stillroom.cli.ledger import show_ledger
    from stillroom.cli.release import follow, show_cost, tell
    from stillroom.cli.verify import verify
    from stillroom.errors import BadInput
    from stillroom.gate import Budget, Ledger

    bundle = output or Path(tempfile.mkdtemp(prefix="stillroom-demo-")) / "bundle"
    work = bundle.with_name(bundle.name + ".run")
    recipe = work / "recipe.toml"
    try:
        work.mkdir(parents=True, exist_ok=True)
        recipe.write_text(RECIPE, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"the folder of the run cannot be made ({error.strerror})",
            where=str(work),
            why="recipe and ledger need a place",
            remedy="name a folder that can be written to",
        ) from None

    typer.echo("1. Plan: what the recipe costs, before anything is spent")
    show_cost(recipe, json=False)
    typer.echo(f"2. Release: train on the sensitive digits under a budget of epsilon {BUDGET:g}")
    tell(follow(recipe, bundle, budget=Budget(BUDGET, 1e-5)))
    typer.echo("\n3. The ledger: what these records have told so far")
    show_ledger(Ledger.open(work / "ledger.sqlite", read_only=True))
    typer.echo("4. Verify: what a stranger can check with the bundle alone")
    verify(bundle)
    typer.echo(f"Predict with it: stillroom predict {bundle} digits")
