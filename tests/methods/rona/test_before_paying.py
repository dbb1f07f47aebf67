"""As-published RONA: what can be known before paying is checked before paying."""

from __future__ import annotations

import pytest

from quick_onnx import use_quick_exporter
from stillroom.errors import BadInput
from stillroom.gate import Budget, Ledger
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import verify

RECIPE = """method = "rona"
mode = "as-published"
source = "plain"
purpose = "benchmark"
[data]
source = "digits"
public = "2/5"
test_is_public = true
declared_size = 900
[features]
name = "pixels"
full_scale = 16
[engine]
kind = "serial"
[rona]
batch = 64
rounds = 1
self_epochs = 1
distillation_epochs = 1
hint_epochs = 1
hint_layer = 2
guided_layer = 2
[plain]
epochs = 1
{plain}
[privacy]
epsilon = 3
"""
BUDGET = Budget(9.0, 1e-5)


@pytest.fixture(autouse=True)
def quick_exporter(monkeypatch):
    use_quick_exporter(monkeypatch)


def recipe(folder, plain=""):
    file = folder / "recipe.toml"
    file.write_text(RECIPE.format(plain=plain))
    return file


def test_its_own_defaults_run_to_the_end(tmp_path):
    """They reserved, left the ledger at infinity, and crashed on a shape."""
    made = release(recipe(tmp_path), tmp_path / "out", budget=BUDGET)
    assert made["headline"]["epsilon"] == "infinite"
    assert made["sections"]["compression"]["teacher"]["name"] == "network `student-50k`"
    assert verify(tmp_path / "out")["verifies"]


def test_a_teacher_of_another_shape_is_refused_and_nothing_is_charged(tmp_path):
    with pytest.raises(BadInput, match="hint layers") as caught:
        release(recipe(tmp_path, 'teacher = "conv-small"'), tmp_path / "out", budget=BUDGET)
    assert caught.value.where == "plain.teacher, rona.auxiliary"
    # Else a recipe with a slip in it would fix for good which records are sensitive.
    assert not (tmp_path / "ledger.sqlite").exists()
    release(recipe(tmp_path), tmp_path / "other", budget=BUDGET)
    before = Ledger.open(tmp_path / "ledger.sqlite").head()
    with pytest.raises(BadInput):
        release(recipe(tmp_path, 'teacher = "conv-small"'), tmp_path / "again")
    assert Ledger.open(tmp_path / "ledger.sqlite").head() == before
