"""Accuracy at a certified epsilon: recipes under benchmarks/recipes, three noise draws each.

Run by `make bench-direct`. Each draw is a whole `stillroom release` with a ledger of its own (L5);
what it prints comes from its certificate. Every figure is appended to results/direct.jsonl; a
missed target ends 1. The data sets come by `make data`.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from stillroom.gate import Budget
from stillroom.methods.recipe import read
from stillroom.methods.road import release
from stillroom.release import verify_bundle

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "direct.jsonl"
DRAWS = 3
PACKAGES = ("stillroom", "numpy", "torch", "opacus", "onnxruntime")

TARGETS: dict[str, tuple[float | None, str | None]] = {
    "direct-mnist-1": (0.98, "DPDFD 0.951-0.976"),
    "direct-mnist-3": (0.987, None),
    "direct-fashion-1": (0.88, "DPDFD 0.839"),
    "direct-fashion-10": (0.90, "DPDFD 0.899"),
    "direct-cifar10-2": (0.86, "DPDFD 0.860"),
    "sketch-mnist-1": (0.97, None),
    "network-mnist-3": (None, None),
}
"""Recipe -> the least mean accuracy, and the figure a paper publishes without a guarantee that
holds."""


def run(name: str, draw: int) -> dict[str, Any]:
    """One release of a recipe in a folder of its own; what its certificate says."""
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as work:
        recipe = Path(work) / f"{name}.toml"
        shutil.copy(HERE / "recipes" / f"{name}.toml", recipe)
        privacy = read(recipe)[0].privacy
        start = time.perf_counter()
        certificate = release(
            recipe,
            Path(work) / "bundle",
            budget=Budget(privacy.epsilon, privacy.delta),
            tell=lambda line: print(f"  {name} {draw + 1}/{DRAWS}: {line}", file=sys.stderr),
        )
        verify_bundle(Path(work) / "bundle")
        return {
            "accuracy": certificate["evaluation"]["accuracy"],
            "epsilon": certificate["headline"]["epsilon"],
            "delta": certificate["headline"]["delta"],
            "model": certificate["model"],
            "public_knowledge": certificate["public_knowledge"],
            "seconds": time.perf_counter() - start,
        }


def line(name: str, runs: list[dict[str, Any]], published: str | None) -> dict[str, Any]:
    """A line of the results, every field of the format present."""
    recipe = read(HERE / "recipes" / f"{name}.toml")[0]
    accuracies = [one["accuracy"] for one in runs]
    return {
        "bench": "direct",
        "dataset": recipe.data.source,
        "method": recipe.method,
        "source": "dp-trained",
        "mode": recipe.mode,
        "unit": recipe.data.unit,
        "epsilon": max(one["epsilon"] for one in runs),
        "delta": runs[0]["delta"],
        "metric": "accuracy on the official test part",
        "mean": mean(accuracies),
        "sd": stdev(accuracies) if len(accuracies) > 1 else None,
        "draws": len(runs),
        "published": published,
        "peer": None,
        "peer_mean": None,
        "ratio": None,
        "seconds": round(mean(one["seconds"] for one in runs), 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "recipe": f"benchmarks/recipes/{name}.toml",
        "versions": {"python": sys.version.split()[0], **{p: version(p) for p in PACKAGES}},
    }


def main(pattern: str = "") -> int:
    """Run the recipes whose name matches; 1 if a target was missed."""
    missed = []
    for name, (least, published) in TARGETS.items():
        if not re.search(pattern, name):
            continue
        runs = [run(name, draw) for draw in range(DRAWS)]
        figure = line(name, runs, published)
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(figure) + "\n")
        verdict = ""
        if least is not None:
            met = figure["mean"] >= least
            verdict = f"  wanted {least:.1%}: {'met' if met else 'MISSED'}"
            missed += [] if met else [name]
        print(
            f"{name:<20} epsilon {figure['epsilon']:.3f}  accuracy {figure['mean']:.2%} "
            f"(sd {figure['sd']:.2%}, {DRAWS} draws)  {figure['seconds']:.0f} s each{verdict}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
