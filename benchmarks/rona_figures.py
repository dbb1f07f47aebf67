"""RONA's Fig. 2 (Wang et al. 2019) from our own runs, in a small setting.

`python benchmarks/rona_figures.py` follows one recipe per point and seed as `stillroom release`
does, each with a ledger of its own (L5), and appends one line per point to
results/rona-figures.jsonl; points that stand there already are left out. It needs MNIST in the data
home (`make data`). With `--draw` it draws docs/pictures from that file and trains nothing.

The setting: 12,000 MNIST records of 14x14 pixels, 2,000 of them public, and the official test part.
As published, all public records are labelled and one teacher saw everything; RONA-E has 100
teachers on disjoint shards and 100 public labels.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from measuring import append, peak_mb, read, result_line, spread
from releases import OVERALL, released, toml_of
from rona_pictures import ENSEMBLE, NOISE, draw, float_of
from stillroom.data.store import load_parts, save
from stillroom.gate import Budget
from stillroom.methods.rona.claims import claimed_epsilon

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PACKAGES = ("stillroom", "numpy", "torch", "onnxruntime")
DATA, RECORDS = "mnist-small", 12_000
SEEDS = (0, 1)
DELTA = 1e-5
WITHOUT_LIMIT = 1e12
"""The budget of a paper's algorithm: a benchmark's ledger may end at infinity."""

Parts = dict[str, Any]

SHARED: Parts = {
    "method": "rona",
    "purpose": "benchmark",
    "data": {
        "source": DATA,
        "split": "as-given",
        "test_is_public": True,
        "public": "1/6",
        "declared_size": 10_000,
    },
    "engine": {"kind": "serial"},
}
NETWORKS = {"student": "mlp", "auxiliary": "mlp", "auxiliary_epochs": 30}
LAYERS = {"hint_layer": 3, "guided_layer": 2}
VOTES = 200
"""RONA-E's answers, unless a figure varies them."""


def as_published(published: Parts | None = None, **numbers: Any) -> Parts:
    """Source plain: hint_epochs, rounds and so on, and the numbers of [published]."""
    rona = {
        **NETWORKS,
        **LAYERS,
        "hint_epochs": 0,
        "rounds": 2,
        "self_epochs": 1,
        "distillation_epochs": 4,
        "batch": 128,
        "learning_rate": 1e-3,
        "temperature": 3.0,
        **numbers,
    }
    return {
        **SHARED,
        "mode": "as-published",
        "source": "plain",
        "rona": rona,
        "published": {"sigma": 10, **(published or {})},
        "plain": {"teacher": "mlp", "epochs": 90},
        "privacy": {"epsilon": 8, "delta": DELTA},
    }


def certified(votes: int = VOTES, noise: float = NOISE, hints: int = 0, **numbers: Any) -> Parts:
    """RONA-E with epsilon such that votes have this noise, if nothing is spent on hints."""
    rona = {
        **NETWORKS,
        **(LAYERS if hints else {}),
        "rounds": 2,
        "self_epochs": 10,
        "distillation_epochs": 30,
        "batch": 32,
        "self_batch": 32,
        "learning_rate": 2e-3,
        "loss": "softened",
        "selection": "k-centre",
        **numbers,
    }
    teachers = {"count": 100, "shard_cap": 160, "votes": votes, "temperature": 0.03, "hints": hints}
    epsilon = claimed_epsilon(votes, noise, DELTA, sensitivity=sqrt(2))
    return {
        **SHARED,
        "source": "ensemble",
        "data": {**SHARED["data"], "labelled": "1/20"},
        "features": {"name": "edges"},
        "rona": rona,
        "teachers": teachers,
        "privacy": {"epsilon": round(epsilon, 4), "delta": DELTA},
    }


@dataclass(frozen=True)
class Point:
    """A point of a curve of a figure."""

    figure: str
    curve: str
    x: Parts
    recipe: Parts


def points() -> Iterator[Point]:
    """All that is measured."""
    for figure in (_noise, _queries, _bounds, _distillation, _batches, _hints):
        yield from figure()


def _hints() -> Iterator[Point]:
    for rounds, each in ((1, 2), (2, 4)):
        for epochs in (0, 3, 10, 20):
            numbers: Parts = {"rounds": rounds, "distillation_epochs": each}
            curve = f"as published, R T_d = {rounds * each}"
            recipe = as_published(hint_epochs=epochs, **numbers)
            yield Point("a", curve, {"hint_epochs": epochs}, recipe)
    for epochs in (0, 20):
        hints = {"hints": 100, "hint_epochs": epochs} if epochs else {}
        numbers = {"rounds": 1, "distillation_epochs": 10, **hints}
        curve = f"{ENSEMBLE}, R T_d = 10"
        yield Point("a", curve, {"hint_epochs": epochs}, certified(**numbers))


