"""After the last answer nothing sensitive is needed, and a cut-off run asks nothing twice."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from methods.rona.recipes import BUDGET, Phase, drawn, recipe_in, weights_of
from stillroom.data import Dataset, Split
from stillroom.errors import BadInput, StillroomError
from stillroom.gate import Gate, door
from stillroom.gate.entropy import SeededEntropy
from stillroom.methods import learners, road
from stillroom.methods.recipe import Recipe, read
from stillroom.pipeline.release import release
from stillroom.methods.rona import from_ensemble as rona_from_ensemble
from stillroom.methods.rona import public_side as rona_public
from stillroom.methods.rona import road as rona_road
from stillroom.private import Ensemble, LinearRecords
from stillroom.release import verify_bundle


def made_again(recipe, output, **watch):
    """The student from the ledger's answers alone: the same call after its bundle is gone."""
    shutil.rmtree(output)
    release(recipe, output, **watch)
    return weights_of(output)


def poison(data):
    """Records that would spoil whatever still looks at them."""
    object.__setattr__(data, "x", np.full(data.x.shape, np.nan, np.float32))
    object.__setattr__(data, "y", np.full(len(data.y), -1))


def poison_teachers(ensemble):
    ensemble._groups = [
        {name: np.full_like(array, np.nan) for name, array in group.items()}
        for group in ensemble._groups
    ]


@pytest.fixture
def splits(monkeypatch):
    """The records of each run."""
    honest, seen = Recipe.split, []

    def noted(self, folder):
        seen.append(honest(self, folder))
        return seen[-1]

    monkeypatch.setattr(Recipe, "split", noted)
    return seen


@pytest.fixture
def same_noise(monkeypatch):
    """Runs with the same noise, which pretends to be real, for it would have no price."""
    monkeypatch.setattr(door, "source_of", lambda entropy: "os")
    monkeypatch.setattr(road, "Gate", lambda *given: Gate(*given, entropy=SeededEntropy(3)))


def student_of(folder, kind, **parts):
    """A new student, to the bit."""
    release(recipe_in(folder, kind, **parts), folder / "out", budget=BUDGET)
    verify_bundle(folder / "out")
    return weights_of(folder / "out")


def is_noticed(folder, kind, honest, **parts):
    """Whether poison stops a run, or shows in its student."""
    try:
        return student_of(folder, kind, **parts) != honest
    except (StillroomError, ArithmeticError, ValueError):
        return True


# -- poison ---------------------------------------------------------------------------------


def test_teachers_are_not_needed_after_their_last_answer(
    tmp_path, small, same_noise, splits, monkeypatch
):
    source = rona_from_ensemble.EnsembleSource
    honest_close, closed = source.close, []

    def close(self):
        poison_teachers(self._teachers)
        poison(splits[-1].sensitive)
        closed.append(self)
        honest_close(self)

    honest = student_of(tmp_path / "honest", "hinted")
    with monkeypatch.context() as poisoned:
        poisoned.setattr(source, "close", close)
        assert student_of(tmp_path / "poisoned", "hinted") == honest
    (closed,) = closed
    assert closed.asked == (60, 30)
    # Twin: teachers that are poisoned before their last answer spoil it.
    answers, asked = source.soft_labels, []

    def last_is_spoilt(self, x):
        asked.append(len(x))
        if len(asked) == 2:
            poison_teachers(self._teachers)
        return answers(self, x)

    with monkeypatch.context() as poisoned:
        poisoned.setattr(source, "soft_labels", last_is_spoilt)
        assert is_noticed(tmp_path / "twin", "hinted", honest)
    # One more question finds nobody to ask, even where it would be paid for.
    monkeypatch.setattr(type(closed._votes), "left", property(lambda self: 1))
    with pytest.raises(BadInput, match="teachers that are gone"):
        closed.soft_labels(splits[-1].public.x[:1] + 1)
    assert drawn(tmp_path / "poisoned") == 60


def test_records_are_not_needed_after_the_teachers_training(
    tmp_path, small, same_noise, splits, monkeypatch
):
    train, prepare = learners.LinearLearner.train, learners.LinearLearner.prepare

    def trained(self, gate, on_step):
        train(self, gate, on_step)
        self._records = None
        poison(self._data)

    def prepared(self, sampled):
        poison(self._data)
        prepare(self, sampled)

    honest = student_of(tmp_path / "honest", "trained")
    with monkeypatch.context() as poisoned:
        poisoned.setattr(learners.LinearLearner, "train", trained)
        assert student_of(tmp_path / "poisoned", "trained") == honest
    assert np.isnan(splits[-1].sensitive.x).all()
    # Twin: records that are poisoned before the training spoil it.
    monkeypatch.setattr(learners.LinearLearner, "prepare", prepared)
    assert is_noticed(tmp_path / "twin", "trained", honest)


# -- a run that is cut off ------------------------------------------------------------------


