"""The names of a CSV's features go with its records, whatever is done to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillroom.data import Dataset, Split, load, read_csv
from stillroom.data.store import save
from stillroom.errors import BadInput

CSV = "age,label,weight\n52,ill,80\n37,well,70\n44,ill,60\n"
CLASSES = ("well", "ill")


def test_columns_are_read_in_order_and_stay(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(CSV)
    read = read_csv(tmp_path / "visits.csv", CLASSES)
    assert read.columns == ("age", "weight")
    parts = Split.by_fraction(read, "key", 0, "1/2")
    assert {parts.public.columns, parts.sensitive.columns, parts.test.columns} == {read.columns}
    save(read, "visits", tmp_path)
    assert load("visits", root=tmp_path).columns == read.columns


def test_records_without_names_have_none(tmp_path: Path) -> None:
    plain = Dataset(np.eye(2), [0, 1], 2)
    save(plain, "plain", tmp_path)
    assert plain.columns is load("plain", root=tmp_path).columns is None


@pytest.mark.parametrize("columns", [("a",), ("a", "b", "c"), ("a", "b\x1b[2K"), ("a", 3)])
def test_names_that_do_not_fit_are_refused(columns: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="column"):
        Dataset(np.eye(2), [0, 1], 2, columns=columns)
