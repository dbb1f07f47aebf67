"""Records that a ledger of this home protects are known again, in whatever part they turn up."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from features.enlarged import pictures
from stillroom.data import Dataset
from stillroom.data.store import save
from stillroom.errors import BadInput, WrongData
from stillroom.gate import Budget, Ledger
from stillroom.pipeline.release import release

BUDGET = Budget(9.0, 1e-5)
RECIPE = """
ledger = "{ledger}"
[data]
source = "scans"
split = "as-given"
test_is_public = {public}
declared_size = 300
[features]
full_scale = 16
{features}
[training]
steps = 2
rate = 1
[engine]
kind = "serial"
[privacy]
epsilon = 3
"""


@pytest.fixture
def scans():
    """Official parts without ids; some pictures stand in both, and some twice in one."""
    x, y = pictures(160)
    train = np.concatenate([np.arange(100), [3, 3], [110]])
    test = np.concatenate([np.arange(100, 150), [3, 120]])
    parts = {"train": Dataset(x[train], y[train], 10), "test": Dataset(x[test], y[test], 10)}
    save(parts, "scans")
    return parts


def recipe(folder, ledger, public="false", features='name = "pixels"'):
    file = folder / f"{ledger}.toml"
    file.write_text(RECIPE.format(ledger=f"{ledger}.sqlite", public=public, features=features))
    return file


def test_a_test_part_that_one_ledger_protects_is_not_measured_by_another(tmp_path, scans, quick):
    """The prefix of its ids hid it: two ledgers for the same records, and nobody noticed."""
    release(recipe(tmp_path, "protects"), tmp_path / "first", budget=BUDGET)
    with pytest.raises((BadInput, WrongData), match="belong"):
        release(recipe(tmp_path, "measures", "true"), tmp_path / "second", budget=BUDGET)
    assert not (tmp_path / "second").exists()


def test_equal_rows_in_two_parts_are_two_records(tmp_path, scans, quick):
    """Neither is an overlap, and a public test part with an equal row is no reason to refuse."""
    release(recipe(tmp_path, "first", "true"), tmp_path / "first", budget=BUDGET)
    ledger = Ledger.open(tmp_path / "first.sqlite")
    assert ledger.ids_from_content
    # 103 records in training, of which three are equal and one is in the test part too.
    assert ledger.store.query("SELECT COUNT(*) FROM members") == [(103,)]


def test_a_public_set_that_is_the_test_part_is_refused(tmp_path, scans):
    test = scans["test"]
    save(Dataset(test.x, test.y, 10), "open-pictures")
    fitted = 'name = "scattering"\ncomponents = 5\nfitted_on = "open-pictures"'
    with pytest.raises(BadInput, match="overlap"):
        release(recipe(tmp_path, "l", "true", fitted), tmp_path / "out", budget=BUDGET)
    assert not (tmp_path / "l.sqlite").exists()


def test_the_test_part_alone_has_the_ids_it_has_among_both_parts(tmp_path, scans, quick):
    """It is numbered first, so that whoever opens it alone meets the ledger that protects it."""
    release(recipe(tmp_path, "protects"), tmp_path / "first", budget=BUDGET)
    ledger = Ledger.open(tmp_path / "protects.sqlite")
    assert all(ledger.protects([name]) for name in scans["test"].ids)


def test_a_recipe_for_other_data_leaves_a_ledgers_budgets_alone(tmp_path):
    x, y = pictures(120)
    np.savez(tmp_path / "scans.npz", x=x[:60], y=y[:60], persons=np.arange(60).astype(str))
    text = '[data]\nsource = "scans.npz"\nclasses = 10\ndeclared_size = 50\n{unit}'
    text += '[features]\nname = "pixels"\nfull_scale = 16\n[privacy]\nepsilon = 1\n'
    (tmp_path / "recipe.toml").write_text(text.format(unit=""))
    ledger_file = tmp_path / "ledger.sqlite"
    with pytest.raises(BadInput, match="no budget"):
        release(tmp_path / "recipe.toml", tmp_path / "out")
    with closing(Ledger.open(ledger_file)) as ledger:
        ledger.set_budget(BUDGET, reason="test")
    np.savez(tmp_path / "scans.npz", x=x[60:], y=y[60:], persons=np.arange(60, 120).astype(str))
    (tmp_path / "recipe.toml").write_text(text.format(unit='unit = "person"\n'))
    with pytest.raises(WrongData, match="not one of these records"):
        release(tmp_path / "recipe.toml", tmp_path / "again")
    with closing(Ledger.open(ledger_file)) as ledger:
        assert ledger.budgets() == [BUDGET]
