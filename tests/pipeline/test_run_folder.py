"""The run folder: a ledger that went back is noticed, a crash is not taken for one.

Whoever comes second shares the ledger of the first, and until it is paid a run may begin again.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from stillroom.cli import run as command
from stillroom.errors import BadInput, BudgetExhausted, DoesNotVerify
from stillroom.gate import Budget, Head, Ledger
from stillroom.gate.ledger import verify
from stillroom.pipeline import release as pipeline
from stillroom.pipeline.release import release
from stillroom.pipeline.run_folder import Run, begin_or_continue
from stillroom.release import verify_bundle
from stillroom.sources import Progress

RECIPE = """
purpose = "{purpose}"
[data]
source = "digits"
test_is_public = true
declared_size = 1440
[features]
name = "pixels"
[training]
steps = 6
[privacy]
epsilon = 1.0
"""
BUDGET = Budget(4.0, 1e-5)
HEAD = Head(1, "a" * 64)


def recipe_in(folder, purpose="benchmark"):
    file = folder / "recipe.toml"
    file.write_text(RECIPE.format(purpose=purpose))
    return file


def copied(source, target):
    with closing(sqlite3.connect(source)) as a, closing(sqlite3.connect(target)) as b:
        a.backup(b)


def cut_off(folder, recipe, *, kept_at=2, stopped_at=5):
    """A run that was interrupted, and a copy of its ledger from some steps before."""

    def keep(step, steps):
        if step == kept_at:
            copied(folder / "ledger.sqlite", folder / "copy")
        if step == stopped_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(recipe, folder / "out", budget=BUDGET, progress=Progress(step=keep))


@pytest.mark.parametrize("purpose", ["benchmark", "audit"])
def test_a_ledger_rolled_back_in_the_middle_of_a_run_gives_no_second_answers(tmp_path, purpose):
    """Without a register only the run knows how far the ledger had come."""
    recipe = recipe_in(tmp_path, purpose)
    cut_off(tmp_path, recipe)
    shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "newest")
    shutil.copy(tmp_path / "copy", tmp_path / "ledger.sqlite")
    assert command(["release", str(recipe), "-o", str(tmp_path / "out")]) == 4
    with closing(Ledger.open(tmp_path / "newest")) as newest:
        drawn = len(list(newest.store.rows("kind = 'draw'")))
    assert drawn == 5
    shutil.copy(tmp_path / "newest", tmp_path / "ledger.sqlite")
    made = release(recipe, tmp_path / "out")
    assert (made["parties"][0]["blocks"][0]["drawn"], made["parties"][0]["blocks"][0]["lost"]) == (
        6,
        0,
    )


def test_a_ledger_rolled_back_under_a_running_release_gives_no_second_answers(tmp_path):
    recipe = recipe_in(tmp_path)

    def back(step, steps):
        if step == 2:
            copied(tmp_path / "ledger.sqlite", tmp_path / "copy")
        if step == 4:
            copied(tmp_path / "copy", tmp_path / "ledger.sqlite")

    with pytest.raises(DoesNotVerify, match="seen before"):
        release(recipe, tmp_path / "out", budget=BUDGET, progress=Progress(step=back))
    with pytest.raises(DoesNotVerify, match="seen before"):
        release(recipe, tmp_path / "out")


def test_every_change_since_the_payment_is_kept_before_anything_is_drawn(tmp_path, monkeypatch):
    heads = []
    real = Run.keep

    def witnessed(run, head):
        real(run, head)
        heads.append((run.folder / "head").read_text())

    monkeypatch.setattr(Run, "keep", witnessed)
    release(recipe_in(tmp_path), tmp_path / "out", budget=BUDGET)
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    rows = list(ledger.store.rows("kind IN ('block', 'draw', 'commit')"))
    assert heads == [str(Head(row.seq, row.hash)) for row in rows]
    assert len(heads) == 13


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_death_between_a_row_and_its_head_locks_nobody_out(tmp_path, monkeypatch, number):
    """At the block, at a draw and at a commit: the ledger is ahead of the run, and healthy."""
    real, passed = Run.keep, []

    def dies(run, head):
        passed.append(head)
        if len(passed) == number:
            raise KeyboardInterrupt
        real(run, head)

    recipe = recipe_in(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "keep", dies)
        with pytest.raises(KeyboardInterrupt):
            release(recipe, tmp_path / "out", budget=BUDGET)
    made = release(recipe, tmp_path / "out")
    lost = 1 if number == 2 else 0  # after a draw's row and before its noise
    assert (made["parties"][0]["blocks"][0]["drawn"], made["parties"][0]["blocks"][0]["lost"]) == (
        6,
        lost,
    )
    verify(Ledger.open(tmp_path / "ledger.sqlite"))
    verify_bundle(tmp_path / "out")


@pytest.mark.parametrize("content", [bytes(66), None], ids=["zeros", "missing"])
def test_a_power_cut_may_empty_the_newest_head(tmp_path, content):
    recipe = recipe_in(tmp_path)
    cut_off(tmp_path, recipe)
    head = tmp_path / "out.run" / "head"
    head.unlink() if content is None else head.write_bytes(content)
    assert release(recipe, tmp_path / "out")["parties"][0]["blocks"][0]["lost"] == 0


def test_a_power_cut_may_leave_an_older_head(tmp_path):
    recipe = recipe_in(tmp_path)
    cut_off(tmp_path, recipe)
    with closing(Ledger.open(tmp_path / "ledger.sqlite")) as ledger:
        first = next(ledger.store.rows("kind = 'draw'"))
    (tmp_path / "out.run" / "head").write_text(str(Head(first.seq, first.hash)))
    assert release(recipe, tmp_path / "out")["parties"][0]["blocks"][0]["lost"] == 0


@pytest.mark.parametrize("text", ["nonsense", f"{'9' * 5000}:{'a' * 64}"])
def test_a_damaged_head_is_bad_input(tmp_path, text):
    recipe = recipe_in(tmp_path)
    cut_off(tmp_path, recipe)
    (tmp_path / "out.run" / "head").write_text(text)
    with pytest.raises(BadInput, match="damaged"):
        release(recipe, tmp_path / "out")


def test_a_ledger_that_is_gone_is_not_made_anew(tmp_path):
    recipe = recipe_in(tmp_path)
    cut_off(tmp_path, recipe)
    for file in tmp_path.glob("ledger.sqlite*"):
        file.unlink()
    with pytest.raises(BadInput, match="no ledger"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("name", ["run.json", "head"])
def test_a_run_folder_that_cannot_be_written_is_bad_input(tmp_path, name):
    """A folder in the way of its draft: nobody's rights help, not even root's."""
    (tmp_path / "out.run" / f"{name}.draft").mkdir(parents=True)
    recipe = recipe_in(tmp_path)
    with pytest.raises(BadInput, match="cannot be written") as caught:
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert caught.value.where.endswith(name)
    assert caught.value.remedy
    (tmp_path / "out.run" / f"{name}.draft").rmdir()
    assert release(recipe, tmp_path / "out", budget=BUDGET)["parties"][0]["blocks"][0]["drawn"] == 6


@pytest.mark.parametrize("text", ["[" * 100_000, '{"run": 1, "recipe": 2, "head": 3}', "[]"])
def test_a_state_of_another_shape_is_bad_input(tmp_path, text):
    (tmp_path / "out.run").mkdir()
    (tmp_path / "out.run" / "run.json").write_text(text)
    with pytest.raises(BadInput, match=r"damaged|another recipe"):
        release(recipe_in(tmp_path), tmp_path / "out", budget=BUDGET)


def test_a_run_that_comes_second_shares_the_ledger_of_the_first(tmp_path, monkeypatch):
    """Both found no ledger; one of them has made it by the time the other tries."""
    real = Ledger.create

    def beaten(path, *sealed, **options):
        real(path, *sealed, **options).close()
        return real(path, *sealed, **options)

    monkeypatch.setattr(pipeline.Ledger, "create", beaten)
    made = release(recipe_in(tmp_path, "release"), tmp_path / "out", budget=BUDGET)
    assert made["parties"][0]["data_set"]["blocks"] == 1
    verify(Ledger.open(tmp_path / "ledger.sqlite"))


def test_two_runs_in_one_folder_exclude_each_other(tmp_path):
    recipe = recipe_in(tmp_path)
    with (
        begin_or_continue(tmp_path / "out.run", recipe.read_text()),
        pytest.raises(BadInput, match="another process"),
    ):
        release(recipe, tmp_path / "out", budget=BUDGET)


def test_a_run_keeps_to_its_recipe(tmp_path):
    recipe = recipe_in(tmp_path)
    with begin_or_continue(tmp_path / "out.run", "another recipe") as run, run.paying(lambda: HEAD):
        pass
    with pytest.raises(BadInput, match="another recipe"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    (tmp_path / "out.run" / "run.json").write_text("{")
    with pytest.raises(BadInput, match="damaged"):
        release(recipe, tmp_path / "out", budget=BUDGET)


def test_until_it_is_paid_a_run_can_begin_again_with_another_recipe(tmp_path):
    """A typing error in the source, no budget, too small a budget: each mended in the recipe."""
    recipe = recipe_in(tmp_path)
    right = recipe.read_text()
    recipe.write_text(right.replace("digits", "digitz"))
    assert recipe.read_text() != right
    with pytest.raises(BadInput, match="digitz"):
        release(recipe, tmp_path / "out")
    recipe.write_text(right + "\n# mended\n")
    with pytest.raises(BadInput, match="no budget"):
        release(recipe, tmp_path / "out")
    recipe.write_text(right + "\n# mended twice\n")
    with pytest.raises(BudgetExhausted):
        release(recipe, tmp_path / "out", budget=Budget(0.1, 1e-5))
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    assert not list(ledger.store.rows("kind = 'block'"))
    ledger.set_budget(BUDGET, reason="enough")
    recipe.write_text(right)
    release(recipe, tmp_path / "out")
    assert sum(1 for _ in ledger.store.rows("kind = 'block'")) == 1


def test_a_payment_that_was_cut_off_keeps_its_recipe(tmp_path):
    """It cannot be known whether the block was reserved, so another recipe would pay again."""
    with (
        pytest.raises(KeyboardInterrupt),
        begin_or_continue(tmp_path / "run", "one") as run,
        run.paying(lambda: HEAD),
    ):
        raise KeyboardInterrupt
    with (
        pytest.raises(BadInput, match="another recipe"),
        begin_or_continue(tmp_path / "run", "two"),
    ):
        pass
    with begin_or_continue(tmp_path / "run", "one") as again:
        assert again.name == run.name
