"""PG, PGP and PGC (Mao et al. 2021), Figs. 2 to 7 from our own runs, in a setting that trains here.

`python benchmarks/pg_figures.py [PATTERN]` follows one recipe per point as `stillroom release`
does, each with a ledger of its own (L5), and appends one line per point to
results/pg-figures.jsonl; points that stand there already are left out. It needs MNIST and CIFAR-10
in the data home (`make data`). SVHN has a loader and no download: import some of its digits as
svhn, or that part is left out. With `--draw` it draws docs/pictures from the results and trains
nothing.

All but DP-SGD is mode as-published: nothing of it is certified, and the budget on the x axis is
that of each single weight. What one record really costs stands in the results. The setting, M
models per collection: MNIST-Net on 6,000 records, 3 epochs, M 50; CIFAR-Net on 4,000 records, 5
epochs, M 20; SVHN-Net on 4,000 digits, 25 epochs, M 20; 2,000 pictures of the official test part
(SVHN: 1,000), one run per point. Collections are kept in the data home under bench-pg, so that a
benchmark that was cut off goes on. DP-SGD trains a small network without dropout on the same
records.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from measuring import append, peak_mb, read, result_line, spread
from pg_pictures import draw
from releases import OVERALL, released, toml_of
from stillroom.data.store import home, load_parts, save
from stillroom.errors import BadInput
from stillroom.gate import Budget
from stillroom.methods.pg import PgRecipe
from stillroom.methods.pg.claims import true_epsilon
from stillroom.methods.registry import parse

BENCH = "pg-figures"
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PACKAGES = ("stillroom", "numpy", "torch", "opacus", "onnxruntime")
DELTA, WITHOUT_LIMIT, SUFFIX = 1e-5, 1e15, "-small"
Parts = dict[str, Any]


@dataclass(frozen=True)
class Net:
    """A collection of the paper's network for a data set.

    Args:
        model: its name in the zoo.
        weights: how many it has.
        records: of the training part.
        epochs: of each model in its final state.
        models: M.
        states: epochs after which models are published, for Fig. 2.
    """

    model: str
    weights: int
    records: int
    epochs: int
    models: int
    states: tuple[int, ...] = ()


NETS = {
    "mnist": Net("mnist-net", 1_199_882, 6000, 3, 50, (1, 3)),
    "cifar-10": Net("cifar-net", 1_250_858, 4000, 5, 20, (1, 5)),
    "svhn": Net("svhn-net", 314_394, 4000, 25, 20),
}
BUDGETS = (0.01, 0.1, 1, 2, 10)
RATIOS = (0, 0.15, 0.35, 0.55, 0.75, 0.9)
CENTROID_BITS, RESIDUAL_BITS = (1, 2, 4, 8), (1, 2, 4, 6)
TESTED = 2000
SOUND: Parts = {"grid": "public", "sensitivity": "true", "radius": 0.25}
"""A fixed grid and the sensitivity that holds: the epsilon is finite, and no promise."""


def as_published(
    dataset: str, publisher: str = "pg", epochs: int | None = None, **published: Any
) -> Parts:
    """A recipe of the paper's algorithms."""
    net = NETS[dataset]
    return {
        "method": "pg",
        "source": "plain",
        "mode": "as-published",
        "purpose": "benchmark",
        "data": _data(dataset),
        "collection": {
            "model": net.model,
            "models": net.models,
            "shard_cap": net.records,
            "epochs": epochs or net.epochs,
            "learning_rate": 0.001,
        },
        "pg": {"publisher": publisher},
        "published": published,
        "privacy": {"epsilon": 10, "delta": DELTA},
    }


def dp_sgd(dataset: str, epsilon: float) -> Parts:
    """A small network by DP-SGD on the same records; this epsilon is that of the whole model."""
    return {
        "method": "direct",
        "purpose": "benchmark",
        "data": _data(dataset),
        "training": {
            "model": "tanh-cnn",
            "rate": "1/12",
            "steps": 120,
            "clip": "1/2",
            "learning_rate": 1.0,
            "momentum": 0.9,
        },
        "privacy": {"epsilon": epsilon, "delta": DELTA},
    }


def _data(dataset: str) -> Parts:
    return {
        "source": dataset + SUFFIX,
        "split": "as-given",
        "test_is_public": True,
        "declared_size": NETS[dataset].records,
    }


@dataclass(frozen=True)
class Point:
    """A point of a figure."""

    figure: str
    curve: str
    dataset: str
    x: Parts
    recipe: Parts


def points() -> Iterator[Point]:
    """All that is measured, figure by figure."""
    for dataset in NETS:
        for part in (_states, _budgets, _grouped, _pruned, _precisions):
            yield from part(dataset)


def _states(dataset: str) -> Iterator[Point]:
    """Fig. 2: models are published after so many epochs."""
    for epochs in NETS[dataset].states:
        for epsilon in (0.1, 1, 10):
            recipe = as_published(dataset, epochs=epochs, epsilon=epsilon)
            curve = f"PG, {epsilon:g} per weight"
            yield Point("states", curve, dataset, {"epochs": epochs}, recipe)


