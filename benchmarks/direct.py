"""Accuracy at a certified epsilon: recipes under benchmarks/recipes, three noise draws each.

Run by `make bench-direct`. Each draw is a whole `stillroom release` with a ledger of its own (L5);
what it prints comes from its certificate. Every figure is appended to results/direct.jsonl; a
missed target ends 1. The data sets come by `make data`.

    python benchmarks/direct.py [PATTERN] [--draws N]
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from measuring import append, result_line, spread
from releases import OVERALL, of_releases, recipe_text, released
from stillroom.methods.registry import parse

DRAWS = 3
PACKAGES = ("stillroom", "numpy", "torch", "opacus", "onnxruntime")

TARGETS: dict[str, tuple[float | None, str | None]] = {
    "direct-mnist-1": (0.98, "DPDFD 0.951-0.976"),
    "direct-mnist-3": (0.987, None),
    "direct-fashion-1": (0.88, "DPDFD 0.839"),
    "direct-fashion-10": (0.90, "DPDFD 0.899"),
    "direct-cifar10-2": (0.86, "DPDFD 0.860, its direct training 0.865"),
    "direct-cifar10-4": (None, "DPDFD's direct training 0.871"),
    "direct-cifar10-8": (None, "DPDFD's direct training 0.897"),
    "sketch-mnist-1": (0.97, None),
    "network-mnist-3": (None, None),
}
"""Recipe -> the least mean accuracy, and the figure a paper publishes without a guarantee that
holds."""


def line(name: str, runs: list[dict[str, Any]], published: str | None) -> dict[str, Any]:
    """A line of the results, every field of the format present."""
    return result_line(
        "direct",
        PACKAGES,
        **of_releases(parse(recipe_text(name)), runs, name),
        **spread([one["sections"]["evaluation"]["accuracy"] for one in runs]),
        source="trained",
        metric=OVERALL,
        published=published,
    )


def main(words: list[str]) -> int:
    """Run the recipes whose name matches; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="a part of the recipes' names")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of noise, per recipe")
    told = parser.parse_args(words)
    missed = []
    for name, (least, published) in TARGETS.items():
        if not re.search(told.pattern, name):
            continue
        text, draws = recipe_text(name), told.draws
        runs = [released(name, text, f"{name} {draw + 1}/{draws}") for draw in range(draws)]
        found = line(name, runs, published)
        append("direct", [found])
        verdict = ""
        if least is not None:
            met = found["mean"] >= least
            verdict = f"  wanted {least:.1%}: {'met' if met else 'MISSED'}"
            missed += [] if met else [name]
        print(
            f"{name:<20} epsilon {found['epsilon']:.3f}  accuracy {found['mean']:.2%} "
            f"(sd {found['sd'] or 0:.2%}, {draws} draws)  {found['seconds']:.0f} s each{verdict}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
