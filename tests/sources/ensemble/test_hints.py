"""An ensemble's hints: clipped residuals within a bound that no sensitive record moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sources.ensemble.ensembles import (
    HINTED,
    LITTLE,
    NOISE,
    PLAN,
    SERIAL,
    TEACHERS,
    Source,
    changed,
    drawn,
    noise_free,
    paid,
    wishes,
)
from stillroom.errors import BadInput
from stillroom.private import Ensemble, Hints
from stillroom.private.hints import hint_residual
from stillroom.public.bounds import PublicBound, adaptive_bound
from stillroom.sources import ensemble_answers as ensemble_source
from stillroom.sources.hint_bound import public_bound
from stillroom.sources.teachers import HINTS


def aligned(teachers, x, hints):
    """Each teacher's hints, mapped to the auxiliary ones without clip or grid."""
    centre = np.zeros((len(x), hints.values.shape[1]))
    grid = 1 << 20
    return [
        hint_residual(hidden, known, hints, centre, 16 * grid, grid) / grid
        for hidden, known in zip(teachers._hidden(x), teachers._hidden(hints.x), strict=True)
    ]


def test_without_noise_the_targets_are_the_mean_of_clipped_differences(
    split, ensemble, hinted, bound
):
    x, centre, known, values = hinted
    found = noise_free(HINTED, ensemble, split).hints(*hinted)
    clip, expected = float(bound.value), np.zeros(centre.shape)
    for own in aligned(ensemble, x, Hints(known, values)):
        away = own - centre
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        expected += away * np.minimum(1, clip / lengths) / TEACHERS.count
    assert found == pytest.approx(centre + expected, abs=2 / bound.units)


def test_targets_are_nearer_to_the_pooled_teacher(split, ensemble, hinted, ledger, monkeypatch):
    x, centre, known, values = hinted
    section = changed(HINTED, hint_share="9/10")
    passages = paid(ledger, split, wishes(section, LITTLE))
    source = Source(section, ensemble, passages, split)
    found = source.hints(*hinted)
    one = replace(TEACHERS, count=1, shard_cap=2000)
    pooled = Ensemble.train(split.sensitive, None, one, engine=SERIAL)
    (goal,) = aligned(pooled, x, Hints(known, values))
    assert np.linalg.norm(found - goal) < 0.9 * np.linalg.norm(centre - goal)
    assert (source.asked, source.left, source.hints_left) == ((0, 40), 60, 0)
    assert drawn(ledger, 1) == 40
    assert np.array_equal(source.hints(*hinted), found)
    # Another centre, map or bound is another question, and nothing is left to answer it.
    others = [(x, centre + 0.1, known, values), (x, centre, known, values * 2)]
    for other in (*others, (x, centre, known + 1, values)):
        assert source.hints(*other).shape == (0, 10)
    honest = ensemble_source.public_bound

    def larger(*given, **named):
        bound = honest(*given, **named)
        return replace(bound, units=bound.units + 1)

    with monkeypatch.context() as other_bound:
        other_bound.setattr(ensemble_source, "public_bound", larger)
        assert source.hints(*hinted).shape == (0, 10)
    assert source.hints_left == 0
    assert drawn(ledger, 1) == 40
    # The votes have an allowance of their own.
    assert len(source.scores(x).answered) == 40


def test_targets_drowned_in_noise_are_the_auxiliary_hints(split, ensemble, hinted, bound, ledger):
    wanted = wishes(HINTED, NOISE)
    found = Source(HINTED, ensemble, paid(ledger, split, wanted), split).hints(*hinted)
    exact = noise_free(HINTED, ensemble, split).hints(*hinted)
    noise = float(wanted[HINTS][0].sigma) / (bound.units * TEACHERS.count)
    # The noise is 20 deviations long in 400 coordinates; what is left of it is a tenth or so.
    assert np.linalg.norm(found - exact) < 20 * noise / 2


