"""Whole releases of the benchmarks' recipes, and what their certificates say."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
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


def released(name: str, text: str, title: str, budget: Budget | None = None) -> dict[str, Any]:
    """One release of a recipe in a folder of its own; its certificate, and the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as work:
        recipe = Path(work) / f"{name}.toml"
        recipe.write_text(text, encoding="utf-8")
        privacy = parse(text).privacy
        start = time.perf_counter()
        certificate = release(
            recipe,
            Path(work) / "bundle",
            budget=budget or Budget(privacy.epsilon, privacy.delta),
            progress=Progress(tell=lambda line: print(f"  {title}: {line}", file=sys.stderr)),
        )
        verify_bundle(Path(work) / "bundle")
        return {**certificate, "seconds": time.perf_counter() - start}


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
