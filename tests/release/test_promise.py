"""The sentence that a card opens with: from epsilon and delta, rounded up, for all units."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stillroom.release.promise import by_prior, in_three, per_cent, promise, surest


def certificate(unit="record", epsilon=2.0, delta=1e-5, status="valid"):
    return {"status": status, "headline": {"unit": unit, "epsilon": epsilon, "delta": delta}}


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1, 2, 5, 10])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_no_guess_is_right_more_often(epsilon, delta):
    """The pair of worlds that an (epsilon, delta) promise allows, at its worst, by enumeration.

    Kairouz, Oh and Viswanath 2015: four answers, of which two give the world away.
    """
    large, small = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    used, unused = np.array([delta, large, small, 0]), np.array([0, small, large, delta])
    assert used.sum() == pytest.approx(1)
    best = 0.5 * np.maximum(used, unused).sum()
    assert best <= surest(epsilon, delta) + 1e-12
    # And it is no larger than it must be.
    assert surest(epsilon, delta) - best <= delta
    for prior in (0.01, 0.1, 0.9):
        after = prior * used / np.maximum(prior * used + (1 - prior) * unused, 1e-300)
        likely = used + unused > 3 * delta  # what tells all has a chance of delta
        assert after[likely].max() <= surest(epsilon, delta, prior) + 1e-12


@pytest.mark.parametrize(
    ("epsilon", "told"),
    [
        (0.0, "51"),
        (0.1, "53"),
        (1, "74"),
        (2, "89"),
        (3, "96"),
        (4, "99"),
        (5, "99.4"),
        (8, "99.97"),
        (10, "99.997"),
    ],
)
def test_the_figure_is_rounded_up(epsilon, told):
    assert per_cent(surest(epsilon, 1e-5)) == told
    assert float(told) / 100 >= surest(epsilon, 1e-5)


def test_what_is_as_good_as_certain_has_no_figure():
    assert per_cent(surest(40, 1e-5)) is None
    assert per_cent(1.0) is None
    assert promise(certificate(epsilon=40.0)).startswith("Next to nothing is promised")


@pytest.mark.parametrize("yours", [True, False])
@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("record", "record was used"),
        ("person", "whose records were used"),
        ("entity", "participant"),
        ("label", "has one class, and not another"),
    ],
)
def test_every_unit_has_its_words(unit, words, yours):
    told = promise(certificate(unit), yours=yours)
    assert words in told
    assert "at most 89 % sure" in told
    assert ("your" in told or "you " in told) == (yours and unit != "entity")
    assert told.count(".") == 1
    assert "".join(in_three(told)) == told
    assert in_three(told)[1] == "at most 89 % sure"
    for bad in (certificate(unit, "infinite"), certificate(unit, status="void")):
        nothing = promise(bad, yours=yours)
        assert nothing.startswith("Nothing is promised")
        assert words in nothing
        assert "%" not in nothing
        assert in_three(nothing) == ("", nothing, "")


def test_other_priors_are_told_beside_it():
    assert by_prior(certificate()) == [("1", "7"), ("10", "46"), ("50", "89"), ("90", "99")]
    assert by_prior(certificate(epsilon="infinite"))[0] == ("1", "100")
