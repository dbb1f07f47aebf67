"""A check of a recipe on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from stillroom.pipeline.checking import Report


def show(name: str, report: Report) -> None:
    """Print what was found."""
    from stillroom.cli.data import EYES_ONLY
    from stillroom.cli.printing import printable, table

    title = f"{printable(name)}: looked at; nothing paid, drawn or kept"
    table(title, ("what", "value"), _rows(report))
    if report.per_class:
        table("", ("class", *report.per_class), _class_rows(report.per_class))
        typer.echo(EYES_ONLY)
    for note in report.notes:
        typer.echo(f"note: {printable(note)}")
    for misfit in report.misfits:
        typer.echo(f"misfit: {printable(misfit.what)}")
        for title, text in (
            ("where", misfit.where),
            ("why it matters", misfit.why),
            ("what to do", misfit.remedy),
        ):
            if text:
                typer.echo(f"  {title}: {printable(text)}")
    if report.could_start:
        typer.echo("A release could start.")
    else:
        count = len(report.misfits)
        typer.echo(f"A release could not start: {count} misfit{'' if count == 1 else 's'}.")


def _class_rows(per_class: dict[str, dict[str, int]]) -> list[tuple[Any, ...]]:
    parts = list(per_class.values())
    return [(name, *(part[name] for part in parts)) for name in parts[0]]


def _rows(report: Report) -> list[tuple[str, str]]:
    from stillroom.gate.rounding import shown
    from stillroom.sources.trials import told

    facts, rows = report.facts, []
    if "method" in facts:
        rows.append(("method", f"{facts['method']}, source {facts['source']}"))
        rows.append(("protected", f"each {facts['unit']}"))
    if "shape" in facts:
        rows.append(("a record", f"{tuple(facts['shape'])}, {facts['type']}"))
        for part, count in facts["records"].items():
            persons = facts.get("persons", {}).get(part)
            of = "" if persons is None else f" of {persons:,} persons"
            open_to_all = ", declared public" if part == "test" and facts["test_is_public"] else ""
            rows.append((f"{part} records", f"{count:,}{of}{open_to_all}"))
    if "records_of_a_person_at_most" in facts:
        rows.append(("of one person, at most", f"{facts['records_of_a_person_at_most']:,}"))
    if "epsilon" in facts:
        rows.append(
            ("certified epsilon", f"{shown(facts['epsilon'], 3)} at delta {facts['delta']:g}")
        )
        noise = facts["noise_multiplier"]
        rows.append(("noise over clip", "given by the recipe" if noise is None else f"{noise:g}"))
    rows += [(f"time of {name}, about", told(took)) for name, took in report.seconds.items()]
    if report.seconds:
        rows.append(("time of all of it, about", told(sum(report.seconds.values()))))
    if "memory_needed" in facts:
        need, free = facts["memory_needed"] / 1e9, facts["memory_free"] / 1e9
        rows.append(("memory, about", f"{need:.1f} GB of {free:.1f} GB that are free"))
    return [*rows, *_ledger_rows(facts.get("ledger"))]


def _ledger_rows(ledger: dict[str, Any] | None) -> list[tuple[str, str]]:
    from stillroom.gate.rounding import shown

    if ledger is None:
        return []
    several = f", {ledger['there']} of {ledger['of']} there" if ledger["of"] > 1 else ""
    state = several or ("" if ledger["there"] else ", not there yet")
    rows = [("ledger", f"{ledger['where']}{state}")]
    if "budget" not in ledger:
        return rows
    told = f"epsilon {ledger['budget']:g} at delta {ledger['delta']:g} for {ledger['for']}"
    used, need = ledger["share_used"], ledger["share_needed"]
    rows += [
        ("budget", told),
        ("spent so far", f"{shown(ledger['spent'], 3)}, {used:.0%} of what it allows"),
    ]
    if "paid" in ledger:
        return [*rows, ("this release", "paid for already; the same command goes on")]
    left = max(0.0, 1 - used - need)
    return [*rows, ("this release needs", f"{need:.0%}; left after it: {left:.0%}")]
