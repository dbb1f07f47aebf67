"""After the last answer nothing sensitive is needed, and a cut-off run asks nothing twice."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from methods.rona.recipes import BUDGET, Phase, drawn, recipe_in, weights_of
from sources.ensemble.ensembles import Noting
from stillroom.data import Dataset
from stillroom.errors import BadInput, StillroomError
from stillroom.gate import Gate, Passage
from stillroom.gate import gate as gate_module
from stillroom.gate.entropy import SeededEntropy
from stillroom.methods.registry import read
from stillroom.models import checkpoints
from stillroom.pipeline import release as pipeline
from stillroom.pipeline import run as in_memory
from stillroom.pipeline.release import load_parts_of, release
from stillroom.private import Ensemble, LinearRecords
from stillroom.release import verify_bundle
from stillroom.sources import ensemble_answers as ensemble_source
from stillroom.sources import trained_linear

labelled = in_memory._labelled


def made_again(recipe, output, **watch):
    """The student from the ledger's answers alone: the same call after its bundle is gone."""
    shutil.rmtree(output)
    for state in output.with_name(f"{output.name}.run").glob("student-*.pt"):
        state.unlink()
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
    seen = []

    def noted(recipe, folder):
        seen.append(load_parts_of(recipe, folder))
        return seen[-1]

    monkeypatch.setattr(pipeline, "load_parts_of", noted)
    return seen


class SeededGate:
    """Gates whose noise is the same in every run."""

    @staticmethod
    def of(*given):
        return Gate.of(*given, entropy=SeededEntropy(3))


@pytest.fixture
def same_noise(monkeypatch):
    """Runs with the same noise, which pretends to be real, for it would have no price."""
    monkeypatch.setattr(gate_module, "source_of", lambda entropy: "os")
    monkeypatch.setattr(in_memory, "Gate", SeededGate)


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
    closed = []

    class Poisoned(Noting):
        def close(self):
            poison_teachers(self._teachers)
            poison(splits[-1].sensitive.open_sealed())
            closed.append(self)
            super().close()

    honest = student_of(tmp_path / "honest", "hinted")
    with monkeypatch.context() as poisoned:
        poisoned.setattr(ensemble_source, "PaidEnsemble", Poisoned)
        assert student_of(tmp_path / "poisoned", "hinted") == honest
    (closed,) = closed
    assert closed.asked == (60, 30)
    # Twin: teachers that are poisoned before their last answer spoil it.
    asked = []

    class LastIsSpoilt(Noting):
        def scores(self, x, groups=None):
            asked.append(len(x))
            if len(asked) == 2:
                poison_teachers(self._teachers)
            return super().scores(x, groups)

    with monkeypatch.context() as poisoned:
        poisoned.setattr(ensemble_source, "PaidEnsemble", LastIsSpoilt)
        assert is_noticed(tmp_path / "twin", "hinted", honest)
    assert asked == [30, 30]
    # One more question finds nobody to ask, even where it would be paid for.
    monkeypatch.setattr(Passage, "ahead", lambda self, rows: rows)
    with pytest.raises(BadInput, match="teachers that are gone"):
        closed.scores(splits[-1].public.x[:1] + 1)
    assert drawn(tmp_path / "poisoned") == 60


def test_records_are_not_needed_after_the_teachers_training(
    tmp_path, small, same_noise, splits, monkeypatch
):
    train, teacher = trained_linear.train_linear, trained_linear.LinearTeacher

    def trained(gate, records, *rest):
        layer = train(gate, records, *rest)
        vars(records).clear()
        poison(splits[-1].sensitive.open_sealed())
        return layer

    class Spoilt(teacher):
        def open(self, *given):
            poison(splits[-1].sensitive.open_sealed())
            return super().open(*given)

    honest = student_of(tmp_path / "honest", "trained")
    with monkeypatch.context() as poisoned:
        poisoned.setattr(trained_linear, "train_linear", trained)
        assert student_of(tmp_path / "poisoned", "trained") == honest
    assert np.isnan(splits[-1].sensitive.open_sealed().x).all()
    # Twin: records that are poisoned before the training spoil it.
    monkeypatch.setattr(trained_linear, "LinearTeacher", Spoilt)
    assert is_noticed(tmp_path / "twin", "trained", honest)


# -- a run that is cut off ------------------------------------------------------------------


@pytest.fixture
def kept_at_once(monkeypatch):
    """States are kept after each pass, and not only now and then."""
    monkeypatch.setattr(checkpoints, "OFTEN", 0.0)


