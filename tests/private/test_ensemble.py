"""The sharding lemma, teacher by teacher and bit by bit; and ensembles that break it are caught."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from stillroom.data import Dataset, Split, digits
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.features import pixels
from stillroom.private import Ensemble, EnsemblePlan, Hints, shard_training
from stillroom.private.shard_training import pictures, shard_members
from stillroom.vocabulary import Norm, Pair, Sensitivity, Unit

HERE = Engine("serial")
DIGITS = digits()
FEW = DIGITS.select(np.arange(600))
CNN = "student-10k"
PLANS = {
    "ridge": EnsemblePlan(count=12, key="a test", shard_cap=70, stack=5),
    "dual": EnsemblePlan(count=40, key="a test", shard_cap=30, stack=7),
    "linear": EnsemblePlan(12, "a test", 70, "linear", epochs=2, learning_rate=0.05, stack=5),
    "mlp": EnsemblePlan(12, "a test", 70, "mlp", epochs=1, stack=5),
    "cnn": EnsemblePlan(4, "a test", 60, CNN, epochs=1, batch=16),
}


def trained(data, plan, rows=None, **more):
    return Ensemble.train(data, rows, plan, engine=HERE, **more)


def data_for(name):
    return FEW.select(np.arange(200)) if name == "cnn" else FEW


def uncapped(data, plan):
    return shard_members(data, replace(plan, shard_cap=10**6))


def from_the_largest(data, plan):
    """The first record of the largest shard."""
    return int(max(uncapped(data, plan), key=len)[0])


def with_one_largest(data, plan):
    """The data without some records of all shards but one, which is then larger than the others."""
    members = uncapped(data, plan)
    largest = max(range(plan.count), key=lambda j: len(members[j]))
    gone = [own[:2] for j, own in enumerate(members) if j != largest]
    return data.select(np.setdiff1d(np.arange(len(data)), np.concatenate(gone)))


def teachers_changed(train, data, plan, row=None):
    """How many teachers differ after one record, by default of the largest shard, is gone."""
    row = from_the_largest(data, plan) if row is None else row
    less = data.select(np.flatnonzero(np.arange(len(data)) != row))
    pairs = zip(train(data).fingerprints(), train(less).fingerprints(), strict=True)
    return sum(a != b for a, b in pairs)


@pytest.mark.parametrize("name", PLANS)
def test_a_removed_record_changes_one_teacher(name):
    plan, data = PLANS[name], data_for(name)
    assert teachers_changed(partial(trained, plan=plan), data, plan) == 1


@pytest.mark.parametrize("name", ["ridge", "linear", "mlp"])
def test_so_it_is_where_shards_overflow_their_cap(name):
    """Without its first record a shard beyond the cap takes in one that was dropped before."""
    plan, data = replace(PLANS[name], shard_cap=45), FEW
    train = partial(trained, plan=plan)
    assert teachers_changed(train, data, plan) == 1
    dropped = int(max(uncapped(data, plan), key=len)[-1])
    assert teachers_changed(train, data, plan, row=dropped) == 0


@pytest.mark.parametrize("name", PLANS)
def test_positional_shards_are_caught(name, monkeypatch):
    plan, data = PLANS[name], data_for(name)
    monkeypatch.setattr(
        shard_training, "shards", lambda ids, count, key: np.arange(len(ids)) * count // len(ids)
    )
    assert teachers_changed(partial(trained, plan=plan), data, plan, row=0) > 1


@pytest.mark.parametrize("name", ["linear", "mlp", "cnn"])
def test_padding_to_the_largest_shard_is_caught(name):
    """The twin takes its number of places, and so of steps, from the data."""
    plan = PLANS[name]
    data = with_one_largest(data_for(name), plan)

    def padded_by_data(data):
        longest = max(map(len, uncapped(data, plan)))
        return trained(data, replace(plan, shard_cap=longest))

    assert teachers_changed(partial(trained, plan=plan), data, plan) == 1
    assert teachers_changed(padded_by_data, data, plan) > 1


@pytest.mark.parametrize("name", ["ridge", "linear", "mlp"])
def test_pooled_normalisation_is_caught(name):
    plan, data = PLANS[name], FEW

    def normalised_by_all(data):
        centre = pixels(data.x).mean(axis=0)
        return trained(data, plan, rows=lambda x: pixels(x) - centre)

    assert teachers_changed(normalised_by_all, data, plan) == plan.count


def test_features_that_look_at_their_neighbours_stay_within_a_shard():
    plan = PLANS["ridge"]
    train = partial(trained, plan=plan, rows=lambda x: pixels(x) - pixels(x).mean(axis=0))
    assert teachers_changed(train, FEW, plan) == 1


def test_the_order_of_the_file_does_not_matter():
    plan, data = PLANS["linear"], FEW
    turned = data.select(np.arange(len(data))[::-1])
    assert trained(data, plan).fingerprints() == trained(turned, plan).fingerprints()


def test_a_person_is_in_one_shard():
    data, plan = FEW, PLANS["ridge"]
    persons = tuple(f"person {i % 100}" for i in range(len(data)))
    owned = Dataset(data.x, data.y, data.classes, ids=data.ids, persons=persons)
    whole = trained(owned, plan)
    assert whole.unit is Unit.PERSON
    assert Pair.parse("person/add-or-remove") in whole.votes(data.x[:1]).sensitivity.bounds
    less = trained(owned.select(np.array([p != "person 7" for p in persons])), plan)
    pairs = zip(whole.fingerprints(), less.fingerprints(), strict=True)
    assert sum(a != b for a, b in pairs) == 1


def parts():
    return Split.by_fraction(DIGITS, key="an example")


@pytest.mark.parametrize(("name", "least"), [("ridge", 0.9), ("linear", 0.85), ("mlp", 0.85)])
def test_the_ensemble_knows_digits(name, least):
    split = parts()
    teachers = trained(split.sensitive, replace(PLANS[name], shard_cap=90, epochs=6))
    queries, labels = split.test.x, split.test.y
    votes = teachers.votes(queries)
    assert votes.sensitivity == Sensitivity.uniform(Norm.UNIT_STEPS, 2)
    counts = votes.open_bounded()
    assert (counts.sum(axis=1) == teachers.count).all()
    assert (counts.argmax(axis=1) == labels).mean() > least
    soft = teachers.soft_votes(queries, grid=1000, temperature=0.2).open_bounded()
    assert (soft.argmax(axis=1) == labels).mean() > least
    by_class = teachers.group_means(queries, labels, grid=1000).open_bounded()
    assert by_class.argmax(axis=1).tolist() == list(range(10))


@pytest.mark.parametrize("name", PLANS)
def test_a_teachers_scores_do_not_depend_on_the_others(name):
    plan, data = PLANS[name], data_for(name)
    whole, queries = trained(data, plan), data.x[:50]
    rng = np.random.default_rng(0)
    groups = [dict(group) for group in whole._groups]
    for key, array in groups[0].items():
        if array.dtype.kind == "f":
            array = array.copy()
            array[0] = rng.normal(size=array[0].shape) * 1e3
            groups[0][key] = array
    other = Ensemble(plan, groups, whole._rows, whole.classes, whole.unit)
    blocks = zip(whole._scores(queries), other._scores(queries), strict=True)
    for number, (a, b) in enumerate(blocks):
        first = 1 if number == 0 else 0
        assert np.array_equal(a[:, first:], b[:, first:])
        assert number > 0 or not np.array_equal(a, b)


def hint_parts(name):
    split = parts()
    data = split.sensitive.select(np.arange(150 if name == "cnn" else 400))
    public, queries = split.public.x[:80], split.test.x[:30]
    basis = np.random.default_rng(0).normal(size=(65, 6))
    return data, Hints(public, pixels(public) @ basis), queries, pixels(queries) @ basis


@pytest.mark.parametrize("name", PLANS)
def test_hint_residuals_of_one_teacher_move_within_the_diameter(name):
    data, hints, queries, centre = hint_parts(name)
    plan = PLANS[name]
    whole = trained(data, plan)
    answer = whole.hint_residuals(queries, centre, hints, bound="1/2", grid=256)
    assert answer.shape == (30, 6)
    assert answer.sensitivity == Sensitivity.uniform(Norm.L2_SQUARED, 4 * 128**2)
    assert answer.open_bounded().any()
    row = from_the_largest(data, plan)
    less = trained(data.select(np.flatnonzero(np.arange(len(data)) != row)), plan)
    other = less.hint_residuals(queries, centre, hints, bound="1/2", grid=256)
    moved = answer.open_bounded() - other.open_bounded()
    assert 0 < (moved.astype(object) ** 2).sum(axis=1).max() <= 4 * 128**2


def test_a_centre_that_does_not_fit_is_refused():
    data, hints, queries, centre = hint_parts("ridge")
    with pytest.raises(BadInput, match="centre"):
        trained(data, PLANS["ridge"]).hint_residuals(queries, centre[:, 1:], hints, 1, 256)


@pytest.mark.parametrize("teacher", ["ridge", "linear", "mlp", CNN])
def test_an_empty_shard_answers_the_public_default(teacher):
    few = FEW.select(np.arange(8))
    plan = EnsemblePlan(8, "a test", 5, teacher, epochs=1, default_class=3, stack=3)
    empty = [j for j, own in enumerate(shard_members(few, plan)) if not len(own)]
    assert empty, "with 8 records in 8 shards some shard is empty"
    whole = trained(few, plan)
    flags = np.concatenate([group["empty"] for group in whole._groups])
    assert np.flatnonzero(flags).tolist() == empty
    scores = np.concatenate(list(whole._scores(few.x)), axis=1)
    assert not scores[:, empty].any()
    assert scores[:, [j for j in range(8) if j not in empty]].any()
    assert whole.votes(few.x).open_bounded()[:, 3].min() >= len(empty)


def test_a_record_that_joins_an_empty_shard_changes_that_teacher_alone():
    few = FEW.select(np.arange(8))
    plan = EnsemblePlan(7, "a test", 5, "linear", epochs=1, stack=3)
    lonely = [int(own[0]) for own in shard_members(few, plan) if len(own) == 1]
    assert teachers_changed(partial(trained, plan=plan), few, plan, row=lonely[0]) == 1


@pytest.mark.parametrize("teacher", ["ridge", "linear", "mlp", CNN])
def test_a_teacher_that_is_no_number_gives_the_public_default(teacher):
    """To name it would tell of its records (K10); the others are as they would be without it."""
    plan = EnsemblePlan(4, "a test", 60, teacher, epochs=3, default_class=3)
    data = FEW.select(np.arange(100))
    spoilt = shard_members(data, plan)[1]
    known = {data.x[i].tobytes() for i in spoilt}

    def huge(x):
        usual = pictures(x) if teacher == CNN else pixels(x)
        bad = np.array([record.tobytes() in known for record in x], dtype=bool)
        usual[bad] = np.where(usual[bad] > 0, 3e38, -3e38)
        return usual

    usual = pictures if teacher == CNN else pixels
    whole = trained(data, plan, rows=huge)
    # Asked about blank records, whose features are those of everyone.
    blank = np.zeros_like(data.x[:5])
    votes = whole.votes(blank).open_bounded()
    scores = np.concatenate(list(whole._scores(blank)), axis=1)
    expected = np.concatenate(list(trained(data, plan, rows=usual)._scores(blank)), axis=1)
    others = [0, 2, 3]
    assert np.array_equal(scores[:, others], expected[:, others])
    if not np.isfinite(scores[:, 1]).all():
        assert votes[:, 3].min() >= 1
    assert votes.sum(axis=1).tolist() == [4] * 5


def test_a_record_whose_features_are_not_finite_is_left_out_in_silence():
    """As if it were not there: its own teacher is that of its shard without it."""
    data, plan = FEW, PLANS["ridge"]
    lost = {data.x[i].tobytes() for i in np.flatnonzero(data.x.reshape(len(data), -1)[:, 10] > 12)}

    def broken(x):
        found = pixels(x).astype(np.float64)
        found[[record.tobytes() in lost for record in x]] = np.nan
        return found

    kept = data.select([record.tobytes() not in lost for record in data.x])
    assert 0 < len(kept) < len(data)
    spoilt, without = trained(data, plan, rows=broken), trained(kept, plan, rows=pixels)
    for one, other in zip(spoilt._groups, without._groups, strict=True):
        assert np.allclose(one["weights"], other["weights"], atol=1e-5)


@pytest.mark.parametrize("rows", [pictures, lambda x: pixels(x)[0], lambda x: pixels(x)[:1]])
def test_features_of_another_shape_are_refused(rows):
    with pytest.raises(BadInput, match="two records"):
        trained(FEW, PLANS["ridge"], rows=rows)


def test_a_public_start_is_shared_by_all():
    data, plan = FEW, replace(PLANS["linear"], learning_rate=1e-12)
    public = trained(data, replace(plan, count=1, learning_rate=0.05))
    start = {k: v[0] for k, v in public._groups[0].items() if k != "empty"}
    near = trained(data, plan, start=start)
    for group in near._groups:
        for name, weights in start.items():
            assert np.abs(group[name] - weights).max() < 1e-6
    ridge = replace(PLANS["ridge"], ridge=1e9)
    origin = np.random.default_rng(0).normal(size=(66, 10))
    kept = trained(data, ridge, start={"weights": origin})
    assert kept._groups[0]["weights"][0] == pytest.approx(origin, abs=1e-4)


@pytest.mark.parametrize("name", ["ridge", "linear", "cnn"])
def test_a_start_that_does_not_fit_is_refused(name):
    with pytest.raises(BadInput, match="start"):
        trained(data_for(name), PLANS[name], start={"weights": np.zeros((3, 3))})


@pytest.mark.parametrize(
    "wrong",
    [
        *({"count": 0}, {"count": True}, {"shard_cap": 0}, {"epochs": 0}, {"batch": 0}),
        *(
            {"stack": 0},
            {"ridge": 0.0},
            {"learning_rate": float("nan")},
            {"learning_rate": 1e10},
            {"key": ""},
        ),
        *({"training_seed": -1}, {"default_class": -1}),
    ],
)
def test_plans_are_checked(wrong):
    with pytest.raises(BadInput):
        replace(PLANS["ridge"], **wrong)


def test_an_unknown_default_is_refused_and_few_records_are_not():
    """A refusal for too few records would tell how many there are."""
    for size in (9, 1, 0):
        few = trained(FEW.select(np.arange(size)), PLANS["ridge"])
        assert few.votes(FEW.x[:3]).open_bounded().sum(axis=1).tolist() == [12] * 3
    with pytest.raises(BadInput, match="class"):
        trained(FEW, replace(PLANS["ridge"], default_class=10))


def test_networks_need_pictures():
    with pytest.raises(BadInput, match="pictures"):
        pictures(np.zeros((3, 5)))
    assert pictures(np.zeros((3, 5, 6, 2))).shape == (3, 2, 5, 6)


def test_nothing_sensitive_is_shown():
    shown = repr(trained(FEW, PLANS["ridge"]))
    assert shown == "Ensemble(ridge, count=12, classes=10, unit=record)"


@pytest.mark.parametrize(
    "name", ["ridge", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mlp", "cnn"))]
)
def test_engines_and_workers_do_not_matter(name, tmp_path):
    plan = replace(PLANS[name], count=6, stack=2)
    data = FEW.select(np.arange(200))
    told = []
    away = Ensemble.train(
        data,
        None,
        plan,
        engine=Engine("loky", workers=2),
        folder=tmp_path,
        on_done=lambda done, total: told.append((done, total)),
    )
    units = 6 if name == "cnn" else 3
    assert told[-1] == (units, units)
    assert away.fingerprints() == trained(data, plan).fingerprints()


def test_a_folder_of_other_records_is_refused(tmp_path):
    data, plan = FEW, PLANS["ridge"]
    trained(data, plan, folder=tmp_path)
    with pytest.raises(BadInput, match="another plan"):
        trained(data.select(np.arange(1, len(data))), plan, folder=tmp_path)


KILLED = """
import sys, time
from pathlib import Path
from stillroom.data import digits
from stillroom.engine import Engine
from stillroom.private import Ensemble, EnsemblePlan
Ensemble.train(
    digits(),
    None,
    EnsemblePlan(*eval(sys.argv[2]), **eval(sys.argv[3])),
    engine=Engine(*eval(sys.argv[4])),
    folder=Path(sys.argv[1]),
    on_done=lambda done, total: time.sleep(0.2),
)
"""


@pytest.mark.parametrize(
    ("size", "options", "engine"),
    [
        pytest.param((40, "a test", 70), {"stack": 2}, ("serial",), id="40 ridge"),
        pytest.param(
            (250, "a test", 30),
            {"teacher": "student-10k", "epochs": 4},
            ("loky", 2),
            id="250 networks",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_killed_run_goes_on_where_it_was(tmp_path, size, options, engine):
    plan = EnsemblePlan(*size, **options)
    total = plan.count // plan.stack if plan.teacher == "ridge" else plan.count
    words = [str(tmp_path), repr(size), repr(options), repr(engine)]
    run = subprocess.Popen([sys.executable, "-c", KILLED, *words], start_new_session=True)
    try:
        while len(list(tmp_path.glob("*.safetensors"))) < 3:
            assert run.poll() is None, "the run ended before it could be killed"
            time.sleep(0.01)
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    assert 3 <= len(before) < total
    resumed = Ensemble.train(DIGITS, None, plan, engine=Engine(*engine), folder=tmp_path)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    assert len(after) == total
    assert before.items() <= after.items()
    assert resumed.fingerprints() == trained(DIGITS, plan).fingerprints()


def test_the_units_of_many_records_are_not_made_for_each_of_them(monkeypatch):
    """Each look goes through all records: one per record would take hours on a large set."""
    looks, real = [], Dataset.units.fget
    monkeypatch.setattr(Dataset, "units", property(lambda data: looks.append(1) or real(data)))
    Ensemble.train(FEW, None, PLANS["ridge"], engine=HERE)
    Split.by_class(FEW, sensitive_classes=["6", "9"], key="a test", public="1/4", test="1/4")
    assert 0 < len(looks) < 30
