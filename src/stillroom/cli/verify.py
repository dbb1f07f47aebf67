"""`stillroom verify`: is a bundle whole, and is its epsilon what its events cost?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def verify(
    folder: Annotated[Path, typer.Argument(help="The bundle's folder.", metavar="BUNDLE")],
    key: Annotated[
        Path | None,
        typer.Option(help="A public key's file; the bundle must be signed by it."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a bundle's files, signature and certificate, and price it again. Exit 4 if not whole.

    Example: stillroom verify bundle

    Example: stillroom verify bundle --key release.key.pub
    """
    from stillroom.cli.printing import print_json, table
    from stillroom.gate.rounding import shown
    from stillroom.pipeline.verify import verify as verify_release
    from stillroom.release.files import number
    from stillroom.release.parties import MANY

    report = verify_release(folder, key)
    if json:
        print_json(report)
        return
    top, several = report["headline"], len(report["parties"]) > 1
    typer.echo(
        f"verifies: {report['method']['name']}, {report['mode']}, for {report['purpose']}; epsilon "
        f"{shown(number(top['epsilon']), 3)} at delta {top['delta']:g} for {top['for']}"
    )
    typer.echo(report["promise"])
    typer.echo(f"signature: {report['signature']}")
    typer.echo(f"card: {report['card']}")
    typer.echo(f"recipe: {report['recipe']}")
    typer.echo(
        f"answers: {report['reserved']} reserved, {report['drawn']} drawn, {report['lost']} lost"
    )
    if len(report["parties"]) > MANY:
        _show_entities(report["parties"])
    for party in report["parties"] if len(report["parties"]) <= MANY else ():
        of = f" of {party['name']}" if several else ""
        table(
            f"all events{of} of this release, priced again",
            ("for", "delta", "stated", "priced again"),
            [
                (
                    line["for"],
                    f"{line['delta']:g}",
                    shown(number(line["epsilon"]), 3),
                    shown(number(line["priced_again"]), 3),
                )
                for line in party["guarantees"]
            ],
        )
        for total in party["data_set"]["totals"]:
            typer.echo(
                f"all releases on {'the' if several else 'these'} data{of} so far: epsilon "
                f"{shown(number(total['spent']), 3)} at delta {total['delta']:g} for "
                f"{total['for']}, of a budget of {total['budget']:g}"
            )
        if party["data_set"]["blocks"] > 1:
            typer.echo(
                "that total is added up as if all releases had been planned beforehand: no theorem "
                "gives it where one was planned in view of another's answers; what holds then is "
                "the budget"
            )
    for warning in report["warnings"]:
        typer.echo(f"note: {warning}")
    for unknown in report["not_checked"]:
        typer.echo(unknown)
    for open_thing in report["unprotected"]:
        typer.echo(f"not protected: {open_thing}")
    if report["tuning"] == "undeclared":
        typer.echo("note: tuning is undeclared; if it used these data, epsilon is larger")
    typer.echo(f"the releaser's word, which no bundle proves: {'; '.join(report['word'].values())}")


def _show_entities(parties: list[dict[str, Any]]) -> None:
    """One line per entity; the report as JSON has every figure."""
    from stillroom.cli.printing import table
    from stillroom.gate.rounding import shown
    from stillroom.release.files import number

    rows = []
    for party in parties:
        top, total = party["headline"], party["data_set"]["totals"][0]
        again = next(
            line["priced_again"]
            for line in party["guarantees"]
            if (line["for"], line["delta"]) == (top["for"], top["delta"])
        )
        rows.append(
            (
                party["name"],
                shown(number(top["epsilon"]), 3),
                shown(number(again), 3),
                shown(number(total["spent"]), 3),
                f"{total['budget']:g}",
            )
        )
    told = parties[0]["headline"]
    table(
        f"{len(rows)} entities, each for {told['for']} at delta {told['delta']:g}",
        ("entity", "stated", "priced again", "spent so far", "budget"),
        rows,
    )