def test_a_cut_off_student_goes_on_without_its_teachers_records(
    tmp_path, small, kept_at_once, monkeypatch
):
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
    assert rest.epochs == [(epoch, 12) for epoch in range(4, 13)]
    assert drawn(tmp_path) == 6
    assert (made["parties"][0]["blocks"][0]["drawn"], made["parties"][0]["blocks"][0]["lost"]) == (
        6,
        0,
    )
    verify_bundle(tmp_path / "out")
    weights = weights_of(tmp_path / "out")
    assert made_again(recipe, tmp_path / "out") == weights


@pytest.mark.parametrize(("stop_at", "votes"), [(1, 0), (3, 30), (6, 60)])
def test_a_cut_off_student_of_an_ensemble_goes_on(
    tmp_path, small, kept_at_once, monkeypatch, stop_at, votes
):
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
    rest = Phase()
    made = release(recipe, tmp_path / "out", progress=rest.progress)
    assert rest.epochs == [(epoch, 7) for epoch in range(stop_at + 1, 8)]
    assert (sum(rows), drawn(tmp_path), drawn(tmp_path, 1)) == (60, 60, 30)
    assert (made["parties"][0]["blocks"][0]["drawn"], made["parties"][0]["blocks"][0]["lost"]) == (
        90,
        0,
    )
    verify_bundle(tmp_path / "out")
    # Uninterrupted, with the same answers, it is the same student; nothing more is asked.
    weights, whole = weights_of(tmp_path / "out"), Phase()
    again = made_again(recipe, tmp_path / "out", progress=whole.progress)
    assert again == weights
    assert whole.epochs[-1] == (7, 7)
    assert (sum(rows), drawn(tmp_path)) == (60, 60)


def test_a_cut_off_student_of_groups_goes_on(tmp_path, small, kept_at_once):
    grouped = "[teachers]\ncount = 20\nshard_cap = 80\nvotes = 40\ngrouped = true\n"
    recipe = recipe_in(tmp_path, "ensemble", part=grouped)
    cut, rest = Phase(stop_at=5), Phase()
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET, progress=cut.progress)
    release(recipe, tmp_path / "out", progress=rest.progress)
    assert rest.epochs == [(6, 6)]
    weights = weights_of(tmp_path / "out")
    assert made_again(recipe, tmp_path / "out") == weights


# -- labels that nobody has -----------------------------------------------------------------


def relabelled(data, wrong):
    """The same records under the same ids, with wrong labels where a mask says so."""
    labels = np.where(wrong, (data.y + 3) % len(data.classes), data.y)
    return Dataset(np.array(data.x), labels, data.classes, name=data.name, ids=data.ids)


def student_with(recipe, output, monkeypatch, spoil):
    """The student, where `spoil` says which public labels are wrong."""

    def parts_of(recipe, folder):
        parts = load_parts_of(recipe, folder)
        wrong = spoil(labelled(recipe, parts.public).ids, parts.public.ids)
        return replace(parts, public=relabelled(parts.public, wrong))

    with monkeypatch.context() as spoilt:
        spoilt.setattr(pipeline, "load_parts_of", parts_of)
        made = release(recipe, output, budget=BUDGET)
    return weights_of(output), [
        c for c in made["sections"]["controls"]["models"] if not c["private"]
    ]


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

    monkeypatch.setattr(in_memory, "_labelled", lambda recipe, public: public)
    assert student("greedy", none_wrong) != student("greedy and spoilt", unlabelled_wrong)


def test_no_record_of_a_sensitive_class_is_public(tmp_path):
    recipe = read(recipe_in(tmp_path, data="sensitive_classes = ['3', '8']"))[0]
    parts = load_parts_of(recipe, tmp_path)
    assert not np.isin(parts.public.y, (3, 8)).any()
    assert len(np.unique(parts.public.y)) == 8
    for part in (parts.sensitive.open_sealed(), parts.test):
        assert np.isin((3, 8), part.y).all()
    # The twin without the key has them.
    plain = load_parts_of(read(recipe_in(tmp_path))[0], tmp_path)
    assert np.isin((3, 8), plain.public.y).all()


def test_a_student_of_classes_that_are_not_public(tmp_path, small, splits):
    recipe = recipe_in(tmp_path, data="sensitive_classes = ['3']")
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert not (splits[-1].public.y == 3).any()
    assert made["artefacts"][0]["classes"] == [str(digit) for digit in range(10)]
    verify_bundle(tmp_path / "out")
