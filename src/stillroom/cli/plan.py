"""`stillroom plan`: what noisy votes cost, before anything is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stillroom.cli.printing import Json, print_json, table

if TYPE_CHECKING:
    from stillroom.planning import Plan


def plan(
    teachers: Annotated[int | None, typer.Option(help="How many teachers vote.")] = None,
    classes: Annotated[int, typer.Option(help="How many labels there are.")] = 10,
    queries: Annotated[int | None, typer.Option(help="How many answers.")] = None,
    sigma: Annotated[str | None, typer.Option(help="Noise on each count of votes.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The budget to stay within.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Chance that the promise fails; 1e-5 unless given.")
    ] = None,
    consensus: Annotated[
        list[float] | None,
        typer.Option(help="Share of teachers that agree; may be repeated.  [default: 0.9, 0.6]"),
    ] = None,
    json: Json = False,
) -> None:
    """Price noisy votes, or find the noise or the number of answers that fit a budget.

    Give two of --queries, --sigma and --epsilon; the third is found. Nothing is spent.

    Example: stillroom plan --teachers 250 --queries 2000 --sigma 40

    Example: stillroom plan --teachers 250 --queries 200 --epsilon 1
    """
    from stillroom.planning import CONSENSUS
    from stillroom.planning import plan as make_plan

    made = make_plan(
        teachers=teachers,
        classes=classes,
        queries=queries,
        sigma=sigma,
        epsilon=epsilon,
        delta=delta,
        consensus=consensus or CONSENSUS,
    )
    if json:
        print_json(made.to_json())
    else:
        show_plan(made)


def show_plan(made: Plan) -> None:
    """Print a plan for people."""
    from stillroom.gate.rounding import shown

    teachers = f"{made.teachers} teachers, " if made.teachers is not None else ""
    typer.echo(
        f"{teachers}{made.classes} classes, {made.queries} answers at sigma "
        f"{float(made.sigma):g} (found: {made.solved})"
    )
    table(
        "epsilon for one record added or removed",
        ("delta", "PLD", "RDP", "certified"),
        [
            (
                f"{g.delta:g}",
                *("-" if e is None else shown(e, 3) for e in g.by_accountant.values()),
                shown(g.epsilon, 3),
            )
            for g in made.guarantees
        ],
    )
    if made.label_accuracy:
        table(
            "expected accuracy of one noisy label",
            ("consensus", "accuracy"),
            [(f"{c:.0%}", f"{int(1000 * a) / 10}%") for c, a in made.label_accuracy.items()],
        )
    if not made.fits:
        typer.echo(f"Does not fit: more than the epsilon of {made.target:g} that was asked for.")
