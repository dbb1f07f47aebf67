"""The records a recipe names: found beside it or by name, and split as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillroom.data import Dataset, Split, digits
from stillroom.data.loading import load_split
from stillroom.data.store import save
from stillroom.errors import BadInput

SHARES = {"key": "key", "public": "2/5", "test": "1/5"}


def load(source: str, folder: Path, **words: Any) -> Split:
    return load_split(source, folder, **{**SHARES, **words})


def visits(folder: Path) -> None:
    lines = [f"v{i},{i // 2},{i},{i % 2}" for i in range(40)]
    (folder / "visits.csv").write_text("\n".join(["visit,who,age,label", *lines, ""]))


def same(one: Split, other: Split) -> bool:
    parts = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(a.ids == b.ids and np.array_equal(a.x, b.x) for a, b in parts)


def test_by_name(tmp_path: Path) -> None:
    assert same(load("digits", tmp_path), Split.by_fraction(digits(), "key", "2/5", "1/5"))
    withheld = load("digits", tmp_path, sensitive_classes=["6", "9"])
    assert same(withheld, Split.by_class(digits(), "key", ["6", "9"], "2/5", "1/5"))


def test_a_file_beside_the_recipe(tmp_path: Path) -> None:
    visits(tmp_path)
    columns = {"id": "visit", "person": "who"}
    split = load("visits.csv", tmp_path, classes=["0", "1"], columns=columns)
    assert split.sensitive.persons
    assert split.sensitive.columns == ("age",)
    unnamed = load("visits.csv", tmp_path, classes=2, columns={"id": "visit", "person": None})
    assert unnamed.sensitive.persons is None
    assert unnamed.sensitive.columns == ("who", "age")


def test_a_folder_does_not_hide_a_name(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    assert load("digits", tmp_path).sensitive.name == "digits"


def test_persons_and_sensitive_classes(tmp_path: Path) -> None:
    visits(tmp_path)
    with pytest.raises(BadInput, match="cannot be kept from the public part") as refused:
        load(
            "visits.csv",
            tmp_path,
            classes=2,
            columns={"id": "visit", "person": "who"},
            sensitive_classes=["1"],
        )
    assert refused.value.where == "data.sensitive_classes"


def test_a_split_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    with pytest.raises(BadInput, match="digits has no official train and test parts"):
        load("digits", tmp_path, split="as-given")
    parts = {
        name: Dataset(np.arange(start, start + 20)[:, None], [0] * 20, 2)
        for name, start in (("train", 0), ("test", 20))
    }
    save(parts, "scans")
    split = load("scans", tmp_path, split="as-given")
    assert same(split, Split.as_given(parts["train"], parts["test"], "2/5", "key"))
    assert len(split.test) == 20