def _distillation() -> Iterator[Point]:
    for rounds in (1, 2, 4):
        for total in (2, 4, 8, 16):
            each = total // rounds
            if each and (rounds == 1 or total > 2):
                recipe = as_published(rounds=rounds, distillation_epochs=each)
                curve = f"as published, R = {rounds}"
                yield Point("b", curve, {"distillation_epochs": total}, recipe)
    for total in (10, 60):
        recipe = certified(distillation_epochs=total // 2)
        yield Point("b", f"{ENSEMBLE}, R = 2", {"distillation_epochs": total}, recipe)


def _batches() -> Iterator[Point]:
    for batch in (32, 128, 512):
        yield Point("c", "as published", {"batch": batch}, as_published(batch=batch))
    for batch in (8, 32, 128):
        yield Point("c", ENSEMBLE, {"batch": batch}, certified(batch=batch))


def _noise() -> Iterator[Point]:
    for noise in (1, 10, 100):
        yield Point("d", "as published", {"noise": noise}, as_published({"sigma": noise}))
    for noise in (3, 10, 100):
        recipe = as_published({"reading": "residual", "sigma": noise})
        yield Point("d", "residual reading", {"noise": noise}, recipe)
    for noise in (3, 10, NOISE, 50, 100):
        yield Point("d", ENSEMBLE, {"noise": noise}, certified(noise=noise))


def _queries() -> Iterator[Point]:
    for selection in ("k-centre", "random", "margin", "diverse"):
        for votes in (50, VOTES, 400):
            recipe = certified(votes=votes, selection=selection)
            yield Point("e", selection, {"queries": votes}, recipe)


def _bounds() -> Iterator[Point]:
    for bound in (None, 0.1, 1.0, 10.0):
        for total in (4, 16):
            published = {} if bound is None else {"bound": bound}
            recipe = as_published(published, distillation_epochs=total // 2)
            curve = "adaptive" if bound is None else f"B = {bound:g}"
            yield Point("f", curve, {"distillation_epochs": total}, recipe)


def text_of(recipe: Parts, seed: int) -> str:
    """The recipe as TOML, with a start of its own."""
    return toml_of({**recipe, "rona": {**recipe["rona"], "start_seed": seed}})


def line(point: Point, runs: list[Parts]) -> Parts:
    """A line of the results, every field of the format present."""
    recipe, claim = point.recipe, runs[0]["sections"].get("published")
    controls = {
        control["name"]: mean(
            one["sections"]["controls"]["models"][place]["accuracy"] for one in runs
        )
        for place, control in enumerate(runs[0]["sections"]["controls"]["models"])
    }
    return result_line(
        "rona-figures",
        PACKAGES,
        dataset=DATA,
        method="rona",
        source=recipe["source"],
        mode=recipe.get("mode", "certified"),
        unit="record",
        epsilon=max((one["headline"]["epsilon"] for one in runs), key=float_of),
        delta=DELTA,
        metric=OVERALL,
        **spread([one["sections"]["evaluation"]["accuracy"] for one in runs]),
        draws=len(runs),
        seconds=round(mean(one["seconds"] for one in runs), 1),
        peak_mb=peak_mb(),
        recipe=text_of(recipe, SEEDS[0]),
        figure=point.figure,
        x=point.x,
        curve=point.curve,
        claimed_epsilon=claim and claim["epsilon"],
        controls=controls,
    )


def import_data(target: Path) -> None:
    """The small data set: every second pixel's mean, and few records."""
    parts = {}
    for name, part in load_parts("mnist").items():
        few = part.select(np.arange(min(RECORDS, len(part.y))))
        means = few.x.astype(np.float64).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
        parts[name] = replace(few, x=means.round().astype(np.uint8), name=DATA)
    save(parts, DATA, target)


def measure() -> None:
    """Measure what is not in the results yet."""
    measured = read("rona-figures")
    known = [(old["figure"], old["curve"], old["x"]) for old in measured]
    done = {old["recipe"]: old for old in measured}
    wanted = [p for p in points() if (p.figure, p.curve, p.x) not in known]
    with tempfile.TemporaryDirectory(prefix="stillroom-home-") as folder:
        import_data(Path(folder))
        os.environ["STILLROOM_HOME"] = folder
        for number, point in enumerate(wanted, 1):
            recipe, text = point.recipe, text_of(point.recipe, SEEDS[0])
            free = recipe.get("mode") == "as-published"
            limit = WITHOUT_LIMIT if free else recipe["privacy"]["epsilon"]
            if text not in done:  # some points are in several figures
                runs = [
                    released("figure", text_of(recipe, seed), f"seed {seed}", Budget(limit, DELTA))
                    for seed in SEEDS
                ]
                done[text] = line(point, runs)
            found = {**done[text], "figure": point.figure, "x": point.x, "curve": point.curve}
            append("rona-figures", [found])
            print(
                f"{number}/{len(wanted)} {point.figure} {point.curve} {point.x}: "
                f"{found['mean']:.2%} (sd {found['sd']:.2%}), epsilon {found['epsilon']}",
                flush=True,
            )


def main(*words: str) -> int:
    """Measure and draw, or draw alone."""
    if "--draw" not in words:
        measure()
    for picture in draw(read("rona-figures"), PICTURES):
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