def test_a_centre_that_does_not_fit_is_refused_before_anything_is_drawn(
    split, ensemble, hinted, ledger
):
    x, centre, known, values = hinted
    source = Source(HINTED, ensemble, paid(ledger, split, wishes(HINTED, NOISE)), split)
    wide = np.hstack([values, values])
    for given in ((centre[:30], values), (centre[:, :9], values), (centre, wide)):
        with pytest.raises(BadInput, match="the centre is not"):
            source.hints(x, given[0], known, given[1])
    # All of another width than was paid for.
    with pytest.raises(BadInput, match="rows of 10 integers"):
        source.hints(x, np.hstack([centre, centre]), known, wide)
    assert drawn(ledger, 1) == 0


@pytest.mark.parametrize("groups", [[0, 0, 2, 2], [0, 1], [0.0, 1.0, 1.0, 0.0]])
def test_groups_that_do_not_fit_are_refused_before_anything_is_drawn(split, ensemble, x, groups):
    source = noise_free(PLAN, ensemble, split, chunk=1)
    with pytest.raises(BadInput, match="without gaps"):
        source.scores(x[:4], np.array(groups))
    assert source.asked == (0, 0)


def test_hints_stop_cleanly_too(split, ensemble, hinted, ledger):
    wanted = wishes(HINTED, NOISE)
    wanted[HINTS] = wanted[HINTS][0], 30
    source = Source(HINTED, ensemble, paid(ledger, split, wanted), split)
    found = source.hints(*hinted)
    assert (found.shape, source.hints_left, drawn(ledger, 1)) == ((30, 10), 0, 30)


def test_a_section_without_hints_gives_none(split, ensemble, hinted):
    """Whoever asks all the same is told so; it is not taken for an answer."""
    with pytest.raises(BadInput, match="no hints were paid for"):
        noise_free(PLAN, ensemble, split).hints(*hinted)


def test_the_bound_cannot_come_from_sensitive_records(split, ensemble, hinted, bound):
    """The broken twin, in each form it could take: it is refused by its type."""
    x, centre, known, values = hinted
    hints = Hints(known, values)
    assert isinstance(bound, PublicBound)
    assert (bound.steps, bound.origin) == (1024, "a quarter of the digits")
    for sensitive in (split.sensitive, ensemble, split.sensitive.x):
        with pytest.raises(BadInput, match="not known to be public"):
            public_bound(
                TEACHERS,
                sensitive,
                split.sensitive.y,
                x,
                centre,
                hints,
                classes=10,
                steps=1024,
            )
    # Teachers hand out Bounded sums alone, and no length can be read off one.
    released = ensemble.hint_residuals(x, centre, hints, 1, 1024)
    with pytest.raises(BadInput, match="give no bound"):
        adaptive_bound(released, steps=1024, origin="sensitive")


def test_a_source_reads_its_bound_off_the_labelled_public_part(
    split, ensemble, hinted, bound, ledger, monkeypatch
):
    """Nobody can hand it another one."""
    honest, made = ensemble_source.public_bound, []

    def noted(plan, public, labels, *given, **named):
        made.append(honest(plan, public, labels, *given, **named))
        assert np.array_equal(public.x, split.public.x)
        assert np.array_equal(labels, split.public.y)
        return made[-1]

    monkeypatch.setattr(ensemble_source, "public_bound", noted)
    source = Source(HINTED, ensemble, paid(ledger, split, wishes(HINTED, NOISE)), split)
    source.hints(*hinted)
    (found,) = made
    assert (found.value, found.units, found.steps) == (bound.value, bound.units, 1024)
    assert found.origin == "the labelled public part"


def test_the_bound_is_the_median_of_the_stand_ins(split, hinted, bound):
    """And it does not change when sensitive records do: it never sees them."""
    x, centre, known, values = hinted
    few = replace(TEACHERS, count=4)
    stand_ins = Ensemble.train(split.public, None, few, engine=SERIAL)
    hints = Hints(known, values)
    norms = [np.linalg.norm(own - centre, axis=1) for own in aligned(stand_ins, x, hints)]
    assert float(bound.value) == pytest.approx(np.median(norms), rel=0.2)
