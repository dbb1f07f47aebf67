"""Files of a small world, in the folder where the commands are run."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
from PIL import Image

from stillroom.data import digits
from stillroom.gate import Budget, Ledger

RECIPE = """
ledger = "ledger.sqlite"
[data]
source = "digits"
test_is_public = true
declared_size = 1440
[features]
name = "pixels"
[training]
steps = 5
rate = 1
[privacy]
epsilon = 1
"""
VISITS = """
[data]
source = "visits.csv"
classes = ["well", "ill"]
test_is_public = true
declared_size = 50
[features]
name = "pixels"
[privacy]
epsilon = 1
"""
PUBLISHED = """
method = "pg"
source = "plain"
mode = "as-published"
[data]
source = "digits"
test_is_public = true
declared_size = 1440
[features]
full_scale = 16
[collection]
model = "linear"
parameters = 650
models = 5
shard_cap = 1400
[pg]
publisher = "pg"
[published]
epsilon = 1
[privacy]
epsilon = 10
"""
SCANS = VISITS.replace("visits.csv", "scans")


class World:
    """The folder a user works in."""

    def __init__(self, folder: Path, bundles: Path, monkeypatch) -> None:
        self.folder, self._bundles, self.monkeypatch = folder, bundles, monkeypatch

    def write(self, name: str, text: str, encoding: str = "utf-8") -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding=encoding)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def recipe(self, text: str = RECIPE, **changes: str) -> None:
        """The recipe, with some lines changed: `recipe(epsilon="0")`."""
        for key, value in changes.items():
            lines = [line for line in text.splitlines() if line.split(" =")[0] == key]
            assert len(lines) == 1, key
            text = text.replace(f"{lines[0]}\n", f"{key} = {value}\n" if value else "")
        self.write("recipe.toml", text)

    def mend(self, old: str, new: str, name: str = "recipe.toml") -> None:
        text = self.read(name)
        assert old in text, text
        self.write(name, text.replace(old, new))

    def visits(self, *, header="age,dose,label", rows=60, **cells: str) -> None:
        """A table; `line_3="x,1,well"` is another third record."""
        lines = [f"{20 + n % 50},{n % 7},{'ill' if n % 3 else 'well'}" for n in range(rows)]
        for name, line in cells.items():
            lines[int(name.removeprefix("line_")) - 1] = line
        self.write("visits.csv", "\n".join([header, *lines]) + "\n")

    def people(self, header="person,age,label") -> None:
        rows = [f"p{n // 2},{20 + n % 50},{'ill' if n % 3 else 'well'}" for n in range(60)]
        self.write("visits.csv", "\n".join([header, *rows]) + "\n")

    def scans(self, count=20, size=lambda n: (8, 8), mode=lambda n: "L") -> None:
        for n in range(count):
            place = self.folder / "scans" / ("ill" if n % 2 else "well") / f"p{n // 2}_{n}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new(mode(n), size(n), 10 * n).save(place)

    def arrays(self, name="scans.npz", **changed) -> None:
        data = digits()
        np.savez(self.folder / name, **{"x": data.x[:200], "y": data.y[:200], **changed})

    def ledger(self, name="ledger.sqlite", epsilon=4.0, unit="record", ids=None) -> None:
        """A ledger of the digits, with a budget unless epsilon is 0."""
        from stillroom.data import Split

        split = Split.by_fraction(digits(), "stillroom", public=0, test="1/5")
        records = split.sensitive.ids if ids is None else ids
        told = {"ids": records, "unit": unit}
        with closing(Ledger.create(self.folder / name, **told)) as made:
            if epsilon:
                made.set_budget(Budget(epsilon, 1e-5), reason="a test")

    def bundle(self, kind: str = "digits", name: str = "model") -> Path:
        """A finished bundle, signed by `release.key`, which is here too."""
        shutil.copytree(self._bundles / kind, self.folder / name)
        for key in ("release.key", "release.key.pub"):
            if not (self.folder / key).exists():
                shutil.copy(self._bundles / key, self.folder / key)
        return self.folder / name
