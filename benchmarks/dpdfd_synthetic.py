"""Synthetic data against the field: a classifier that is trained on `stillroom sample` alone.

Run by `make bench-dpdfd`. Per draw: a release with a ledger of its own (L5), 60,000 samples of its
bundle, one plain network trained on nothing else, its accuracy on the official test part. Passes,
rates and sizes are fixed, so nothing is chosen by the test part; the last network is measured.
After each draw a line per row is appended to results/dpdfd-synthetic.jsonl, with all draws so far.

    python benchmarks/dpdfd_synthetic.py [PATTERN] [--draws N] [--continue]

Rows are kept apart: (a) samples with the class they were drawn for, the field's own task; (b)
varied samples with the scores of a sanitised teacher, which is paid for beside a smaller sketch.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpdfd import digest_of
from measuring import append, peak_mb, read, result_line, spread
from releases import bundle_of, recipe_text, started
from stillroom.data.store import load_parts
from stillroom.methods.registry import parse
from stillroom.models import AsPictures
from stillroom.models.training import NetworkTraining, by_logits, fitting_temperature
from stillroom.randomness import integers, seeded_torch
from stillroom.release.sample import Wish, sample

BENCH = "dpdfd-synthetic"
PACKAGES = ("stillroom", "numpy", "torch", "onnxruntime")
DRAWS, SAMPLES = 3, 60_000
BATCH, RATE = 64, 1.5e-3
PASSES, PASSES_OF_SCORES = {"mnist": 8, "fashion-mnist": 3}, 6
SHIFTS = {"mnist": 1, "fashion-mnist": 0}
"""Pixels that a picture may be moved by in training. Both were chosen on the official training
parts, measured on their last 10,000 pictures."""
METRIC = "accuracy on the official test part, trained on samples alone"
Parts = dict[str, Any]
Field = tuple[tuple[str, float, str], ...]

NEWEST, PAPER = "FETA-Pro, January 2026", "Liu et al. 2023, Table 1"
_EARLIER = ("DP-GAN", "PATE-GAN", "G-PATE", "GS-WGAN", "DP-MERF", "P3GM", "DataLens", "DPGEN")


def _field(earlier: str, newest: str = "") -> Field:
    """Name, accuracy and who prints it."""
    first = ((name, float(at), PAPER) for name, at in zip(_EARLIER, earlier.split(), strict=True))
    pairs = (one.split() for one in newest.split(", ") if one)
    return (*first, *((name, float(at), NEWEST) for name, at in pairs))


FIELD: dict[tuple[str, float], Field] = {
    ("mnist", 1): _field(
        ".4036 .4168 .5810 .1432 .6367 .7369 .7123 .9046",
        "DPDM .892, DP-FETA .967, FETA-Pro .971",
    ),
    ("mnist", 10): _field(".8011 .6667 .8092 .8075 .6738 .7981 .8066 .9357", "DP-FETA .981"),
    ("fashion-mnist", 1): _field(
        ".1053 .4222 .5567 .1661 .5862 .7223 .6478 .8283",
        "DPDM .764, DP-FETA .815, FETA-Pro .823",
    ),
    ("fashion-mnist", 10): _field(".6098 .6218 .6934 .6579 .6162 .7480 .7061 .8784"),
}
"""Data set and epsilon -> what others reach with their samples at delta 1e-5, and who prints it.

