"""Records per second of `stillroom predict`, and whether its memory grows with their number.

The command is run as a user runs it. Figures are per second of processor time of all its processes:
other work on the machine changes them little.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from PIL import Image

from commands import Taken, taken_by
from measuring import append, result_line, spread
from stillroom.data import digits

SIDE, COLUMNS, DRAWS = 64, 20, 3
MORE_MEMORY = 1.1
"""For ten times the records, at most."""

RECIPE = """
purpose = "benchmark"
[data]
{data}
test_is_public = true
declared_size = 1000
[features]
name = "{features}"
[training]
steps = 5
rate = 1
[privacy]
epsilon = 5
"""
OF_PICTURES = RECIPE.format(
    data=f'source = "scans"\nsize = {SIDE}\nmode = "grey"', features="edges"
)
OF_ROWS = RECIPE.format(data='source = "rows.csv"\nclasses = 2', features="pixels")


@dataclass(frozen=True)
class Row:
    """What is measured, on few and on many records.

    Args:
        name: in words.
        recipe: of the model that is asked.
        train: makes the recipe's records, in a folder.
        ask: makes so many records to ask about, in a folder; says which file or folder they are.
        few, many: how many.
        options: of the command.
    """

    name: str
    recipe: str
    train: Callable[[Path], object]
    ask: Callable[[Path, int], Path]
    few: int
    many: int
    options: tuple[str, ...] = ("--csv",)


def pictures(folder: Path, count: int) -> Path:
    """Enlarged digits as PNG files, all in one folder."""
    data, place = digits(), folder / f"{count}"
    place.mkdir()
    large = [Image.fromarray(x * 15).resize((SIDE, SIDE)) for x in data.x]
    for number in range(count):
        large[number % len(large)].save(place / f"{number:06}.png")
    return place


def scans(folder: Path) -> None:
    """The same in class folders, for training."""
    data = digits()
    for number, (x, y) in enumerate(zip(data.x, data.y, strict=True)):
        place = folder / "scans" / str(y)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x * 15).resize((SIDE, SIDE)).save(place / f"{number}.png")


def lines(count: int, *, label: bool) -> Iterator[str]:
    """Lines of a table of numbers."""
    names = [f"c{i}" for i in range(COLUMNS)]
    yield ",".join([*names, *(["label"] if label else [])])
    rng = np.random.default_rng(0)
    for start in range(0, count, 10_000):
        for row in rng.normal(size=(min(10_000, count - start), COLUMNS)).round(4).tolist():
            yield ",".join([*map(str, row), *([str(int(row[0] > 0))] if label else [])])


def table(folder: Path, count: int) -> Path:
    """A table without labels."""
    path = folder / f"{count}.csv"
    path.write_text("\n".join(lines(count, label=False)))
    return path


def training_table(folder: Path) -> None:
    """A table with labels."""
    (folder / "rows.csv").write_text("\n".join(lines(2000, label=True)))


ROWS = (
    Row("pictures, 64 px PNG", OF_PICTURES, scans, pictures, 1000, 10_000),
    Row("pictures, 64 px PNG, --json", OF_PICTURES, scans, pictures, 1000, 10_000, ("--json",)),
    Row("rows of a CSV file, 20 columns", OF_ROWS, training_table, table, 100_000, 1_000_000),
)


def measured(row: Row) -> tuple[list[Taken], list[Taken]]:
    """Few records and many, in turns."""
    found: tuple[list[Taken], list[Taken]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as name:
        folder = Path(name)
        row.train(folder)
        (folder / "recipe.toml").write_text(row.recipe)
        words = ["ledger", "budget", "set", folder / "ledger.sqlite", "--epsilon", 6]
        release = ["release", folder / "recipe.toml", "-o", folder / "bundle"]
        taken_by(release, folder / "home", folder / "told", code=2)  # makes the ledger
        taken_by([*words, "--reason", "benchmark"], folder / "home", folder / "told")
        taken_by(release, folder / "home", folder / "told")
        asked = [row.ask(folder, count) for count in (row.few, row.many)]
        for _ in range(DRAWS):
            for place, kept in zip(asked, found, strict=True):
                command = ["predict", folder / "bundle", place, *row.options]
                kept.append(taken_by(command, folder / "home", folder / "answers"))
        answers = (folder / "answers").read_text().count("\n")
        assert answers > row.many, "an answer is missing"
    return found


def main() -> None:
    """Measure the rows that are named, or all, and append a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="of the rows' names")
    wanted = parser.parse_args().part
    grown = []
    for row in ROWS:
        if wanted not in row.name:
            continue
        few, many = measured(row)
        less, most = (max(one.peak_mb for one in kept) for kept in (few, many))
        line = result_line(
            "predict",
            ["numpy", "onnxruntime", "pillow"],
            dataset=row.name,
            method="direct",
            metric="records per second of processor time",
            **spread([row.many / one.cpu_seconds for one in many]),
            draws=DRAWS,
            seconds=round(mean(one.seconds for one in many), 1),
            peak_mb=most,
            ratio=most / less,
            records=row.many,
            cpu_seconds=round(mean(one.cpu_seconds for one in many), 2),
            records_few=row.few,
            peak_mb_few=less,
        )
        append("predict", [line])
        print(f"{row.name}: {line['mean']:,.0f} records per second of processor time;", end=" ")
        print(f"{most} MB for {row.many:,} records, {less} MB for {row.few:,}")
        if most > MORE_MEMORY * less and "--json" not in row.options:
            grown.append(row.name)
    if grown:
        raise SystemExit(f"memory grows with the number of records: {', '.join(grown)}")


if __name__ == "__main__":
    main()
