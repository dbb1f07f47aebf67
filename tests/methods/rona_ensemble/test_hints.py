"""RONA-E's hints: clipped residuals within a bound that no sensitive record moves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from methods.rona_ensemble.ensembles import (
    HINTED,
    LITTLE,
    NOISE,
    PLAN,
    SERIAL,
    TEACHERS,
    drawn,
    noise_free,
    paid,
)
from stillroom.errors import BadInput
from stillroom.methods.rona.bound import public_bound
from stillroom.methods.rona.ensemble import EnsembleSource
from stillroom.private import Ensemble, Hints
from stillroom.private.hints import hint_residual
from stillroom.public.bounds import PublicBound, adaptive_bound


def aligned(teachers, x, hints):
    """Each teacher's hints, mapped to the auxiliary ones without clip or grid."""
    centre = np.zeros((len(x), hints.values.shape[1]))
    grid = 1 << 20
    return [
        hint_residual(hidden, known, hints, centre, 16 * grid, grid) / grid
        for hidden, known in zip(teachers._hidden(x), teachers._hidden(hints.x), strict=True)
    ]


def test_without_noise_the_targets_are_the_mean_of_clipped_differences(ensemble, hinted):
    x, centre, hints, bound = hinted
    found = noise_free(HINTED, ensemble).hint_targets(x, centre, hints, bound)
    clip, expected = float(bound.value), np.zeros(centre.shape)
    for own in aligned(ensemble, x, hints):
        away = own - centre
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        expected += away * np.minimum(1, clip / lengths) / TEACHERS.count
    assert found == pytest.approx(centre + expected, abs=2 / bound.units)


def test_targets_are_nearer_to_the_pooled_teacher(split, ensemble, hinted, ledger):
    x, centre, hints, bound = hinted
    plan = replace(HINTED, hint_share=Fraction(9, 10))
    source = EnsembleSource(plan, ensemble, paid(ledger, split, plan.wishes(LITTLE)))
    found = source.hint_targets(x, centre, hints, bound)
    one = replace(TEACHERS, count=1, shard_cap=2000)
    pooled = Ensemble.train(split.sensitive, None, one, engine=SERIAL)
    (goal,) = aligned(pooled, x, hints)
    assert np.linalg.norm(found - goal) < 0.9 * np.linalg.norm(centre - goal)
    assert (source.asked, source.left, drawn(ledger, 1)) == ((0, 40), (60, 0), 40)
    assert np.array_equal(source.hint_targets(x, centre, hints, bound), found)
    # Another centre, bound or map is another question, and nothing is left to answer it.
    for other in (
        (x, centre + 0.1, hints, bound),
        (x, centre, hints, replace(bound, units=bound.units + 1)),
        (x, centre, replace(hints, ridge=0.5), bound),
        (x, centre, replace(hints, values=hints.values * 2), bound),
    ):
        assert source.hint_targets(*other).shape == (0, 10)
    assert source.exhausted
    assert drawn(ledger, 1) == 40
    # The votes have an allowance of their own.
    assert len(source.soft_labels(x)[0]) == 40


def test_targets_drowned_in_noise_are_the_auxiliary_hints(split, ensemble, hinted, ledger):
    x, centre, hints, bound = hinted
    source = EnsembleSource(HINTED, ensemble, paid(ledger, split, HINTED.wishes(NOISE)))
    found = source.hint_targets(x, centre, hints, bound)
    exact = noise_free(HINTED, ensemble).hint_targets(x, centre, hints, bound)
    (_, (mechanism, _)) = HINTED.wishes(NOISE)
    noise = float(mechanism.sigma) / (bound.units * TEACHERS.count)
    # The noise is 20 deviations long in 400 coordinates; what is left of it is a tenth or so.
    assert np.linalg.norm(found - exact) < 20 * noise / 2


def test_a_centre_that_does_not_fit_is_refused_before_anything_is_drawn(
    split, ensemble, hinted, ledger
):
    x, centre, hints, bound = hinted
    source = EnsembleSource(HINTED, ensemble, paid(ledger, split, HINTED.wishes(NOISE)))
    wide = Hints(hints.x, np.hstack([hints.values, hints.values]))
    for given in ((centre[:30], hints), (centre[:, :9], hints), (centre, wide)):
        with pytest.raises(BadInput, match="the centre is not"):
            source.hint_targets(x, *given, bound)
    assert drawn(ledger, 1) == 0


@pytest.mark.parametrize("groups", [[0, 0, 2, 2], [0, 1], [0.0, 1.0, 1.0, 0.0]])
def test_groups_that_do_not_fit_are_refused_before_anything_is_drawn(ensemble, x, groups):
    source = noise_free(replace(PLAN, chunk=1), ensemble)
    with pytest.raises(BadInput, match="without gaps"):
        source.group_labels(x[:4], groups)
    assert source.asked == (0, 0)


def test_hints_stop_cleanly_too(split, ensemble, hinted, ledger):
    x, centre, hints, bound = hinted
    votes, (mechanism, _) = HINTED.wishes(NOISE)
    source = EnsembleSource(HINTED, ensemble, paid(ledger, split, [votes, (mechanism, 30)]))
    found = source.hint_targets(x, centre, hints, bound)
    assert (found.shape, source.exhausted, drawn(ledger, 1)) == ((30, 10), True, 30)


def test_a_plan_without_hints_gives_none(ensemble, hinted):
    assert noise_free(PLAN, ensemble).hint_targets(*hinted) is None


def test_the_bound_cannot_come_from_sensitive_records(split, ensemble, hinted):
    """The broken twin, in each form it could take: it is refused by its type."""
    x, centre, hints, bound = hinted
    assert isinstance(bound, PublicBound)
    assert (bound.steps, bound.origin) == (1024, "a quarter of the digits")
    rest = (x, centre, hints)
    for sensitive in (split.sensitive, ensemble, split.sensitive.x):
        with pytest.raises(BadInput, match="not known to be public"):
            public_bound(HINTED, sensitive, split.sensitive.y, *rest, engine=SERIAL)
    # Teachers hand out Bounded sums alone, and no length can be read off one.
    released = ensemble.hint_residuals(x, centre, hints, 1, 1024)
    with pytest.raises(BadInput, match="give no bound"):
        adaptive_bound(released, steps=1024, origin="sensitive")
    source = noise_free(HINTED, ensemble)
    for wrong in (bound.value, 0.5, replace(bound, steps=2048)):
        with pytest.raises(BadInput, match="no public bound"):
            source.hint_targets(*rest, wrong)


def test_the_bound_is_the_median_of_the_stand_ins(split, hinted):
    """And it does not change when sensitive records do: it never sees them."""
    x, centre, hints, bound = hinted
    public = split.public
    few = replace(TEACHERS, count=4)
    stand_ins = Ensemble.train(public, None, few, engine=SERIAL)
    norms = [np.linalg.norm(own - centre, axis=1) for own in aligned(stand_ins, x, hints)]
    assert float(bound.value) == pytest.approx(np.median(norms), rel=0.2)
