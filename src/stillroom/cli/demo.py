"""`stillroom demo`: plan a budget, spend part of it on labels of real digits, show the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TEACHERS = 100
BUDGET = 4.0
SPEND = 2.0
QUERIES = 25
KEY = "demo"


def demo(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A new folder for the ledger.")
    ] = None,
) -> None:
    """Label handwritten digits by the noisy votes of a small ensemble, under a budget.

    Example: stillroom demo
    """
    import tempfile

    from stillroom.cli.ledger import show_ledger
    from stillroom.cli.plan import show_plan
    from stillroom.data import Split, digits
    from stillroom.errors import BadInput
    from stillroom.gate import Budget, Gate, Ledger, NoisyVotes
    from stillroom.gate.planning import plan
    from stillroom.gate.rounding import shown
    from stillroom.private import VotingTeachers

    folder = output or Path(tempfile.mkdtemp(prefix="stillroom-demo-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"the folder cannot be made ({error.strerror})",
            where=str(folder),
            why="the ledger needs a place",
            remedy="name a folder that can be written to",
        ) from None

    typer.echo(f"1. Plan: {QUERIES} answers within epsilon {SPEND:g} (nothing is spent yet)")
    planned = plan(teachers=TEACHERS, classes=10, queries=QUERIES, epsilon=SPEND)
    show_plan(planned)

    split = Split.by_fraction(digits(), key=KEY, public="1/5", test="0")
    typer.echo(f"2. Train {TEACHERS} teachers, each on its own shard of the sensitive digits")
    teachers = VotingTeachers.train(split.sensitive, count=TEACHERS, key=KEY)

    typer.echo(f"3. Open a ledger and set a budget of epsilon {BUDGET:g}")
    ledger = Ledger.create(folder / "ledger.sqlite", ids=split.sensitive.ids, purpose="benchmark")
    ledger.set_budget(Budget(BUDGET, 1e-5), reason="the demo")

    typer.echo("4. Reserve, draw, commit: noisy votes on public digits")
    gate = Gate(ledger, ids=split.sensitive.ids)
    way = gate.reserve(NoisyVotes(TEACHERS, 10, planned.sigma), QUERIES, recipe="stillroom demo")
    votes = way.release(teachers.votes(split.public.x[:QUERIES]))
    labels = votes.map(lambda counts: counts.argmax(axis=1)).value
    truth = split.public.y[:QUERIES]
    typer.echo(f"   noisy labels: {' '.join(map(str, labels))}")
    typer.echo(f"   true labels:  {' '.join(map(str, truth))}")
    typer.echo(
        f"   {(labels == truth).sum()} of {QUERIES} right, at a certified epsilon of "
        f"{shown(planned.epsilon)} (delta 1e-5, one record)\n"
    )

    typer.echo("5. The ledger afterwards")
    show_ledger(ledger)
    typer.echo(f"Look again: stillroom ledger show {ledger.path}")