def _budgets(dataset: str) -> Iterator[Point]:
    """Fig. 3, and Fig. 6 on the left: the budget of a weight, or of the whole model by DP-SGD."""
    for epsilon in BUDGETS:
        x = {"epsilon": epsilon}
        yield Point("budget", "PG as printed", dataset, x, as_published(dataset, epsilon=epsilon))
        sound = as_published(dataset, **SOUND, epsilon=epsilon)
        yield Point("budget", "PG, fixed grid, true sensitivity", dataset, x, sound)
        if epsilon >= 1:
            yield Point("budget", "DP-SGD, whole model", dataset, x, dp_sgd(dataset, epsilon))


def _grouped(dataset: str) -> Iterator[Point]:
    """Fig. 4: the three budgets of PGP, one at a time."""
    if dataset == "svhn":
        return
    names = {
        "epsilon": "eps_1, of a weight",
        "cluster_epsilon": "eps_2, of k-means",
        "residual_epsilon": "eps_3, of a residual",
    }
    others: Parts = {"epsilon": 1, "cluster_epsilon": 1, "residual_epsilon": 2}
    for key, curve in names.items():
        for epsilon in (0.1, 1, 2, 5):
            recipe = as_published(dataset, "pgp", **{**others, key: epsilon})
            yield Point("grouped", curve, dataset, {"epsilon": epsilon}, recipe)


def _pruned(dataset: str) -> Iterator[Point]:
    """Fig. 5, and Fig. 6 on the right: the share of weights that are set to zero."""
    for ratio in RATIOS:
        recipe = as_published(dataset, "pgc", epsilon=1, pruned=ratio)
        yield Point("pruned", "PGC, 1 per weight", dataset, {"pruned": ratio}, recipe)


def _precisions(dataset: str) -> Iterator[Point]:
    """Fig. 7: the bits of centroids and of residuals, one at a time."""
    if dataset == "svhn":
        return
    for key, other, curve, tried in (
        ("codebook_bits", "residual_bits", "bits of a centroid, p_c", CENTROID_BITS),
        ("residual_bits", "codebook_bits", "bits of a residual, p_r", RESIDUAL_BITS),
    ):
        for bits in tried:
            numbers = {key: bits, other: 2}
            recipe = as_published(dataset, "pgc", epsilon=10, **numbers)
            yield Point("precision", f"{curve}; the other has 2", dataset, {"bits": bits}, recipe)


def line(point: Point, run: Parts) -> Parts:
    """A line of the results, every field of the format present; epsilon is the one that holds."""
    text = toml_of(point.recipe)
    recipe = parse(text)
    true: float = run["headline"]["epsilon"]
    if isinstance(recipe, PgRecipe):
        true = true_epsilon(recipe, NETS[point.dataset].weights, DELTA)
    controls = (run["sections"].get("controls") or {}).get("models", [])
    return result_line(
        BENCH,
        PACKAGES,
        dataset=point.dataset + SUFFIX,
        method=recipe.method,
        source=recipe.source,
        mode=recipe.mode,
        unit="record",
        epsilon="infinite" if math.isinf(true) else true,
        delta=DELTA,
        metric=OVERALL,
        **spread([run["sections"]["evaluation"]["accuracy"]]),
        draws=1,
        seconds=round(run["seconds"], 1),
        peak_mb=peak_mb(),
        recipe=text,
        figure=point.figure,
        curve=point.curve,
        x=point.x,
        claimed_epsilon=(run["sections"].get("published") or {}).get("epsilon"),
        controls={one["name"]: one["accuracy"] for one in controls},
    )


def import_data(target: Path) -> list[str]:
    """The first records of each training part; which sets there are."""
    there = []
    for dataset, net in NETS.items():
        try:
            whole = load_parts(dataset)
        except BadInput:
            if dataset != "svhn":
                raise
            print("svhn is not in the data home: stillroom data import FILE --name svhn")
            continue
        train = whole["train"].select(np.arange(net.records))
        test = whole["test"].select(np.arange(min(TESTED, len(whole["test"]))))
        parts = {"train": train, "test": test}
        named = {name: replace(part, name=dataset + SUFFIX) for name, part in parts.items()}
        save(named, dataset + SUFFIX, target, replace=True)
        there.append(dataset)
    return there


def measure(pattern: str) -> None:
    """Measure what is not in the results yet."""
    measured = read(BENCH)
    known = {(old["figure"], old["curve"], old["recipe"]) for old in measured}
    done = {old["recipe"]: old for old in measured}
    own_home = home() / "bench-pg"
    there = import_data(own_home)
    os.environ["STILLROOM_HOME"] = str(own_home)
    wanted = [
        point
        for point in points()
        if point.dataset in there
        and (point.figure, point.curve, toml_of(point.recipe)) not in known
        and re.search(pattern, f"{point.figure} {point.curve} {point.dataset}")
    ]
    for number, point in enumerate(wanted, 1):
        text = toml_of(point.recipe)
        if text not in done:  # some points are in several figures
            budget = Budget(WITHOUT_LIMIT, DELTA)
            done[text] = line(point, released("figure", text, "run", budget))
        own = {"figure": point.figure, "curve": point.curve, "x": point.x}
        found = {**done[text], **own}
        append(BENCH, [found])
        print(
            f"{number}/{len(wanted)} {point.dataset} {point.figure} {point.curve} {point.x}: "
            f"{found['mean']:.2%}; claimed {found['claimed_epsilon']}, true {found['epsilon']}, "
            f"{found['seconds']:.0f} s",
            flush=True,
        )


def main(*words: str) -> int:
    """Measure and draw, or draw alone."""
    if "--draw" not in words:
        measure(next(iter(words), ""))
    for picture in draw(read(BENCH), PICTURES):
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
