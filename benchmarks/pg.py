"""Certified parameter publishing at epsilon 2, 5 and 8: PG-L, PGP-L and PGC-L beside direct.

Part of `make bench-pg`. Each draw is a whole `stillroom release` with a ledger of its own (L5);
what it prints comes from its certificate. After each draw a line is appended to results/pg.jsonl,
with all draws of that variant so far and the recipe itself: three where there is a target, else
one. A missed target ends 1. The data sets come by `make data`.

    python benchmarks/pg.py [PATTERN] [--draws N] [--continue]

A pattern picks variants by data set, name and epsilon, such as "mnist.*mean.*2".

No public picture is used: features, scale and start come from samples of the sketch. The numbers
were chosen on the official training parts, measured on their last 10,000 pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from draws import Benchmark, Parts, Row
from measuring import peak_mb, result_line, spread
from releases import OVERALL, released, toml_of
from stillroom.methods.registry import parse

BENCH, DRAWS, DELTA = "pg", 3, 1e-5
PACKAGES = ("stillroom", "numpy", "torch", "onnxruntime")
EPSILONS = (2, 5, 8)
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


def rows() -> Iterator[Row]:
    """All of them."""
    for dataset in LOOKS:
        for variant in (*VARIANTS, None):
            for place, epsilon in enumerate(EPSILONS):
                text = toml_of(recipe_of(dataset, epsilon, variant))
                least = None if variant is None else variant.least.get(dataset)
                wanted = None if least is None else least[place]
                name = "direct" if variant is None else variant.name
                yield Row(dataset, name, epsilon, text, 1 if wanted is None else DRAWS, wanted)


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


def drawn(row: Row, number: int) -> Parts:
    """One draw of a row."""
    title = f"{row.title} {number + 1}/{row.draws}"
    return told_by(released("pg", row.text, title))


if __name__ == "__main__":
    benchmark = Benchmark(BENCH, rows(), drawn, line)
    sys.exit(benchmark.main(sys.argv[1:], (__doc__ or "").splitlines()[0]))
