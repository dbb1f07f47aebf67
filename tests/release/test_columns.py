"""Records for a model must have the columns it was trained on, in their order."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hostile.making import COLUMNS, FEATURES, honest, write_csv
from methods.forging import forge, rehash
from stillroom.cli import run
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.pipeline.verify import verify
from stillroom.release.asked import batches
from stillroom.release.predict import model_of, predict


@pytest.fixture
def bundle(tmp_path):
    return Path(shutil.copytree(honest() / "bundle", tmp_path / "bundle"))


def rows(order):
    random = np.random.default_rng(9)
    return [[*random.integers(0, 17, FEATURES)[order], 1] for _ in range(20)]


def read(path, bundle):
    return np.concatenate([x for _, x in batches(str(path), model_of(bundle)[0], 7)])


def test_columns_are_found_by_name_in_any_order(bundle, tmp_path):
    """In another order they were once given other labels, with exit 0."""
    order = np.roll(np.arange(FEATURES), 5)
    write_csv(tmp_path / "right.csv", COLUMNS, rows(np.arange(FEATURES)))
    write_csv(tmp_path / "turned.csv", [COLUMNS[i] for i in order], rows(order))
    right, turned = (read(tmp_path / name, bundle) for name in ("right.csv", "turned.csv"))
    assert np.array_equal(right, turned)
    other, _ = predict(bundle, right[:, order])
    assert not np.array_equal(predict(bundle, right)[0], other), "the order would have mattered"


def test_columns_that_are_missing_are_refused(bundle, tmp_path):
    write_csv(tmp_path / "few.csv", COLUMNS[1:], [row[1:] for row in rows(np.arange(FEATURES))])
    with pytest.raises(BadInput, match="1 of the 12 columns"):
        read(tmp_path / "few.csv", bundle)
    assert run(["predict", str(bundle), str(tmp_path / "few.csv")]) == 2


def test_records_without_names_are_taken_as_they_are(bundle, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, FEATURES)))
    assert read(tmp_path / "x.npy", bundle).shape == (2, FEATURES)


def test_the_certificate_names_the_columns_and_no_other_verify(bundle):
    document = json.loads((bundle / "certificate.json").read_text())
    assert document["artefacts"][0]["columns"] == COLUMNS
    for other in (COLUMNS[::-1], [*COLUMNS[:-1], "age"], COLUMNS[:-1], []):
        document["artefacts"][0]["columns"] = other
        forge(bundle, document, None)
        with pytest.raises(DoesNotVerify, match="another model"):
            verify(bundle)
    del document["artefacts"][0]["columns"]
    forge(bundle, document, None)
    with pytest.raises(DoesNotVerify, match="another model"):
        verify(bundle)
    rehash(bundle)
