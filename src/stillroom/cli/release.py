"""`stillroom release`: from a recipe to a certified bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    pass

SIZES_MATTER_FROM = 30.0
"""From such an epsilon on, the error of the sampling tables is not negligible: it is weighed by
e^epsilon and grows with the number of weights, which a recipe alone does not tell."""

RecipeFile = Annotated[Path, typer.Argument(help="The recipe, a TOML file.", metavar="RECIPE")]


def release(
    recipe: RecipeFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="A new folder for the bundle.")],
    key: Annotated[Path | None, typer.Option(help="A private key to sign the bundle with.")] = None,
    accept_infinite: Annotated[
        bool,
        typer.Option(
            "--accept-infinite",
            help="Let a paper's algorithm leave a ledger for release at infinity.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only plan: no data are touched, nothing is drawn.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train, certify and pack a model; the same command goes on where it was cut off.

    Example: stillroom release examples/direct.toml -o digits-model
    """
    if dry_run:
        show_cost(recipe, json)
        return
    facts = follow(recipe, output, key, accept_infinite=accept_infinite)
    if json:
        from stillroom.cli.printing import print_json

        print_json(facts)
    else:
        tell(facts)


def tell(facts: dict[str, Any]) -> None:
    """Say what was made and where to look."""
    from stillroom.gate.rounding import shown
    from stillroom.release.formatting import measured, share

    epsilon = facts["epsilon"]
    told = shown(epsilon, 3) if isinstance(epsilon, float) else epsilon
    typer.echo(f"certified epsilon {told} at delta {facts['delta']:g} for {facts['for']}")
    typer.echo(facts["promise"])
    if isinstance(facts["accuracy"], float):
        noise = facts["accuracy_noise"]
        give_or_take = f", give or take {100 * noise:.1f} points of noise" if noise else ""
        typer.echo(f"accuracy {facts['accuracy']:.2%}{give_or_take}")
        typer.echo(measured(facts["measures"]))
    elif facts["tested"]:
        typer.echo("accuracy not told: too few test records for the noise")
    controls = facts["controls"]
    if isinstance(controls, dict) and controls:
        told = ", ".join(f"{name} {share(accuracy)}" for name, accuracy in controls.items())
        typer.echo(f"beside it: {told}")
    if "note" in facts:
        typer.echo(facts["note"])
    if facts["lost_steps"]:
        typer.echo(f"lost answers, charged and not drawn again: {facts['lost_steps']}")
    typer.echo(f"Check it: stillroom verify {facts['bundle']}")
    typer.echo(f"Read it:  {Path(str(facts['bundle'])) / 'card.html'}")


def follow(
    recipe: Path,
    output: Path,
    key: Path | None = None,
    budget: object = None,
    *,
    accept_infinite: bool = False,
) -> dict[str, object]:
    """Follow a recipe and show how far it is; return what to tell."""
    from stillroom.cli.progress import shown
    from stillroom.methods.wording import ONLY_A_MODEL
    from stillroom.pipeline.release import release as run_pipeline
    from stillroom.release.parties import blocks_of
    from stillroom.release.promise import promise
    from stillroom.vocabulary import Budget

    with shown() as told:
        certificate = run_pipeline(
            recipe,
            output,
            sign_with=key,
            budget=budget if isinstance(budget, Budget) else None,
            accept_infinite=accept_infinite,
            progress=told,
        )
    line, sections = certificate["headline"], certificate["sections"]
    measured = sections.get("evaluation")
    controls = sections.get("controls", {"models": []})["models"]
    return {
        "bundle": str(output),
        "for": line["for"],
        "epsilon": line["epsilon"],
        "delta": line["delta"],
        "promise": promise(certificate, yours=False),
        "tested": measured is not None,
        "accuracy": None if measured is None else measured["accuracy"],
        "accuracy_noise": None if measured is None else measured["accuracy_noise"],
        "measures": None if measured is None else measured["measures"],
        "controls": {one["name"]: one["accuracy"] for one in controls},
        "published": sections["published"],
        "lost_steps": sum(block["lost"] for block in blocks_of(certificate)),
        **({"note": ONLY_A_MODEL} if ONLY_A_MODEL in certificate["warnings"] else {}),
    }


def show_cost(recipe_file: Path, json: bool) -> None:
    """Print what a recipe would draw and cost, without looking at any record."""
    import time
    from collections import Counter

    from stillroom.cli.printing import print_json, table
    from stillroom.gate.rounding import shown
    from stillroom.methods.registry import method_named, read
    from stillroom.methods.wording import note_on
    from stillroom.pipeline.estimate import tried
    from stillroom.pipeline.pricing import nominal_facts, price
    from stillroom.release.files import spelled

    recipe, _ = read(recipe_file)
    start = time.perf_counter()
    cost = price(recipe)
    pricing = time.perf_counter() - start
    claim = method_named(recipe.method).plan(recipe, nominal_facts(recipe)).claim
    sizes_matter = cost.multiplier is not None and cost.epsilon > SIZES_MATTER_FROM
    most = max(cost.epsilon, recipe.privacy.epsilon) if sizes_matter else cost.epsilon
    start = time.perf_counter()
    phases = tried(recipe, pricing=pricing)
    trial = time.perf_counter() - start
    scale = None if cost.multiplier is None else float(cost.multiplier)
    draws: Counter[str] = Counter()
    for mechanism, count in cost.wishes.values():
        draws[mechanism.name] += count
    facts = {
        "epsilon": spelled(cost.epsilon),
        "epsilon_at_most": spelled(most),
        "delta": recipe.privacy.delta,
        "noise_multiplier": scale,
        "draws": dict(draws),
        "seconds": None if phases is None else _rounded(sum(taken for _, taken in phases)),
        "phases": None if phases is None else {name: _rounded(taken) for name, taken in phases},
        "trial_seconds": _rounded(trial),
        "published": claim.to_json(),
    }
    note = note_on(recipe)
    if json:
        print_json(facts if note is None else {**facts, "note": note})
        return
    table(
        f"{recipe_file}: nothing was read but the recipe, nothing drawn",
        ("what", "value"),
        [
            (
                "certified epsilon",
                shown(cost.epsilon, 3) + (f" to {shown(most, 3)}" if sizes_matter else ""),
            ),
            ("delta", f"{recipe.privacy.delta:g}"),
            ("noise over clip", "given by the recipe" if scale is None else f"{scale:g}"),
            *((f"draws of {name}", count) for name, count in draws.items()),
            ("published", claim.status),
        ],
    )
    _show_phases(phases, trial)
    if note is not None:
        typer.echo(note)
    if sizes_matter:
        typer.echo("Which one depends on how many weights the model has: the fewer, the larger.")


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.2g}")


def _show_phases(phases: Sequence[tuple[str, float]] | None, trial: float) -> None:
    """How long a run takes here, phase by phase."""
    from stillroom.cli.printing import table
    from stillroom.sources.trials import told

    if phases is None:
        typer.echo("How long it takes cannot be tried here with what is declared of the records.")
        return
    whole = sum(seconds for _, seconds in phases)
    rows = [(name, told(seconds)) for name, seconds in [*phases, ("all of it", whole)]]
    title = f"time on this machine, about; tried on made-up records in {told(trial)}"
    table(title, ("phase", "time"), rows)
