"""`stillroom ledger`: what was promised, spent and drawn, and whether the record is whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stillroom.cli.printing import Json, print_json, table, write_new

if TYPE_CHECKING:
    from stillroom.gate import Ledger

app = typer.Typer(help="Ledgers: show, budget, export, verify.", no_args_is_help=True)
budget_app = typer.Typer(help="Budgets: show them, set, raise or unset one.", no_args_is_help=True)
app.add_typer(budget_app, name="budget")

LedgerFile = Annotated[Path, typer.Argument(help="The ledger's file.", metavar="LEDGER")]
Ledgers = Annotated[
    Path,
    typer.Argument(help="The ledger's file; or a folder: all ledgers in it.", metavar="LEDGER"),
]


def _open(path: Path) -> Ledger:
    from stillroom.gate import Ledger

    return Ledger.open(path, read_only=True)


def files_of(path: Path) -> list[Path]:
    """The ledger, or those in a folder: one per entity.

    Raises:
        BadInput: the folder has none.
    """
    from stillroom.errors import BadInput

    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.sqlite"))
    if not found:
        raise BadInput(
            "there is no ledger in the folder",
            where=str(path),
            why="a release makes them: one for each entity",
            remedy="name a ledger's file, or the folder that the recipe calls ledger",
        )
    return found


@app.command("show")
def show(ledger: Ledgers, json: Json = False) -> None:
    """Show budgets, blocks and draws; reading changes nothing.

    Example: stillroom ledger show ledger.sqlite

    Example: stillroom ledger show ledgers
    """
    if not ledger.is_dir():
        show_ledger(_open(ledger), json)
        return
    summaries = {file.stem: _summary(_open(file)) for file in files_of(ledger)}
    if json:
        print_json(summaries)
        return
    _show_entities(summaries)


def _show_entities(summaries: dict[str, dict[str, Any]]) -> None:
    """One line per ledger: what it may spend, has spent and has drawn."""
    from stillroom.gate.rounding import shown

    rows = []
    for name, summary in summaries.items():
        own = summary["budgets"][0] if summary["budgets"] else None
        wishes = [wish for block in summary["blocks"] for wish in block["wishes"]]
        rows.append(
            (
                name,
                "none" if own is None else f"{own['epsilon']:g}",
                "-" if own is None else shown(own["spent"], 3),
                sum(wish["reserved"] for wish in wishes),
                sum(wish["drawn"] for wish in wishes),
                sum(wish["lost"] for wish in wishes),
            )
        )
    table(
        f"{len(rows)} ledgers, one per entity",
        ("ledger", "budget", "spent so far", "reserved", "drawn", "lost"),
        rows,
    )


def show_ledger(opened: Ledger, json: bool = False) -> None:
    """Print a ledger, for people or as JSON."""
    from stillroom.gate.rounding import shown

    summary = _summary(opened)
    if json:
        print_json(summary)
        return
    typer.echo(f"ledger {summary['ledger']} for {summary['purpose']}, head {summary['head']}")
    _show_budgets(summary["budgets"])
    rows = [
        (
            f"block {block['block']}: {wish['mechanism']}",
            wish["reserved"],
            wish["drawn"],
            wish["lost"],
            "-" if block["epsilon"] is None else shown(block["epsilon"], 3),
            block["noise"],
        )
        for block in summary["blocks"]
        for wish in block["wishes"]
    ]
    table(
        f"blocks, each charged whole when reserved (epsilon at delta {summary['delta']:g})",
        ("block", "reserved", "drawn", "lost", "epsilon", "noise"),
        rows,
    )
    for block in summary["blocks"]:
        if any(wish["open"] for wish in block["wishes"]):
            told = "the last draw is at work, or lost if its run was cut off"
            typer.echo(f"block {block['block']}: {told}")


def _show_budgets(budgets: list[dict[str, Any]]) -> None:
    from stillroom.gate.rounding import shown
    from stillroom.release.formatting import ROOM_LEFT, room_left

    table(
        "budgets",
        ("for", "epsilon", "delta", "spent so far", "room left"),
        [
            (
                b["for"],
                f"{b['epsilon']:g}",
                f"{b['delta']:g}",
                shown(b["spent"], 3),
                room_left(b["share"]),
            )
            for b in budgets
        ],
    )
    if budgets:
        typer.echo(ROOM_LEFT)
    else:
        typer.echo(
            "No budget is set: nothing can be drawn. See: stillroom ledger budget set --help"
        )


def _budgets(opened: Ledger) -> list[dict[str, Any]]:
    reasons = {row.body["pair"]: row.body["reason"] for row in opened.store.rows("kind = 'budget'")}
    return [
        {
            "for": str(spent.budget.pair),
            "epsilon": spent.budget.epsilon,
            "delta": spent.budget.delta,
            "spent": spent.epsilon,
            "share": spent.share,
            "reason": reasons[str(spent.budget.pair)],
        }
        for spent in opened.standing()
    ]


def _summary(opened: Ledger) -> dict[str, Any]:
    budgets, promises = _budgets(opened), opened.promises
    pair = str(promises.own)
    delta = 1e-5 if promises.own_budget is None else promises.own_budget.delta
    blocks = []
    for row in opened.store.rows("kind = 'block'"):
        own = list(opened.store.rows("block = ?", (row.seq,)))
        figures = row.body["epsilon"].get(pair, {}).get(str(delta), {})
        blocks.append(
            {
                "block": row.seq,
                "at": row.at,
                "noise": row.body["noise"],
                "epsilon": figures.get("certified", float("inf")),
                "wishes": [
                    _wish(place, wish, own) for place, wish in enumerate(row.body["wishes"])
                ],
            }
        )
    return {
        "ledger": opened.id,
        "purpose": str(opened.purpose),
        "head": str(opened.head()),
        "delta": delta,
        "budgets": budgets,
        "blocks": blocks,
    }


def _wish(place: int, wish: dict[str, Any], rows: list[Any]) -> dict[str, Any]:
    from stillroom.gate.ledger.verify import lost_draws

    draws = [r for r in rows if r.kind == "draw" and r.body["wish"] == place]
    commits = [r for r in rows if r.kind == "commit"]
    # A run draws one after another: the last row of a block, and no other, may be at work still.
    at_work = sum(r.body["count"] for r in draws if r is rows[-1])
    return {
        "mechanism": wish["mechanism"],
        "reserved": wish["count"],
        "drawn": sum(r.body["count"] for r in draws),
        "lost": lost_draws([*draws, *commits]) - at_work,
        "open": at_work,
    }


@budget_app.command("show")
def budget_show(ledger: LedgerFile, json: Json = False) -> None:
    """Show the budgets in force and what they have seen.

    Example: stillroom ledger budget show ledger.sqlite
    """
    show = print_json if json else _show_budgets
    show(_budgets(_open(ledger)))


@budget_app.command("set")
def budget_set(
    ledger: Ledgers,
    epsilon: Annotated[float, typer.Option(help="The most that may ever be spent.")],
    reason: Annotated[str, typer.Option(help="Why; it stays in the ledger for ever.")],
    delta: Annotated[float, typer.Option(help="Chance that the promise fails.")] = 1e-5,
    pair: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Unit and relation; by default what the ledger is for.",
            metavar="UNIT/RELATION",
        ),
    ] = None,
) -> None:
    """Set a budget, or raise it; every change is a row with its reason.

    Example: stillroom ledger budget set ledger.sqlite --epsilon 2 --reason "first release"

    Example: stillroom ledger budget set ledgers --epsilon 2 --reason "all entities alike"
    """
    from stillroom.gate import Budget, Ledger
    from stillroom.vocabulary import Pair

    files = files_of(ledger)
    for file in files:
        with closing(Ledger.open(file)) as opened:
            own = opened.promises.own if pair is None else Pair.parse(pair)
            opened.set_budget(Budget(epsilon, delta, own), reason)
    of = "" if files == [ledger] else f" of {len(files)} ledgers"
    typer.echo(f"budget for {own}: epsilon {epsilon:g} at delta {delta:g}{of}")


@budget_app.command("unset")
def budget_unset(
    ledger: LedgerFile,
    pair: Annotated[str, typer.Option("--for", help="Whose budget.", metavar="UNIT/RELATION")],
    reason: Annotated[str, typer.Option(help="Why; later certificates print it.")],
) -> None:
    """Take back a budget that is not the ledger's own.

    Example: stillroom ledger budget unset l.sqlite --for record/change --reason "not promised"
    """
    from stillroom.gate import Ledger
    from stillroom.vocabulary import Pair

    Ledger.open(ledger).unset_budget(Pair.parse(pair), reason)
    typer.echo(f"no budget for {pair} any more")


@app.command("export")
def export(
    ledger: Ledgers,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file instead of the terminal.")
    ] = None,
) -> None:
    """Write every row as JSON: no fingerprints, no answers, enough to verify and to price again.

    Example: stillroom ledger export ledger.sqlite -o ledger.json
    """
    import json

    from stillroom.gate.ledger import export as export_ledger

    told = {file.stem: export_ledger(_open(file)) for file in files_of(ledger)}
    text = json.dumps(told if ledger.is_dir() else told[ledger.stem], indent=1)
    if output is None:
        typer.echo(text)
        return
    write_new(output, "export", text + "\n")
    typer.echo(f"exported to {output}")


@app.command("verify")
def verify(
    ledger: Annotated[Path, typer.Argument(help="A ledger, or an export of one.")],
    head: Annotated[
        str | None, typer.Option(help="A head kept elsewhere, NUMBER:HASH; it must be in there.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="A data set, by name or file; it must be this ledger's.")
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(help="Or a recipe, whose data must be: it knows classes and columns."),
    ] = None,
    json: Json = False,
) -> None:
    """Check the chain, the draws and the prices, and price everything again. Exit 4 if not whole.

    Example: stillroom ledger verify ledger.sqlite

    Example: stillroom ledger verify ledger.json --head 12:9f...

    Example: stillroom ledger verify ledger.sqlite --recipe visits.toml
    """
    from stillroom.errors import BadInput
    from stillroom.gate.ledger.verify import check
    from stillroom.gate.rounding import shown

    if data is not None and recipe is not None:
        raise BadInput(
            "--data and --recipe were both given",
            where="ledger verify",
            why="the ledger is compared with one set of records",
            remedy="give one of them",
        )
    ids = None if recipe is None else _ids_of(recipe)
    report = check(ledger, head=head, data=data, ids=ids)
    if json:
        print_json(report)
        return
    typer.echo(f"verifies: {report['rows']} rows, {report['blocks']} blocks, head {report['head']}")
    table(
        "all blocks priced again, as if they had been fixed beforehand",
        ("for", "delta", "PLD", "RDP", "certified"),
        [
            (
                line["for"],
                f"{line['delta']:g}",
                "-" if line["PLD"] is None else shown(line["PLD"], 3),
                shown(line["RDP"], 3),
                shown(line["certified"], 3),
            )
            for line in report["prices"]
        ],
    )


def _ids_of(recipe: Path) -> list[str]:
    """Of all records that a recipe names."""
    from stillroom.methods.registry import read
    from stillroom.pipeline.release import split_of

    split = split_of(read(recipe)[0], recipe.parent)
    return [own for part in (split.sensitive, split.test, split.public) for own in part.ids]
