"""What an ensemble costs and knows: ridge teachers by the hundred, networks on two workers.

Run by `make bench-ensemble`; needs MNIST in the data home (`make data`). Every figure is appended
to results/ensemble.jsonl. As in PATE's protocol the first 9,000 pictures of the official test part
are public and unlabelled: 256 half-whitened directions of scattering are fitted on them, and the
teachers vote on them. Nothing here is a release: the votes are opened without noise, to see what
the teachers themselves know; labels of the public pictures only score them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from measuring import append, peak_mb, result_line
from stillroom.data import Dataset, PublicPictures
from stillroom.data.store import load_parts
from stillroom.engine import Engine
from stillroom.features.extraction import Extractor
from stillroom.features.projection import fit_projection
from stillroom.private import Ensemble, EnsemblePlan
from stillroom.private.shard_training import Rows

PACKAGES = ("stillroom", "numpy", "torch", "joblib")
RIDGE_CAPS = {250: 340, 1000: 110}
"""Teachers, and the cap of their shards: six standard deviations above an even share of 60,000."""

NETWORKS, NETWORK_SHARD, NETWORK_CAP = 16, 240, 340
NETWORK_EPOCHS = 30


PUBLIC, COMPONENTS = 9_000, 256


def projected(train: Dataset, public: Dataset) -> tuple[Dataset, Dataset]:
    """Both parts as rows of directions fitted on the public one; ids stay as they are."""
    extractor = Extractor("scattering", train.shape)
    pictures = PublicPictures(public.x, "the first pictures of the official test part")
    projection = fit_projection(extractor.grid, pictures, COMPONENTS)
    return (
        replace(train, x=projection.rows(extractor.grid(train.x))),
        replace(public, x=projection.rows(extractor.grid(public.x))),
    )


def as_they_are(rows: Any) -> Any:
    """Rows that were computed before."""
    return rows


@dataclass(frozen=True)
class Figure:
    """One measured number; `peer` is the same work done in another way."""

    metric: str
    value: float
    seconds: float
    peer: str = ""
    peer_value: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.peer_value is None else self.peer_value / self.value

    def to_json(self) -> dict[str, Any]:
        """A line of the results, every field of the format present."""
        return result_line(
            "ensemble",
            PACKAGES,
            dataset="mnist",
            method="votes",
            source="ensemble",
            unit="record",
            metric=self.metric,
            mean=self.value,
            draws=1,
            peer=self.peer or None,
            peer_mean=self.peer_value,
            ratio=self.ratio,
            seconds=round(self.seconds, 3),
            peak_mb=peak_mb(),
        )


def timed(
    data: Dataset, rows: Rows | None, plan: EnsemblePlan, engine: Engine
) -> tuple[Ensemble, float]:
    """What was trained, and the seconds it took."""
    start = time.perf_counter()
    trained = Ensemble.train(data, rows, plan, engine=engine)
    return trained, time.perf_counter() - start


def knowledge(teachers: Ensemble, test: Dataset) -> tuple[float, float, float]:
    """Mean accuracy of a teacher, accuracy of the plurality, and the seconds of all votes."""
    start = time.perf_counter()
    counts = teachers.votes(test.x).open_bounded()
    taken = time.perf_counter() - start
    single = float(counts[np.arange(len(test)), test.y].mean() / teachers.count)
    return single, float((counts.argmax(axis=1) == test.y).mean()), taken


def ridge_figures(train: Dataset, test: Dataset) -> Iterator[Figure]:
    """Closed-form teachers, in this process."""
    for count, cap in RIDGE_CAPS.items():
        plan = EnsemblePlan(count=count, key="bench-ensemble", shard_cap=cap)
        teachers, seconds = timed(train, as_they_are, plan, Engine("serial"))
        single, plurality, asking = knowledge(teachers, test)
        yield Figure(f"seconds to train {count} ridge teachers", seconds, seconds)
        yield Figure(f"seconds of {count} teachers' votes on the public part", asking, asking)
        yield Figure(f"mean accuracy of one of {count} ridge teachers", single, seconds)
        yield Figure(f"plurality accuracy of {count} ridge teachers", plurality, seconds)


def network_figures(train: Dataset, test: Dataset) -> Iterator[Figure]:
    """The same networks on one worker and on two, starting the workers included."""
    few = train.select(np.arange(NETWORKS * NETWORK_SHARD))
    plan = EnsemblePlan(
        NETWORKS,
        "bench-ensemble",
        NETWORK_CAP,
        "tanh-cnn",
        epochs=NETWORK_EPOCHS,
        learning_rate=0.003,
    )
    alone, one = timed(few, None, plan, Engine("loky", workers=1))
    shared, two = timed(few, None, plan, Engine("loky", workers=2))
    if alone.fingerprints() != shared.fingerprints():
        raise SystemExit("the number of workers changed the teachers")
    single, plurality, _ = knowledge(shared, test)
    metric = f"seconds to train {NETWORKS} tanh-cnn teachers on 2 workers"
    yield Figure(metric, two, two, "1 worker", one)
    yield Figure(f"mean accuracy of one of {NETWORKS} tanh-cnn teachers", single, two)
    yield Figure(f"plurality accuracy of {NETWORKS} tanh-cnn teachers", plurality, two)


def main() -> int:
    """Measure, print, append."""
    parts = load_parts("mnist")
    train, test = parts["train"], parts["test"]
    public = test.select(np.arange(PUBLIC))
    figures = [*ridge_figures(*projected(train, public)), *network_figures(train, public)]
    wide = max(len(figure.metric) for figure in figures)
    for figure in figures:
        ratio = "" if figure.ratio is None else f"   {figure.ratio:.2f} times faster"
        print(f"{figure.metric:<{wide}}{figure.value:>10.4g}{ratio}")
    append("ensemble", (one.to_json() for one in figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
