"""Whole releases of the benchmarks' recipes, and what their certificates say."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from measuring import peak_mb
from stillroom.gate import Budget
from stillroom.methods.registry import parse
from stillroom.pipeline.release import release
from stillroom.recipe import Recipe
from stillroom.release import verify_bundle
from stillroom.sources import Progress

RECIPES = Path(__file__).parent / "recipes"
OVERALL = "accuracy on the official test part"


def recipe_text(name: str) -> str:
    """A recipe of the benchmarks."""
    return (RECIPES / f"{name}.toml").read_text(encoding="utf-8")


def started(text: str, section: str, draw: int) -> str:
    """The recipe with a start of its own in a section, so that draws differ in their training too.

    A recipe without the section stays as it is.
    """
    return text.replace(f"\n[{section}]\n", f"\n[{section}]\nstart_seed = {draw}\n")


def toml_of(recipe: Mapping[str, Any]) -> str:
    """A recipe as TOML."""
    lines = [f"{k} = {json.dumps(v)}" for k, v in recipe.items() if not isinstance(v, dict)]
    for name, part in recipe.items():
        if isinstance(part, dict):
            lines += ["", f"[{name}]", *(f"{k} = {json.dumps(v)}" for k, v in part.items())]
    return "\n".join(lines) + "\n"


@contextmanager
def bundle_of(
    name: str,
    text: str,
    title: str,
    budget: Budget | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Iterator[tuple[dict[str, Any], Path]]:
    """One release of a recipe in a folder of its own, which is removed at the end.

    Files stand beside the recipe, by their names.

    Gives its certificate, with the seconds it took and those of its phases, and its bundle.
    """
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as work:
        recipe, bundle = Path(work) / f"{name}.toml", Path(work) / "bundle"
        recipe.write_text(text, encoding="utf-8")
        for file, content in (files or {}).items():
            (Path(work) / file).write_bytes(content)
        privacy = parse(text).privacy
        begun = [("looking at the recipe", time.perf_counter())]

        def tell(line: str) -> None:
            print(f"  {title}: {line}", file=sys.stderr)
            begun.append((line, time.perf_counter()))

        certificate = release(
            recipe,
            bundle,
            budget=budget or Budget(privacy.epsilon, privacy.delta),
            progress=Progress(tell=tell),
        )
        verify_bundle(bundle)
        begun.append(("end", time.perf_counter()))
        phases: dict[str, float] = {}
        for (phase, start), (_, end) in pairwise(begun):
            phases[phase] = phases.get(phase, 0) + end - start
        yield {**certificate, "seconds": begun[-1][1] - begun[0][1], "phases": phases}, bundle


def released(
    name: str,
    text: str,
    title: str,
    budget: Budget | None = None,
    files: Mapping[str, bytes] | None = None,
) -> dict[str, Any]:
    """One release of a recipe in a folder of its own; its certificate, and the seconds it took."""
    with bundle_of(name, text, title, budget, files) as (certificate, _):
        return certificate


def of_releases(recipe: Recipe, runs: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """The fields that certificates of the same recipe fill."""
    return {
        "dataset": recipe.data.source,
        "method": recipe.method,
        "mode": recipe.mode,
        "unit": recipe.data.unit,
        "epsilon": max(one["headline"]["epsilon"] for one in runs),
        "delta": runs[0]["headline"]["delta"],
        "draws": len(runs),
        "seconds": round(mean(one["seconds"] for one in runs), 1),
        "peak_mb": peak_mb(),
        "recipe": f"benchmarks/recipes/{name}.toml",
    }
