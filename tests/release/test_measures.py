"""Shares of right answers and their intervals: exact formulas, and how often they hold.

Coverage is counted in 6,000 made-up tests each. The intervals promise 95 %; such a share comes out
below 93.6 % by chance in less than one case in a million.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from stillroom.release.measures import QUANTILE, SURELY, Count, mean, measures_of, share
from stillroom.release.sections.evaluation import accuracy_of

DRAWS = 6000
LEAST = 0.936


def test_exact_counts_get_wilsons_interval_with_continuity_correction():
    """By bisection on the inequality itself, and at most a little narrower than the exact one."""
    for hits, total in ((0, 7), (1, 7), (7, 7), (45, 50), (81, 263), (999, 1000)):
        told = share(Count(hits, 1), Count(total - hits, 1), None)

        def inside(p, hits=hits, total=total):
            off = max(0.0, abs(hits - p * total) - 0.5)
            return off <= QUANTILE * math.sqrt(total * p * (1 - p)) + 1e-12

        grid = np.linspace(0, 1, 100_001)
        held = [p for p in grid if inside(p)]
        low = 0 if hits == 0 else min(held)
        high = 1 if hits == total else max(held)
        assert told["low"] == pytest.approx(low, abs=1.2e-4)
        assert told["high"] == pytest.approx(high, abs=1.2e-4)
        assert told["low"] <= told["value"] <= told["high"]
        pearson = beta.ppf(0.025, hits, total - hits + 1) if hits else 0
        assert told["low"] <= pearson + 0.01


def drawn(rng, table, sigma):
    """Tables that a test could have counted: the rows' sizes are fixed, their answers drawn."""
    rows = [rng.multinomial(sum(row), np.array(row) / sum(row), size=DRAWS) for row in table]
    exact = np.stack(rows, axis=1)
    if sigma is None:
        return exact
    return exact + np.rint(rng.normal(0, float(sigma), exact.shape)).astype(np.int64)


TABLES = {
    "a rare class": [[980, 20], [10, 90]],
    "nearly perfect": [[999, 1], [2, 198]],
    "three classes": [[300, 20, 5], [30, 250, 20], [2, 8, 190]],
    "ten classes": [[150 if i == j else 3 for j in range(10)] for i in range(10)],
}


@pytest.mark.parametrize("sigma", [None, Fraction(2), Fraction(6)], ids=["exact", "2", "6"])
@pytest.mark.parametrize("name", TABLES)
def test_intervals_hold_as_often_as_they_say(name, sigma):
    """For every measure that is told: of the first class, of the last one, and of all."""
    table = TABLES[name]
    classes = [str(i) for i in range(len(table))]
    rows = [np.array(row) / sum(row) for row in table]
    true = {"sensitivity": rows[-1][-1], "balanced": np.mean([r[i] for i, r in enumerate(rows)])}
    own = sum(sum(row) for row in table)
    true["accuracy"] = sum(row[i] for i, row in enumerate(table)) / own
    others = table[:-1]
    true["specificity"] = 1 - sum(row[-1] for row in others) / sum(map(sum, others))
    held = {name: [] for name in true}
    for one in drawn(np.random.default_rng(7), table, sigma)[:: 1 if len(table) < 5 else 2]:
        told = measures_of(one.tolist(), classes, sigma)
        last = told["classes"][-1]
        found = {
            "sensitivity": last["sensitivity"],
            "specificity": last["specificity"],
            "balanced": told["balanced_accuracy"],
            "accuracy": told["accuracy"],
        }
        for measure, interval in found.items():
            if interval is not None:
                held[measure].append(interval["low"] <= true[measure] <= interval["high"])
    told_at_all = {measure: shares for measure, shares in held.items() if len(shares) > 1000}
    assert "accuracy" in told_at_all
    for measure, shares in told_at_all.items():
        assert np.mean(shares) >= LEAST, measure


def test_an_interval_without_the_noise_would_be_caught():
    """As above for a table at sigma 6, were its counts taken for exact."""
    table, held = TABLES["a rare class"], []
    for one in drawn(np.random.default_rng(7), table, Fraction(6))[:3000]:
        told = measures_of(np.maximum(one, 0).tolist(), ["a", "b"], None)["classes"][1]
        held.append(told["sensitivity"]["low"] <= 0.9 <= told["sensitivity"]["high"])
    assert np.mean(held) < 0.9


@pytest.mark.parametrize("alike", [2, 5])
def test_records_of_one_person_count_as_one(alike):
    """Persons whose records are all the same, the worst there is: the intervals still hold."""
    rng = np.random.default_rng(8)
    hits = alike * rng.binomial(60, 0.8, size=DRAWS)
    for counted, least, most in ((alike, LEAST, 1.0), (1, 0.0, 0.93)):
        told = [share(Count(int(h), 1), Count(60 * alike - int(h), 1), None, counted) for h in hits]
        assert least <= np.mean([one["low"] <= 0.8 <= one["high"] for one in told]) <= most


def test_shares_need_a_total_beyond_its_noise():
    """The rule of the accuracy, row by row: 5 times the deviation of the sum of its cells."""
    sigma = Fraction(6)
    least = SURELY * 6 * math.sqrt(3)  # of a row with three cells
    told = measures_of([[51, 0, 0], [52, 0, 0], [900, 0, 0]], ["a", "b", "c"], sigma)
    assert [one["sensitivity"] is not None for one in told["classes"]] == [False, True, True]
    assert 51 < least < 52
    assert told["balanced_accuracy"] is None
    # All that are not "c" lie in two rows, of six cells: 5 * 6 * sqrt(6) is 73.5.
    assert told["classes"][2]["specificity"] is not None
    few = measures_of([[30, 0, 0], [43, 0, 0], [900, 0, 0]], ["a", "b", "c"], sigma)
    assert few["classes"][2]["specificity"] is None
    nothing = measures_of([[0, 0], [0, 5]], ["a", "b"], None, positive="a")
    assert nothing["sensitivity"] is None
    assert nothing["specificity"]["value"] == 1


@pytest.mark.parametrize("total", [89, 90, 91, 5000])
def test_the_accuracy_is_told_with_its_interval_or_not_at_all(total):
    table = [[total - 8, 1, 1], [1, 1, 1], [1, 1, 1]]
    told = measures_of(table, ["a", "b", "c"], Fraction(6))["accuracy"]
    accuracy = accuracy_of(table, Fraction(6))
    assert (told is None) == (accuracy is None) == (total <= 90)
    if told is not None:
        assert told["value"] == round(accuracy, 4)


def test_the_mean_of_shares_is_none_where_one_is():
    one = {"value": 0.5, "low": 0.4, "high": 0.7}
    assert mean([one, None]) is None
    assert mean([]) is None
    told = mean([one] * 4)
    assert told == {"value": 0.5, "low": 0.45, "high": 0.6}


def test_counts_below_zero_are_the_end_of_the_scale():
    told = share(Count(-9, 1), Count(700, 1), Fraction(6))
    assert (told["value"], told["low"]) == (0.0, 0.0)
    assert 0 < told["high"] < 0.05
    whole = share(Count(709, 1), Count(-9, 1), Fraction(6))
    assert (whole["value"], whole["high"]) == (1.0, 1.0)