def test_a_cut_off_student_goes_on_without_its_teachers_records(tmp_path, small, monkeypatch):
    recipe = recipe_in(tmp_path)
    cut = Phase(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET, progress=cut.progress)
    assert drawn(tmp_path) == 6

    def again(*given):
        raise AssertionError("a gradient sum was asked again")

    monkeypatch.setattr(LinearRecords, "clipped_sum", again)
    rest = Phase()
    made = release(recipe, tmp_path / "out", progress=rest.progress)
    assert rest.epochs[-1] == (12, 12)
    assert drawn(tmp_path) == 6
    assert (made["blocks"][0]["drawn"], made["blocks"][0]["lost"]) == (6, 0)
    verify_bundle(tmp_path / "out")
    weights = weights_of(tmp_path / "out")
    assert made_again(recipe, tmp_path / "out") == weights


@pytest.mark.parametrize(("stop_at", "votes"), [(1, 0), (3, 30), (6, 60)])
def test_a_cut_off_student_of_an_ensemble_goes_on(tmp_path, small, monkeypatch, stop_at, votes):
    """Hints are asked in the first epoch, 30 votes in the third, 30 more in the sixth."""
    honest, rows = Ensemble.soft_votes, []

    def noted(self, x, *given):
        rows.append(len(x))
        return honest(self, x, *given)

    monkeypatch.setattr(Ensemble, "soft_votes", noted)
    recipe = recipe_in(tmp_path, "hinted")
    cut = Phase(stop_at)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET, progress=cut.progress)
    assert (sum(rows), drawn(tmp_path), drawn(tmp_path, 1)) == (votes, votes, 30)
    made = release(recipe, tmp_path / "out")
    assert (sum(rows), drawn(tmp_path), drawn(tmp_path, 1)) == (60, 60, 30)
    assert (made["blocks"][0]["drawn"], made["blocks"][0]["lost"]) == (90, 0)
    verify_bundle(tmp_path / "out")
    # Uninterrupted, with the same answers, it is the same student; nothing more is asked.
    weights, whole = weights_of(tmp_path / "out"), Phase()
    again = made_again(recipe, tmp_path / "out", progress=whole.progress)
    assert again == weights
    assert whole.epochs[-1] == (7, 7)
    assert (sum(rows), drawn(tmp_path)) == (60, 60)


# -- labels that nobody has -----------------------------------------------------------------


def relabelled(data, wrong):
    """The same records under the same ids, with wrong labels where a mask says so."""
    labels = np.where(wrong, (data.y + 3) % len(data.classes), data.y)
    return Dataset(np.array(data.x), labels, data.classes, name=data.name, ids=data.ids)


def student_with(recipe, output, monkeypatch, spoil):
    """The student, where `spoil` says which public labels are wrong."""
    honest = Recipe.split

    def split(self, folder):
        parts = honest(self, folder)
        wrong = spoil(rona_public.PublicSide(self, parts).labelled.ids, parts.public.ids)
        return Split(relabelled(parts.public, wrong), parts.sensitive, parts.test)

    with monkeypatch.context() as spoilt:
        spoilt.setattr(Recipe, "split", split)
        made = release(recipe, output, budget=BUDGET)
    return weights_of(output), [c for c in made["controls"] if not c["private"]]


def none_wrong(labelled, everyone):
    return np.zeros(len(everyone), dtype=bool)


def unlabelled_wrong(labelled, everyone):
    known = set(labelled)
    return np.array([one not in known for one in everyone])


@pytest.mark.parametrize("kind", ["trained", "hinted"])
def test_labels_of_unlabelled_records_are_never_used(
    tmp_path, small, same_noise, monkeypatch, kind
):
    def student(name, spoil):
        folder = tmp_path / name
        recipe = recipe_in(folder, kind, data="labelled = '1/2'")
        return student_with(recipe, folder / "out", monkeypatch, spoil)

    honest = student("honest", none_wrong)
    assert student("spoilt", unlabelled_wrong) == honest
    # Twins: labels that are used do matter, and a public side that takes all of them is caught.
    assert student("all", lambda known, everyone: ~none_wrong(known, everyone)) != honest

    class Greedy(rona_public.PublicSide):
        def __init__(self, recipe, split):
            super().__init__(recipe, split)
            self.labelled = split.public

    monkeypatch.setattr(rona_road, "PublicSide", Greedy)
    assert student("greedy", none_wrong) != student("greedy and spoilt", unlabelled_wrong)


def test_no_record_of_a_sensitive_class_is_public(tmp_path):
    recipe = read(recipe_in(tmp_path, data="sensitive_classes = ['3', '8']"))[0]
    split = recipe.split(tmp_path)
    assert not np.isin(split.public.y, (3, 8)).any()
    assert len(np.unique(split.public.y)) == 8
    for part in (split.sensitive, split.test):
        assert np.isin((3, 8), part.y).all()
    # The twin without the key has them.
    plain = read(recipe_in(tmp_path))[0].split(tmp_path)
    assert np.isin((3, 8), plain.public.y).all()


def test_a_student_of_classes_that_are_not_public(tmp_path, small, splits):
    recipe = recipe_in(tmp_path, data="sensitive_classes = ['3']")
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert not (splits[-1].public.y == 3).any()
    assert made["model"]["classes"] == [str(digit) for digit in range(10)]
    verify_bundle(tmp_path / "out")
