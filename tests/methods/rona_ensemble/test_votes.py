"""RONA-E's votes: every answer is paid for, the same one is free, and teachers may vanish."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from methods.rona_ensemble.ensembles import (
    GATED,
    HINTED,
    LITTLE,
    NOISE,
    PLAN,
    SERIAL,
    TEACHERS,
    again,
    drawn,
    noise_free,
    paid,
)
from stillroom.errors import BadInput
from stillroom.gate.ledger import verify
from stillroom.methods.rona.answers import Confident
from stillroom.methods.rona.ensemble import EnsembleSource
from stillroom.private import Ensemble

# -- votes ----------------------------------------------------------------------------------


def test_soft_labels_are_right_and_every_one_is_recorded(split, ensemble, ledger, x):
    ways = paid(ledger, split, PLAN.wishes(LITTLE))
    source = EnsembleSource(PLAN, ensemble, ways)
    positions, labels = source.soft_labels(x[:50])
    assert positions.tolist() == list(range(50))
    assert labels.sum(axis=1) == pytest.approx(np.ones(50))
    right = labels.argmax(axis=1) == split.public.y[:50]
    sure = labels.max(axis=1) > 0.9
    # Twenty simulations gave 44 sure labels or more, of which 92 % or more were right.
    assert sure.sum() > 25
    assert right[sure].mean() > 0.7
    assert (source.asked, source.left, source.exhausted) == ((50, 0), (10, 0), False)
    assert drawn(ledger) == 50
    # The same question again is free, also in a continued run.
    assert np.array_equal(source.soft_labels(x[:50])[1], labels)
    source = EnsembleSource(PLAN, ensemble, again(ledger, split))
    assert (source.asked, source.left) == ((0, 0), (10, 0))
    assert np.array_equal(source.soft_labels(x[:50])[1], labels)
    assert (source.asked, source.left, drawn(ledger)) == ((50, 0), (10, 0), 50)
    verify(ledger)


def ask_all(source, warm, x):
    """Questions that all differ in one thing."""
    source.soft_labels(x[:5])
    source.soft_labels(x[4::-1])
    source.group_labels(x[:5], [0, 0, 1, 1, 1])
    source.group_labels(x[:5], [0, 1, 1, 1, 1])
    source.group_labels(x[:5], [0, 1, 2, 3, 4])
    warm.soft_labels(x[:5])


def test_what_an_answer_depends_on_is_in_the_question(split, ensemble, ledger, x, monkeypatch):
    (way,) = paid(ledger, split, PLAN.wishes(NOISE))
    source = EnsembleSource(PLAN, ensemble, [way])
    warm = EnsembleSource(replace(PLAN, temperature=3.0), ensemble, [way])
    ask_all(source, warm, x)
    assert drawn(ledger) == 5 + 5 + 2 + 2 + 5 + 5
    # The broken twin forgets groups and numbers, and takes one answer for another.
    whole = EnsembleSource._question
    monkeypatch.setattr(
        EnsembleSource, "_question", lambda self, kind, _, x, *rest: whole(self, kind, {}, x)
    )
    ask_all(EnsembleSource(PLAN, ensemble, [way]), warm, x)
    assert drawn(ledger) < 2 * 24


@pytest.mark.parametrize("short", [50, 30, 10])
def test_a_block_with_fewer_answers_stops_cleanly(split, ensemble, ledger, x, short):
    ((mechanism, _),) = PLAN.wishes(NOISE)
    source = EnsembleSource(PLAN, ensemble, paid(ledger, split, [(mechanism, short)]))
    positions, labels = source.soft_labels(x)
    assert positions.tolist() == list(range(short))
    assert (source.asked, source.left, source.exhausted) == ((short, 0), (0, 0), True)
    assert drawn(ledger) == short
    assert np.array_equal(source.soft_labels(x)[1], labels)
    nothing, none = source.soft_labels(split.public.x[60:70])
    assert (len(nothing), none.shape, drawn(ledger)) == (0, (0, 10), short)
    assert source.group_labels(x[:4], [0, 0, 1, 1]).shape == (0, 10)
    # A continued run is cut at the same place and finds all its answers.
    source = EnsembleSource(PLAN, ensemble, again(ledger, split))
    assert np.array_equal(source.soft_labels(x)[1], labels)
    assert (source.exhausted, drawn(ledger)) == (True, short)


def test_a_lost_answer_stays_lost(split, ensemble, ledger, x):
    (way,) = paid(ledger, split, PLAN.wishes(NOISE))
    source = EnsembleSource(PLAN, ensemble, [way])
    first = source.soft_labels(x[:25])[1]
    way._begin(25)  # a crash between the row and the answer
    for left in (10, 0):
        source = EnsembleSource(PLAN, ensemble, again(ledger, split))
        assert source.left == (left, 0)
        positions, labels = source.soft_labels(x)
        assert (len(positions), source.exhausted, source.left) == (35, True, (0, 0))
        assert drawn(ledger) == 60
    assert np.array_equal(labels[:25].argmax(axis=1), first.argmax(axis=1))


def test_a_continued_run_that_asks_otherwise_stops_cleanly(split, ensemble, ledger, x):
    """Answers that it does not ask for again are spent; it goes on with what is left."""
    source = EnsembleSource(PLAN, ensemble, paid(ledger, split, PLAN.wishes(NOISE)))
    source.soft_labels(x[:40])
    for _ in range(2):
        source = EnsembleSource(PLAN, ensemble, again(ledger, split))
        positions, _ = source.soft_labels(x[::-1])
        assert (len(positions), source.exhausted, drawn(ledger)) == (20, True, 60)
        assert len(source.soft_labels(x[:40])[0]) == 40, "they are still there"


def test_groups_cost_one_answer_each(split, ensemble, ledger, x):
    y = split.public.y[:60]
    groups = np.where(np.arange(60) % 7 == 0, -1, y)
    plan = replace(PLAN, chunk=4)
    source = EnsembleSource(plan, ensemble, paid(ledger, split, plan.wishes(LITTLE)))
    labels = source.group_labels(x, groups)
    assert labels.shape == (10, 10)
    assert (source.asked, drawn(ledger)) == ((10, 0), 10)
    assert (labels.argmax(axis=1) == np.arange(10)).mean() >= 0.6
    assert np.array_equal(source.group_labels(x, groups), labels)
    assert drawn(ledger) == 10


def test_group_means_without_noise(ensemble, x):
    groups = np.arange(60) // 6
    source = noise_free(replace(PLAN, chunk=4), ensemble)
    found = source.group_labels(x, groups)
    whole = ensemble.group_means(x, groups, 1024, 0.1).open_bounded()
    assert found.argmax(axis=1).tolist() == whole.argmax(axis=1).tolist()


def test_gating_leaves_some_unanswered_and_keeps_its_cap(split, ensemble, ledger, x):
    source = EnsembleSource(GATED, ensemble, paid(ledger, split, GATED.wishes(LITTLE)))
    positions, labels = source.soft_labels(x)
    # 24 on average, with a deviation of 4.
    assert 3 <= len(positions) < 55
    assert (np.diff(positions) > 0).all()
    assert set(np.unique(labels)) == {0.0, 1.0}
    assert (labels.argmax(axis=1) == split.public.y[positions]).mean() > 0.6
    answered = [row.body["answered"] for row in ledger.store.rows("kind = 'commit'")]
    assert sum(answered) == len(positions)
    assert (drawn(ledger), source.asked, source.exhausted) == (60, (60, 0), False)
    with pytest.raises(BadInput, match="gated"):
        source.group_labels(x, np.zeros(60, dtype=int))


def test_gating_stops_at_its_cap(ensemble, split, ledger, x):
    """A threshold that all reach: the cap is used up, and nothing is drawn beyond."""
    plan = replace(GATED, confident=Confident(Fraction(1, 30), Fraction(3), most=10))
    source = EnsembleSource(plan, ensemble, paid(ledger, split, plan.wishes(LITTLE)))
    positions, _ = source.soft_labels(x)
    assert len(positions) == 10
    assert (source.exhausted, source.left, source.asked) == (True, (0, 0), (25, 0))
    assert drawn(ledger) == 25
    source = EnsembleSource(plan, ensemble, again(ledger, split))
    assert source.left == (0, 0)
    assert np.array_equal(source.soft_labels(x)[0], positions)
    assert (source.exhausted, drawn(ledger)) == (True, 25)


# -- the end --------------------------------------------------------------------------------


def test_teachers_may_be_poisoned_after_the_last_answer(split, hinted, ledger, x):
    hint_x, centre, hints, bound = hinted
    teachers = Ensemble.train(split.sensitive, None, TEACHERS, engine=SERIAL)
    source = EnsembleSource(HINTED, teachers, paid(ledger, split, HINTED.wishes(NOISE)))
    labels = source.soft_labels(x)[1]
    targets = source.hint_targets(hint_x, centre, hints, bound)
    source.close()
    for group in teachers._groups:
        group["weights"][:] = np.nan
    gone = weakref.ref(teachers)
    del teachers, group
    gc.collect()
    assert gone() is None, "the source still holds the teachers"
    assert np.array_equal(source.soft_labels(x)[1], labels)
    assert np.array_equal(source.hint_targets(hint_x, centre, hints, bound), targets)
    assert np.isfinite(labels).all()
    assert np.isfinite(targets).all()


def test_closed_teachers_answer_nothing_new(split, ensemble, ledger, x):
    source = EnsembleSource(PLAN, ensemble, paid(ledger, split, PLAN.wishes(NOISE)))
    source.close()
    with pytest.raises(BadInput, match="gone"):
        source.soft_labels(x[:5])
    assert drawn(ledger) == 0
