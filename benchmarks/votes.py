"""Votes of 250 entities on MNIST and Fashion-MNIST: a student at a certified epsilon per entity.

Part of `make bench-votes`. Each draw is a whole run in memory with one ledger per entity (L5);
after each a line is appended to results/votes.jsonl, with all draws of that row so far and the
recipe itself. A missed target ends 1. The data sets come by `make data`.

    python benchmarks/votes.py [PATTERN] [--draws N] [--continue]

A pattern picks rows by protocol, data set, name and epsilon, such as "public.*mnist.*secure.*1$".

Two protocols. `public`: two fifths of the official training part are public and unlabelled, the
others are the entities', all official test pictures are the report. `pate`: all of the training
part is the entities', the first 9,000 official test pictures are public and unlabelled, the last
1,000 the report, as Papernot et al. 2018 have it. Accounting never depends on the votes. The
numbers were chosen on the official training parts, measured on their last 10,000 pictures.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from measuring import append, peak_mb, read, result_line, spread
from releases import OVERALL, toml_of
from stillroom.data import Dataset
from stillroom.data.store import load_parts
from stillroom.gate import Budget, Ledger
from stillroom.methods.registry import parse
from stillroom.pipeline.holders import holders
from stillroom.pipeline.release import load_parts_of
from stillroom.pipeline.run import run
from stillroom.sources import Party, Progress
from stillroom.vocabulary import Sealed

BENCH, DRAWS, DELTA = "votes", 3, 1e-5
PACKAGES = ("stillroom", "numpy", "torch")
EPSILONS = (1.0, 1.97, 5.0)
PATE = {"mnist": (1.97, 0.985)}
"""Papernot et al. 2018: data-dependent epsilon and accuracy, on 1,000 pictures."""
Parts = dict[str, Any]
LEAST = {("public", "mnist", 1.0): 0.983, ("public", "fashion-mnist", 5.0): 0.85}
UNEVEN: Parts = {"split": "uneven", "smallest": 10, "concentration": 0.3, "largest": 1000}
LOCAL = ("summed-response", "response", "unary", "geometric")


def student_of(dataset: str, epsilon: float, protocol: str) -> Parts:
    """How a data set's student learns."""
    digits, few = dataset == "mnist", protocol == "pate"
    if digits:
        return {"rounds": 2, "epochs": 12 if few else 5}
    return {
        "rounds": 1,
        "epochs": 24 if few else 10,
        "feature_rounds": 12 if epsilon == 1 else 6,
        "alpha": 0.5,
        "own_alpha": 0.0,
        **{"turn": 0.0, "shift": 0.07, "scale": 0.07, "mirror": True},
    }


VOTES: dict[str, Parts] = {
    "mnist": {"smoothing": 3},
    "fashion-mnist": {"smoothing": 1, "ridge": 0.02},
}
"""How entities vote on a data set."""


def recipe_of(
    dataset: str, epsilon: float, protocol: str, votes: Parts, entities: Parts, seed: int
) -> Parts:
    """A row as a recipe."""
    public = protocol == "public"
    return {
        "method": "votes",
        "purpose": "benchmark",
        "data": {
            "source": dataset,
            "split": "as-given",
            "test_is_public": True,
            "public": "2/5" if public else "1/10",
            "declared_size": 36_000 if public else 60_000,
        },
        "features": {"name": "scattering", "components": 256, "fitted_on": "public"},
        "entities": {"count": 250, "largest": 400, **entities},
        "votes": {"queries": 8000 if public else 4000, **VOTES[dataset], **votes},
        "student": {**student_of(dataset, epsilon, protocol), "start_seed": seed},
        "privacy": {"epsilon": float(epsilon), "delta": DELTA, "tuning": "undeclared"},
    }


@dataclass(frozen=True)
class Row:
    """What is measured.

    Args:
        protocol: public or pate.
        dataset: its name.
        name: how entities answer, and who they are.
        epsilon: of each entity.
        votes: what differs in [votes].
        entities: what differs in [entities].
        draws: at most.
    """

    protocol: str
    dataset: str
    name: str
    epsilon: float
    votes: Parts
    entities: Parts
    draws: int

    def recipe(self, seed: int) -> str:
        """The text of a draw's recipe."""
        given = (self.dataset, self.epsilon, self.protocol, self.votes, self.entities, seed)
        return toml_of(recipe_of(*given))

    @property
    def least(self) -> float | None:
        """The least mean accuracy wanted."""
        usual = self.name == "secure sum"
        return LEAST.get((self.protocol, self.dataset, self.epsilon)) if usual else None