Those that the newest paper prints take hours on GPUs.
"""


@dataclass(frozen=True)
class Row:
    """Samples of a kind, from the bundle of a recipe.

    Args:
        recipe: its name.
        scored: varied samples with scores of the bundle's model; else with the class as drawn.
        least: the least mean accuracy, where there is one.
    """

    recipe: str
    scored: bool
    least: float | None = None

    @property
    def labels(self) -> str:
        """Where the classes come from, as for `stillroom sample`."""
        return "model" if self.scored else "drawn"

    @property
    def arrays(self) -> tuple[str, ...]:
        """What is used of the file."""
        return ("x", "scores" if self.scored else "y")

    @property
    def training(self) -> tuple[int, int]:
        """Passes of the network, and pixels that its pictures may be moved by."""
        dataset = parse(recipe_text(self.recipe)).data.source
        # The scores are those of a picture where it is.
        return (PASSES_OF_SCORES, 0) if self.scored else (PASSES[dataset], SHIFTS[dataset])

    @property
    def digest(self) -> str:
        """Of all that a draw depends on."""
        return digest_of(f"{recipe_text(self.recipe)}{self.training}")

    @property
    def kind(self) -> str:
        """In words."""
        return "(b) scores of the sanitised teacher" if self.scored else "(a) class as drawn"


ROWS = tuple(
    row
    for recipe, drawn, labelled in (
        ("dpdfd-mnist-synthetic-1", 0.971, 0.972),
        ("dpdfd-mnist-synthetic-10", 0.982, 0.982),
        ("dpdfd-fashion-synthetic-1", 0.815, 0.84),
        ("dpdfd-fashion-synthetic-10", 0.85, None),
    )
    for row in (
        Row(recipe, scored=False, least=drawn),
        Row(recipe.replace("synthetic", "labelled"), scored=True, least=labelled),
    )
)


def plain_network(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Two convolutions of 5x5 and one hidden layer, as anyone would take for these pictures."""
    channels, height, width = shape
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(64 * (height // 4) * (width // 4), 128), nn.ReLU(), nn.Dropout(0.4)),
        nn.Linear(128, classes),
    )


def shifted(x: Tensor, most: int, seed: int, number: int) -> Tensor:
    """Each picture moved by up to some pixels, black where nothing was."""
    moves = integers(seed, "shift", number, size=(len(x), 2), below=2 * most + 1) - most
    moved = torch.zeros_like(x)
    height, width = x.shape[1:3]
    for down, right in {(int(a), int(b)) for a, b in moves}:
        which = torch.from_numpy(((moves == (down, right)).all(1)).nonzero()[0])
        into = (slice(max(down, 0), height + down), slice(max(right, 0), width + right))
        out_of = (slice(max(-down, 0), height - down), slice(max(-right, 0), width - right))
        kept = torch.zeros_like(x[which])
        kept[(slice(None), *into)] = x[which][(slice(None), *out_of)]
        moved[which] = kept
    return moved


def accuracy(found: Mapping[str, Tensor], row: Row, seed: int) -> float:
    """Of a network trained on some samples and nothing else, on the official test part.

    Args:
        found: `x`, and `scores` or `y`.
        row: what they are.
        seed: of the network and of the order.
    """
    recipe, (passes, shift) = parse(recipe_text(row.recipe)), row.training
    test = load_parts(recipe.data.source)["test"]
    pictures = AsPictures(test.x.shape[1:], recipe.features.full_scale)
    with seeded_torch(seed, "plain network"):
        network = plain_network(pictures.given, len(test.classes))
        training = NetworkTraining(network, pictures, epochs=passes, learning_rate=RATE, seed=seed)
        for number in range(passes):
            x = shifted(found["x"], shift, seed, number)
            if row.scored:
                loss = by_logits(fitting_temperature(found["scores"]))
                training.distil(x, found["scores"], BATCH, loss, balanced=True)
            else:
                training.learn(x, found["y"].long(), BATCH)
    whole = nn.Sequential(pictures, network).eval()
    with torch.no_grad():
        parts = [whole(some).argmax(1) for some in torch.split(torch.tensor(test.x), 1000)]
    return float((torch.cat(parts).numpy() == test.y).mean())


def told_by(row: Row, bundle: Path, certificate: Parts, draw: int) -> Parts:
    """What is kept of one draw of a row."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="stillroom-samples-") as folder:
        file = Path(folder) / "synthetic.npz"
        sample(bundle, file, Wish(SAMPLES, draw, row.labels, varied=row.scored))
        with np.load(file) as arrays:
            found = {name: torch.from_numpy(arrays[name]) for name in row.arrays}
    return {
        "accuracy": accuracy(found, row, draw),
        "epsilon": certificate["headline"]["epsilon"],
        "release_seconds": round(certificate["seconds"], 1),
        "seconds": round(time.perf_counter() - start + certificate["seconds"], 1),
    }


def line(row: Row, runs: list[Parts]) -> Parts:
    """A line of the results, every field of the format present."""
    recipe = parse(recipe_text(row.recipe))
    field = FIELD.get((recipe.data.source, recipe.privacy.epsilon), ())
    best = max(field, key=lambda one: one[1], default=None)
    return result_line(
        BENCH,
        PACKAGES,
        dataset=recipe.data.source,
        method=recipe.method,
        source=getattr(recipe, "source", "trained"),
        mode=recipe.mode,
        unit=recipe.data.unit,
        epsilon=max(one["epsilon"] for one in runs),
        delta=recipe.privacy.delta,
        metric=METRIC,
        **spread([one["accuracy"] for one in runs]),
        draws=len(runs),
        peer=best and best[0],
        peer_mean=best and best[1],
        seconds=round(mean(one["seconds"] for one in runs), 1),
        peak_mb=peak_mb(),
        recipe=f"benchmarks/recipes/{row.recipe}.toml",
        row=row.kind,
        field=[list(one) for one in field],
        digest=row.digest,
        runs=runs,
    )


def kept(row: Row) -> list[Parts]:
    """The draws of the same row in the last line that has any."""
    lines = [old for old in read(BENCH) if (old["digest"], old["row"]) == (row.digest, row.kind)]
    return list(lines[-1]["runs"]) if lines else []


def measured(rows: list[Row], draws: int, *, go_on: bool) -> list[Parts]:
    """The lines of all rows of one recipe; each is appended after each draw."""
    found = {row: kept(row)[:draws] if go_on else [] for row in rows}
    name = rows[0].recipe
    while len(least := min(found.values(), key=len)) < draws:
        draw = len(least)
        text = started(recipe_text(name), "dpdfd", draw)
        with bundle_of(name, text, f"{name} {draw + 1}/{draws}") as (certificate, bundle):
            for row in (one for one in rows if len(found[one]) == draw):
                print(f"  {name} {draw + 1}/{draws}: {row.kind}", file=sys.stderr)
                found[row] = [*found[row], told_by(row, bundle, certificate, draw)]
                append(BENCH, [line(row, found[row])])
    return [line(row, runs) for row, runs in found.items()]


def report(row: Row, found: Parts) -> bool:
    """Print a line; whether its target, if any, is met."""
    beside = f"  {found['peer']} {found['peer_mean']:.1%}" if found["peer"] else ""
    print(
        f"{found['dataset']:<14} epsilon {found['epsilon']:.3f}  {row.kind}: {found['mean']:.2%} "
        f"(sd {found['sd'] or 0:.2%}, {found['draws']} draws)  {found['seconds'] / 60:.1f} "
        f"minutes each{beside}",
        flush=True,
    )
    met = row.least is None or found["mean"] >= row.least
    if row.least is not None:
        print(f"{'':<14} wanted {row.least:.1%}: {'met' if met else 'MISSED'}", flush=True)
    return met


def main(words: list[str]) -> int:
    """Measure the rows whose recipe matches; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="a part of the recipes' names")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of noise, per recipe")
    parser.add_argument("--continue", action="store_true", dest="go_on", help="keep known draws")
    told = parser.parse_args(words)
    torch.set_num_threads(1)
    missed = False
    for name in dict.fromkeys(row.recipe for row in ROWS if re.search(told.pattern, row.recipe)):
        rows = [row for row in ROWS if row.recipe == name]
        lines = measured(rows, told.draws, go_on=told.go_on)
        for row, found in zip(rows, lines, strict=True):
            missed |= not report(row, found)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
