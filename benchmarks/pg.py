"""Certified parameter publishing at epsilon 2, 5 and 8: PG-L, PGP-L and PGC-L beside direct.

Part of `make bench-pg`. Each draw is a whole `stillroom release` with a ledger of its own (L5);
what it prints comes from its certificate. After each draw a line is appended to results/pg.jsonl,
with all draws of that variant so far and the recipe itself: three where there is a target, else
one. A missed target ends 1. The data sets come by `make data`.

    python benchmarks/pg.py [PATTERN] [--draws N] [--continue]

A pattern picks variants by data set, name and epsilon, such as "mnist.*mean.*2". With --continue,
draws of the same recipe that stand in the results are not made again.

No public picture is used: features, scale and start come from samples of the sketch. The numbers
were chosen on the official training parts, measured on their last 10,000 pictures.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Any

from measuring import append, peak_mb, read, result_line, spread
from releases import OVERALL, released, toml_of
from stillroom.methods.registry import parse

BENCH, DRAWS, DELTA = "pg", 3, 1e-5
PACKAGES = ("stillroom", "numpy", "torch", "onnxruntime")
EPSILONS = (2, 5, 8)
Parts = dict[str, Any]

SKETCH: Parts = {
    "mu": "1/10",
    "coefficients": 100,
    "directions": 32,
    "centres": 1,
    "lloyd": 1,
    "shares": ["0.3", "0.25", "0.1", "0.35"],
    "whitened": 1,
    "spread": [1.0, 1.0],
    "samples": 10_000,
}
LOOKS = {"mnist": {"sharpen": 1.0, "warp": 1.0}, "fashion-mnist": {"sharpen": 0.0, "warp": 0.3}}
"""How samples of a data set are finished, as for data-free students."""
GAUSSIAN: Parts = {"rounds": 20, "clip": 1.0, "momentum": 0.5}
EXPONENTIAL: Parts = {
    "mechanism": "exponential",
    "rounds": 4,
    "radius": 0.3,
    "points": 33,
    "bandwidth": 0.1,
}


@dataclass(frozen=True)
class Variant:
    """A way to publish heads over features.

    Args:
        name: in words.
        components: directions of the features.
        collection: what differs from the usual collection.
        pg: the publisher.
        least: by data set, the least mean accuracies at the three epsilons.
    """

    name: str
    components: int
    collection: Parts
    pg: Parts
    least: dict[str, tuple[float, ...]]


MANY = {"models": 4000, "shard_cap": 44, "learning_rate": 1.0}
FEWER = {"models": 1000, "shard_cap": 110}
VARIANTS = (
    Variant(
        "PG-L, mean, 20 rounds",
        512,
        MANY,
        GAUSSIAN,
        {"mnist": (0.964, 0.967, 0.967), "fashion-mnist": (0.84, 0.845, 0.846)},
    ),
    Variant("PG-L, mean, once", 64, {**FEWER, "learning_rate": 1.0}, {"clip": 1.0}, {}),
    Variant(
        "PG-L, density and choice, 4 rounds",
        64,
        {**FEWER, "learning_rate": 2.0, "steps": 3},
        EXPONENTIAL,
        {"mnist": (0.912, 0.949, 0.955)},
    ),
    Variant(
        "PGP-L, mean, 20 rounds",
        512,
        MANY,
        {**GAUSSIAN, "publisher": "pgp", "map": "groups", "latents": 640},
        {},
    ),
    Variant(
        "PGC-L, mean, 20 rounds",
        512,
        {**MANY, "scale": "diagonal"},
        {**GAUSSIAN, "publisher": "pgc", "kept": "1/2", "codebook_bits": 6, "residual_bits": 4},
        {},
    ),
)


def recipe_of(dataset: str, epsilon: float, variant: Variant | None) -> Parts:
    """A variant as a recipe; without one method direct on the same kind of features."""
    components = 512 if variant is None else variant.components
    method: Parts = {
        "training": {
            "rate": 1,
            "steps": 100,
            "clip": "3/10",
            "learning_rate": 100.0,
            "momentum": 0.9,
        }
    }
    if variant is not None:
        method = {"collection": {"start": "sketch", **variant.collection}, "pg": variant.pg}
    return {
        "method": "direct" if variant is None else "pg",
        "purpose": "benchmark",
        "data": {
            "source": dataset,
            "split": "as-given",
            "test_is_public": True,
            "declared_size": 60_000,
        },
        "features": {"name": "scattering", "components": components, "fitted_on": "sketch"},
        "sketch": {**SKETCH, **LOOKS[dataset]},
        **method,
        "privacy": {"epsilon": float(epsilon), "delta": DELTA, "tuning": "undeclared"},
    }


@dataclass(frozen=True)
class Row:
    """What is measured: a variant on a data set at an epsilon."""

    dataset: str
    epsilon: int
    name: str
    text: str
    least: float | None


def rows() -> Iterator[Row]:
    """All of them."""
    for dataset in LOOKS:
        for variant in (*VARIANTS, None):
            for place, epsilon in enumerate(EPSILONS):
                text = toml_of(recipe_of(dataset, epsilon, variant))
                if variant is None:
                    yield Row(dataset, epsilon, "direct", text, None)
                    continue
                least = variant.least.get(dataset)
                wanted = None if least is None else least[place]
                yield Row(dataset, epsilon, variant.name, text, wanted)


def told_by(certificate: Parts) -> Parts:
    """What is kept of one draw."""
    sections = certificate["sections"]
    controls = (sections.get("controls") or {}).get("models", [])
    small = sections.get("compression")
    return {
        "accuracy": sections["evaluation"]["accuracy"],
        "epsilon": certificate["headline"]["epsilon"],
        "controls": {one["name"]: one["accuracy"] for one in controls},
        "compression": small,
        "seconds": round(certificate["seconds"], 1),
    }


def line(row: Row, runs: list[Parts]) -> Parts:
    """A line of the results, every field of the format present."""
    recipe = parse(row.text)
    return result_line(
        BENCH,
        PACKAGES,
        dataset=row.dataset,
        method=recipe.method,
        source=recipe.source,
        mode=recipe.mode,
        unit=recipe.data.unit,
        epsilon=max(one["epsilon"] for one in runs),
        delta=DELTA,
        metric=OVERALL,
        **spread([one["accuracy"] for one in runs]),
        draws=len(runs),
        seconds=round(mean(one["seconds"] for one in runs), 1),
        peak_mb=peak_mb(),
        recipe=row.text,
        variant=row.name,
        asked=row.epsilon,
        controls={
            name: spread([one["controls"][name] for one in runs]) for name in runs[0]["controls"]
        },
        runs=runs,
    )


def measured(row: Row, draws: int, *, go_on: bool) -> Parts:
    """The line after the last draw; each draw is appended."""
    old = [one for one in read(BENCH) if one["recipe"] == row.text]
    runs: list[Parts] = old[-1]["runs"][:draws] if go_on and old else []
    while len(runs) < draws:
        title = f"{row.dataset} {row.name} {row.epsilon} {len(runs) + 1}/{draws}"
        runs = [*runs, told_by(released("pg", row.text, title))]
        append(BENCH, [line(row, runs)])
    return line(row, runs)


def main(words: list[str]) -> int:
    """Measure the rows that match; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="a part of data set, name, epsilon")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of noise, for targets")
    parser.add_argument("--continue", action="store_true", dest="go_on", help="keep known draws")
    told = parser.parse_args(words)
    missed = False
    for row in rows():
        if not re.search(told.pattern, f"{row.dataset} {row.name} {row.epsilon}"):
            continue
        found = measured(row, 1 if row.least is None else told.draws, go_on=told.go_on)
        met = row.least is None or found["mean"] >= row.least
        missed |= not met
        verdict = "" if row.least is None else f", wanted {row.least:.1%}"
        print(
            f"{row.dataset:<14}{row.name:<36}{row.epsilon}: {found['mean']:.2%} "
            f"(sd {found['sd'] or 0:.2%}, {found['draws']} draws){verdict}"
            f"{'' if met else ': MISSED'}  {found['seconds']:.0f} s each",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