def rows() -> Iterator[Row]:
    """All of them, those with targets first."""
    for protocol in ("public", "pate"):
        for dataset in ("mnist", "fashion-mnist"):
            for epsilon in EPSILONS:
                yield Row(protocol, dataset, "secure sum", epsilon, {}, {}, DRAWS)
    for dataset in ("mnist", "fashion-mnist"):
        yield Row("public", dataset, "secure sum, uneven entities", 5.0, {}, UNEVEN, 1)
        for report in LOCAL:
            own = {"report": report, "queries": 1000}
            yield Row("public", dataset, report, 5.0, own, {}, 1)


def parts_of(row: Row, text: str) -> tuple[Sealed[Dataset], Dataset, Dataset]:
    """Sensitive, public and reported records."""
    recipe = parse(text)
    if row.protocol == "public":
        from pathlib import Path

        parts = load_parts_of(recipe, Path())
        assert isinstance(parts.test, Dataset)
        return parts.sensitive, parts.public, parts.test
    whole = load_parts(row.dataset)
    test = whole["test"]
    public, report = (test.select(np.arange(*ends)) for ends in ((0, 9000), (9000, 10_000)))
    return Sealed(whole["train"]), public, report


def measured_run(row: Row, seed: int) -> Parts:
    """One draw: the student's accuracy, and the largest epsilon of an entity."""
    text, started = row.recipe(seed), time.perf_counter()
    recipe = parse(text)
    sensitive, public, report = parts_of(row, text)
    parties = []
    for name, own in holders(recipe, sensitive).items():
        ledger = Ledger.in_memory(own, purpose="benchmark")
        ledger.set_budget(Budget(row.epsilon, DELTA), reason="a benchmark")
        parties.append(Party(name, own, ledger))
    told = Progress(tell=lambda line: print(f"  {row.name}: {line}", file=sys.stderr, flush=True))
    done = run(recipe, parties, public, report, progress=told)
    spent = max(party.ledger.standing()[0].epsilon for party in parties)
    return {
        "accuracy": done.accuracy,
        "epsilon": spent,
        "seconds": round(time.perf_counter() - started, 1),
    }


def line(row: Row, runs: list[Parts]) -> Parts:
    """A line of the results, every field of the format present."""
    text = row.recipe(0)
    recipe = parse(text)
    peer = PATE.get(row.dataset)
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
        peer=None if peer is None else f"PATE at {peer[0]:g}, data-dependent, 1,000 pictures",
        peer_mean=None if peer is None else peer[1],
        seconds=round(mean(one["seconds"] for one in runs), 1),
        peak_mb=peak_mb(),
        recipe=text,
        protocol=row.protocol,
        variant=row.name,
        asked=row.epsilon,
        runs=runs,
    )


def measured(row: Row, draws: int, *, go_on: bool) -> Parts:
    """The line after the last draw; each draw is appended."""
    key = (row.protocol, row.name, row.recipe(0))
    old = [one for one in read(BENCH) if (one["protocol"], one["variant"], one["recipe"]) == key]
    runs: list[Parts] = old[-1]["runs"][:draws] if go_on and old else []
    while len(runs) < draws:
        runs = [*runs, measured_run(row, len(runs))]
        append(BENCH, [line(row, runs)])
    return line(row, runs)


def main(words: list[str]) -> int:
    """Measure the rows that match; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="protocol, data set, name, epsilon")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of noise, at most")
    parser.add_argument("--continue", action="store_true", dest="go_on", help="keep known draws")
    told = parser.parse_args(words)
    missed = False
    for row in rows():
        if not re.search(told.pattern, f"{row.protocol} {row.dataset} {row.name} {row.epsilon:g}"):
            continue
        found = measured(row, min(told.draws, row.draws), go_on=told.go_on)
        met = row.least is None or found["mean"] >= row.least
        missed |= not met
        verdict = "" if row.least is None else f", wanted {row.least:.1%}"
        print(
            f"{row.protocol:<7}{row.dataset:<14}{row.name:<30}{row.epsilon:<5g} "
            f"{found['mean']:.2%} (sd {found['sd'] or 0:.2%}, {found['draws']} draws){verdict}"
            f"{'' if met else ': MISSED'}  {found['seconds']:.0f} s each",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
