"""Votes of 250 entities on MNIST and Fashion-MNIST: a student at a certified epsilon per entity.

Part of `make bench-votes`. Each draw is a whole run in memory with one ledger per entity (L5);
after each a line is appended to results/votes.jsonl, with all draws of that row so far and the
recipe itself. A missed target ends 1. The data sets come by `make data`.

    python benchmarks/votes.py [PATTERN] [--draws N] [--cores N] [--continue]

A pattern picks rows by protocol, data set, name and epsilon, such as "public.*mnist.*secure.*1$".
At the end docs/pictures are drawn from all results; a pattern that picks no row draws them alone.

Two protocols. `public`: two fifths of the official training part are public and unlabelled, the
others are the entities', all official test pictures are the report. `pate`: all of the training
part is the entities', the first 9,000 official test pictures are public and unlabelled, the last
1,000 the report, as Papernot et al. 2018 have it. Accounting never depends on the votes. The
numbers were chosen on the official training parts, measured on their last 10,000 pictures.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean

import numpy as np

from draws import Benchmark, Parts, Row
from found_once import find_once
from measuring import peak_mb, read, result_line, spread
from releases import OVERALL, started, toml_of
from stillroom.data import Dataset
from stillroom.data.store import home, load_parts
from stillroom.gate import Budget, Ledger
from stillroom.methods.registry import parse
from stillroom.pipeline.holders import holders
from stillroom.pipeline.release import load_parts_of
from stillroom.pipeline.run import run
from stillroom.sources import Party, Progress
from stillroom.vocabulary import Sealed
from votes_pictures import draw

BENCH, DRAWS, DELTA = "votes", 3, 1e-5
PACKAGES = ("stillroom", "numpy", "torch")
EPSILONS = (1.0, 1.97, 5.0)
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PATE = {"mnist": (1.97, 0.985)}
"""Papernot et al. 2018: data-dependent epsilon and accuracy, on 1,000 pictures."""
SECURE_SUM, UNEVEN_SUM = "secure sum", "secure sum, uneven entities"
LEAST = {("public", "mnist", 1.0): 0.983, ("public", "fashion-mnist", 5.0): 0.85}
UNEVEN: Parts = {"split": "uneven", "smallest": 10, "concentration": 0.3, "largest": 1000}
ALONE = ("summed-response", "response", "unary", "geometric")
"""Noise that each entity draws by itself, summed or seen one by one."""
FEWER = 2000
FEATURES = home() / "work" / "benchmark-features"
COUNTS = (25, 50, 100, 250, 500, 1000)
SHARES = ("1/10", "1/4", "1/2")


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
    dataset: str, epsilon: float, protocol: str, votes: Parts, entities: Parts, student: Parts
) -> str:
    """A row as a recipe."""
    public = protocol == "public"
    return toml_of(
        {
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
            "student": {**student_of(dataset, epsilon, protocol), **student},
            "engine": {"kind": "serial"},
            "privacy": {"epsilon": float(epsilon), "delta": DELTA, "tuning": "undeclared"},
        }
    )


def row_of(
    dataset: str,
    name: str,
    epsilon: float,
    draws: int,
    protocol: str = "public",
    parts: Mapping[str, Parts] | None = None,
) -> Row:
    """A row, with what differs in [votes], [entities] and [student]."""
    own = ((parts or {}).get(name, {}) for name in ("votes", "entities", "student"))
    text = recipe_of(dataset, epsilon, protocol, *own)
    least = LEAST.get((protocol, dataset, epsilon)) if name == SECURE_SUM else None
    return Row(dataset, name, epsilon, text, draws, least, protocol)


def rows() -> Iterator[Row]:
    """All of them, those with targets first."""
    for dataset in VOTES:
        for epsilon in EPSILONS:
            yield row_of(dataset, SECURE_SUM, epsilon, DRAWS)
    for epsilon in EPSILONS:
        yield row_of("mnist", SECURE_SUM, epsilon, DRAWS, "pate")
    for dataset in VOTES:
        for epsilon in EPSILONS:
            yield row_of(dataset, UNEVEN_SUM, epsilon, 1, parts={"entities": UNEVEN})
    yield from study()
    for dataset in VOTES:
        for epsilon in EPSILONS:
            for report in ALONE:
                votes = {"report": report, "queries": FEWER}
                yield row_of(dataset, report, epsilon, 1, parts={"votes": votes})


def study() -> Iterator[Row]:
    """Accuracy against entities and participation, by students of one round."""
    same: dict[str, Parts] = {"votes": {"queries": FEWER}, "student": {"rounds": 1}}
    for dataset, epsilon in (("mnist", 1.0), ("fashion-mnist", 5.0)):
        for count in COUNTS:
            own = {"entities": {"count": count, "largest": 60_000 // count}, **same}
            yield row_of(dataset, f"{count} entities", epsilon, 1, parts=own)
        for share in SHARES:
            own = {"entities": {"participation": share}, **same}
            yield row_of(dataset, f"participation {share}", epsilon, 1, parts=own)


def parts_of(row: Row) -> tuple[Sealed[Dataset], Dataset, Dataset]:
    """Sensitive, public and reported records."""
    if row.protocol == "public":
        parts = load_parts_of(parse(row.text), Path())
        assert isinstance(parts.test, Dataset)
        return parts.sensitive, parts.public, parts.test
    whole = load_parts(row.dataset)
    test = whole["test"]
    public, report = (test.select(np.arange(*ends)) for ends in ((0, 9000), (9000, 10_000)))
    return Sealed(whole["train"]), public, report


def drawn(row: Row, number: int) -> Parts:
    """One draw: the student's accuracy, and the largest epsilon of an entity."""
    find_once(FEATURES)
    recipe = parse(started(row.text, "student", number))
    begun = time.perf_counter()
    sensitive, public, report = parts_of(row)
    parties = []
    for name, own in holders(recipe, sensitive).items():
        ledger = Ledger.in_memory(own, purpose="benchmark")
        ledger.set_budget(Budget(row.epsilon, DELTA), reason="a benchmark")
        parties.append(Party(name, own, ledger))
    title = f"{row.title} {number + 1}/{row.draws}"
    told = Progress(tell=lambda line: print(f"  {title}: {line}", file=sys.stderr, flush=True))
    done = run(recipe, parties, public, report, progress=told)
    return {
        "accuracy": done.accuracy,
        "epsilon": max(party.ledger.standing()[0].epsilon for party in parties),
        "seconds": round(time.perf_counter() - begun, 1),
        "peak_mb": peak_mb(),
    }


def line(row: Row, runs: list[Parts]) -> Parts:
    """A line of the results, every field of the format present."""
    recipe = parse(row.text)
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
        peak_mb=max(one["peak_mb"] for one in runs),
        recipe=row.text,
        protocol=row.protocol,
        variant=row.name,
        asked=row.epsilon,
        runs=runs,
    )


if __name__ == "__main__":
    benchmark = Benchmark(BENCH, rows(), drawn, line, cores=2)
    ended = benchmark.main(sys.argv[1:], (__doc__ or "").splitlines()[0])
    for picture in draw(read(BENCH), PICTURES):
        print(picture)
    sys.exit(ended)
