"""DPDFD at a certified epsilon: students that never saw a real picture, beside their teachers.

Run by `make bench-dpdfd`. Each draw is a whole `stillroom release` with a ledger of its own (L5);
what it prints comes from its certificate. After each draw a line is appended to
results/dpdfd.jsonl, with all draws of the recipe so far, so that a benchmark that is cut off loses
nothing. A missed target ends 1. The data sets come by `make data`; USPS is imported by hand.

    python benchmarks/dpdfd.py [PATTERN] [--draws N] [--continue]

A pattern picks recipes by their name. With --continue, draws of the same recipe that stand in the
results are not made again.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Any

from measuring import append, peak_mb, read, result_line, spread
from releases import OVERALL, recipe_text, released, started
from stillroom.data.store import load_parts
from stillroom.errors import BadInput
from stillroom.methods.dpdfd import DpdfdRecipe
from stillroom.methods.registry import parse

BENCH = "dpdfd"
DRAWS = 3
PACKAGES = ("stillroom", "numpy", "torch", "onnxruntime")
Parts = dict[str, Any]

PHASES = {
    "teacher": ("features", "training", "teachers", "sketch", "finding the least noise"),
    "student": ("student", "going on after the last round"),
    "generator": ("student and generator",),
}
"""Who takes the time, by what a release tells; anything else is `rest`."""


@dataclass(frozen=True)
class Target:
    """What a recipe shall show.

    Args:
        setting: in words.
        published: the paper's figure, which has no guarantee that holds.
        least: the least mean accuracy, where there is one.
    """

    setting: str
    published: str | None = None
    least: float | None = None


FREE, ALONE = "data-free", "a sketch alone"
UNTOUCHED = "data-free, numbers of MNIST untouched"
TARGETS = {
    "dpdfd-mnist-1": Target(FREE, "0.9512 at 1", 0.978),
    "dpdfd-mnist-10": Target(FREE, "0.9751 at 10", 0.986),
    "dpdfd-fashion-1": Target(FREE, "0.8386 at 1", 0.868),
    "dpdfd-fashion-10": Target(FREE, "0.8988 at 10", 0.888),
    "dpdfd-usps-1": Target(UNTOUCHED),
    "dpdfd-usps-10": Target(UNTOUCHED),
    "dpdfd-mnist-0.1": Target(ALONE),
    "dpdfd-mnist-0.3": Target(ALONE),
    "dpdfd-fashion-0.1": Target(ALONE),
    "dpdfd-fashion-0.3": Target(ALONE),
    "dpdfd-mnist-generator-1": Target("a generator by Eq. 5 alone", "0.9512 at 1"),
    "dpdfd-cifar10-2": Target("data-free, numbers of Fashion-MNIST", "0.8601 at 2"),
    "dpdfd-mnist-ensemble-1": Target("DPDFD-E, paid votes", "0.9512 at 1"),
}


def digest_of(text: str) -> str:
    """Of a recipe: draws of another one do not belong to it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def told_by(certificate: Parts) -> Parts:
    """What is kept of one draw."""
    sections, seconds = certificate["sections"], certificate["seconds"]
    controls = (sections.get("controls") or {}).get("models", [])
    phases = certificate["phases"]
    shares = {
        who: round(sum(phases.get(name, 0) for name in names) / seconds, 4)
        for who, names in PHASES.items()
    }
    return {
        "accuracy": sections["evaluation"]["accuracy"],
        "epsilon": certificate["headline"]["epsilon"],
        "controls": {one["name"]: one["accuracy"] for one in controls},
        "seconds": round(seconds, 1),
        "shares": {**shares, "rest": round(1 - sum(shares.values()), 4)},
    }


def line(name: str, recipe: DpdfdRecipe, runs: list[Parts]) -> Parts:
    """A line of the results, every field of the format present."""
    return result_line(
        BENCH,
        PACKAGES,
        dataset=recipe.data.source,
        method=recipe.method,
        source=recipe.source,
        mode=recipe.mode,
        unit=recipe.data.unit,
        epsilon=max(one["epsilon"] for one in runs),
        delta=recipe.privacy.delta,
        metric=OVERALL,
        **spread([one["accuracy"] for one in runs]),
        draws=len(runs),
        published=TARGETS[name].published,
        seconds=round(mean(one["seconds"] for one in runs), 1),
        peak_mb=peak_mb(),
        recipe=f"benchmarks/recipes/{name}.toml",
        setting=TARGETS[name].setting,
        student=recipe.dpdfd.student,
        controls={
            control: spread([one["controls"][control] for one in runs])
            for control in runs[0]["controls"]
        },
        shares={
            who: round(mean(one["shares"][who] for one in runs), 3) for who in runs[0]["shares"]
        },
        digest=digest_of(recipe_text(name)),
        runs=runs,
    )


def kept(name: str) -> list[Parts]:
    """The draws of the same recipe in the last line that has any."""
    path, digest = f"benchmarks/recipes/{name}.toml", digest_of(recipe_text(name))
    lines = [old for old in read(BENCH) if (old["recipe"], old["digest"]) == (path, digest)]
    return list(lines[-1]["runs"]) if lines else []


def measured(name: str, recipe: DpdfdRecipe, draws: int, *, go_on: bool) -> Iterator[Parts]:
    """A line of the results after each draw; the last one has all of them."""
    text, runs = recipe_text(name), kept(name)[:draws] if go_on else []
    if len(runs) == draws:
        yield line(name, recipe, runs)
    while len(runs) < draws:
        own = started(text, "dpdfd", len(runs))
        runs = [*runs, told_by(released(name, own, f"{name} {len(runs) + 1}/{draws}"))]
        found = line(name, recipe, runs)
        append(BENCH, [found])
        yield found


def report(name: str, found: Parts) -> bool:
    """Print a line; whether its target, if any, is met."""
    beside = "".join(f"  {n} {c['mean']:.2%}" for n, c in found["controls"].items())
    shares = ", ".join(f"{who} {share:.0%}" for who, share in found["shares"].items())
    print(
        f"{name:<24} epsilon {found['epsilon']:.3f}  accuracy {found['mean']:.2%} "
        f"(sd {found['sd'] or 0:.2%}, {found['draws']} draws){beside}  "
        f"{found['seconds'] / 60:.1f} minutes each ({shares})",
        flush=True,
    )
    least = TARGETS[name].least
    met = least is None or found["mean"] >= least
    if least is not None:
        print(f"{'':<24} wanted {least:.1%}: {'met' if met else 'MISSED'}", flush=True)
    return met


def is_there(dataset: str) -> bool:
    """Whether a data set can be read; only those that are imported by hand may be missing."""
    try:
        load_parts(dataset)
    except BadInput:
        if dataset != "usps":
            raise
        print("usps is not in the data home: stillroom data import FILE --name usps --classes 10")
        return False
    return True


def main(words: list[str]) -> int:
    """Run the recipes whose name matches; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="a part of the recipes' names")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of noise, per recipe")
    parser.add_argument("--continue", action="store_true", dest="go_on", help="keep known draws")
    told = parser.parse_args(words)
    missed = False
    for name in TARGETS:
        recipe = parse(recipe_text(name))
        assert isinstance(recipe, DpdfdRecipe)
        if not re.search(told.pattern, name) or not is_there(recipe.data.source):
            continue
        *_, found = measured(name, recipe, told.draws, go_on=told.go_on)
        missed |= not report(name, found)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
