"""An ensemble's votes: every answer is paid for, the same one is free, and teachers may vanish."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from sources.ensemble.ensembles import (
    GATED,
    HINTED,
    LITTLE,
    NOISE,
    PLAN,
    SERIAL,
    TEACHERS,
    Source,
    again,
    changed,
    drawn,
    noise_free,
    paid,
    probabilities,
    wishes,
)
from stillroom.errors import BadInput
from stillroom.gate.ledger import verify
from stillroom.private import Ensemble
from stillroom.sources.ensemble_answers import LEAST_PROBABILITY
from stillroom.sources.teachers import VOTES

# -- votes ----------------------------------------------------------------------------------


def test_soft_labels_are_right_and_every_one_is_recorded(split, ensemble, ledger, x):
    passages = paid(ledger, split, wishes(PLAN, LITTLE))
    source = Source(PLAN, ensemble, passages, split)
    told = source.scores(x[:50])
    labels = probabilities(told)
    assert told.answered.tolist() == list(range(50))
    assert np.exp(told.values).sum(axis=1) == pytest.approx(np.ones(50), abs=1e-4)
    assert told.noise == float(passages[VOTES].mechanism.sigma) / (30 * 1024)
    right = labels.argmax(axis=1) == split.public.y[:50]
    sure = labels.max(axis=1) > 0.9
    # Twenty simulations gave 44 sure labels or more, of which 92 % or more were right.
    assert sure.sum() > 25
    assert right[sure].mean() > 0.7
    assert (source.asked, source.left) == ((50, 0), 10)
    assert drawn(ledger) == 50
    # The same question again is free, also in a continued run.
    assert np.array_equal(source.scores(x[:50]).values, told.values)
    source = Source(PLAN, ensemble, again(ledger, split), split)
    assert (source.asked, source.left) == ((0, 0), 60), "those that it was given before count too"
    assert np.array_equal(source.scores(x[:50]).values, told.values)
    assert (source.asked, source.left, drawn(ledger)) == ((50, 0), 10, 50)
    verify(ledger)


def ask_all(source, warm, x):
    """Questions that all differ in one thing."""
    source.scores(x[:5])
    source.scores(x[4::-1])
    source.scores(x[:5], np.array([0, 0, 1, 1, 1]))
    source.scores(x[:5], np.array([0, 1, 1, 1, 1]))
    source.scores(x[:5], np.array([0, 1, 2, 3, 4]))
    warm.scores(x[:5])


def test_what_an_answer_depends_on_is_in_the_question(split, ensemble, ledger, x, monkeypatch):
    passages = paid(ledger, split, wishes(PLAN, NOISE))
    source = Source(PLAN, ensemble, passages, split)
    warm = Source(changed(PLAN, temperature=3.0), ensemble, passages, split)
    ask_all(source, warm, x)
    assert drawn(ledger) == 5 + 5 + 2 + 2 + 5 + 5
    # The broken twin forgets groups and numbers, and takes one answer for another.
    whole = Source._question
    monkeypatch.setattr(Source, "_question", lambda self, kind, x, *rest: whole(source, kind, x))
    warm = Source(changed(PLAN, temperature=3.0), ensemble, passages, split)
    ask_all(Source(PLAN, ensemble, passages, split), warm, x)
    assert drawn(ledger) < 2 * 24


@pytest.mark.parametrize("short", [50, 30, 10])
def test_a_block_with_fewer_answers_stops_cleanly(split, ensemble, ledger, x, short):
    ((mechanism, _),) = wishes(PLAN, NOISE).values()
    source = Source(PLAN, ensemble, paid(ledger, split, {VOTES: (mechanism, short)}), split)
    told = source.scores(x)
    assert told.answered.tolist() == list(range(short))
    assert (source.asked, source.left) == ((short, 0), 0)
    assert drawn(ledger) == short
    assert np.array_equal(source.scores(x).values, told.values)
    nothing = source.scores(split.public.x[60:70])
    assert (len(nothing.answered), nothing.values.shape) == (0, (0, 10))
    assert drawn(ledger) == short
    assert source.scores(x[:4], np.array([0, 0, 1, 1])).values.shape == (0, 10)
    # A continued run is cut at the same place and finds all its answers.
    source = Source(PLAN, ensemble, again(ledger, split), split)
    assert np.array_equal(source.scores(x).values, told.values)
    assert (source.left, drawn(ledger)) == (0, short)


def test_a_known_answer_is_found_behind_an_empty_passage(split, ensemble, ledger, x):
    """And before answers that wait to be replayed: it is neither of their questions."""
    source = Source(PLAN, ensemble, paid(ledger, split, wishes(PLAN, NOISE)), split)
    for _ in range(2):
        first = source.scores(x[:25]).values
        whole = source.scores(x[:40]).values
        rest = source.scores(x[40:]).values
        assert (len(rest), source.left) == (20, 0)
        assert np.array_equal(source.scores(x[:25]).values, first)
        assert np.array_equal(source.scores(x[25:40]).values, whole[25:])
        assert (source.asked, drawn(ledger)) == ((60, 0), 60)
        source = Source(PLAN, ensemble, again(ledger, split), split)


def test_groups_cost_one_answer_each(split, ensemble, ledger, x):
    y = split.public.y[:60]
    groups = np.where(np.arange(60) % 7 == 0, -1, y)
    source = Source(PLAN, ensemble, paid(ledger, split, wishes(PLAN, LITTLE)), split, chunk=4)
    told = source.scores(x, groups)
    assert np.array_equal(told.answered, np.flatnonzero(groups >= 0))
    firsts = np.array([np.flatnonzero(groups[told.answered] == g)[0] for g in range(10)])
    labels = told.values[firsts]
    assert labels.shape == (10, 10)
    # All of a group are told the same.
    assert np.array_equal(told.values, labels[groups[told.answered]])
    assert (source.asked, drawn(ledger)) == ((10, 0), 10)
    assert (labels.argmax(axis=1) == np.arange(10)).mean() >= 0.6
    assert np.array_equal(source.scores(x, groups).values, told.values)
    assert drawn(ledger) == 10


def test_group_means_without_noise(split, ensemble, x):
    groups = np.arange(60) // 6
    source = noise_free(PLAN, ensemble, split, chunk=4)
    found = source.scores(x, groups).values[::6]
    whole = ensemble.group_means(x, groups, 1024, 0.1).open_bounded()
    assert found.argmax(axis=1).tolist() == whole.argmax(axis=1).tolist()


def test_gating_leaves_some_unanswered_and_keeps_its_cap(split, ensemble, ledger, x):
    source = Source(GATED, ensemble, paid(ledger, split, wishes(GATED, LITTLE)), split)
    told = source.scores(x)
    positions = told.answered
    # 24 on average, with a deviation of 4.
    assert 3 <= len(positions) < 55
    assert (np.diff(positions) > 0).all()
    assert np.exp(np.unique(told.values)) == pytest.approx([LEAST_PROBABILITY, 1.0])
    assert told.noise == 0
    assert (told.values.argmax(axis=1) == split.public.y[positions]).mean() > 0.6
    answered = [row.body["answered"] for row in ledger.store.rows("kind = 'commit'")]
    assert sum(answered) == len(positions)
    assert (drawn(ledger), source.asked) == (60, (60, 0))
    with pytest.raises(BadInput, match="threshold"):
        source.scores(x, np.zeros(60, dtype=int))


def test_gating_stops_at_its_cap(ensemble, split, ledger, x):
    """A threshold that all reach: the cap is used up, and nothing is drawn beyond."""
    section = changed(GATED, threshold="1/30", votes=10)
    source = Source(section, ensemble, paid(ledger, split, wishes(section, LITTLE)), split)
    told = source.scores(x)
    assert len(told.answered) == 10
    assert (source.left, source.asked) == (0, (25, 0))
    assert drawn(ledger) == 25
    source = Source(section, ensemble, again(ledger, split), split)
    again_told = source.scores(x)
    assert np.array_equal(again_told.answered, told.answered)
    assert np.array_equal(again_told.values, told.values)
    assert (source.left, drawn(ledger)) == (0, 25)


# -- the end --------------------------------------------------------------------------------


def test_teachers_may_be_poisoned_after_the_last_answer(split, hinted, ledger, x):
    teachers = Ensemble.train(split.sensitive, None, TEACHERS, engine=SERIAL)
    source = Source(HINTED, teachers, paid(ledger, split, wishes(HINTED, NOISE)), split)
    labels = source.scores(x).values
    targets = source.hints(*hinted)
    source.close()
    for group in teachers._groups:
        group["weights"][:] = np.nan
    gone = weakref.ref(teachers)
    del teachers, group
    gc.collect()
    assert gone() is None, "the source still holds the teachers"
    assert np.array_equal(source.scores(x).values, labels)
    assert np.array_equal(source.hints(*hinted), targets)
    assert np.isfinite(labels).all()
    assert np.isfinite(targets).all()


def test_closed_teachers_answer_nothing_new(split, ensemble, ledger, x):
    source = Source(PLAN, ensemble, paid(ledger, split, wishes(PLAN, NOISE)), split)
    source.close()
    with pytest.raises(BadInput, match="gone"):
        source.scores(x[:5])
    assert drawn(ledger) == 0
