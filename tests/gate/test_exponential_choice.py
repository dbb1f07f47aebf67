"""The exponential mechanism on a grid: scores, neighbours, and what it refuses."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.gate import Budget, ExponentialChoice, Gate, Ledger, mechanism_from_json
from stillroom.gate.accounting import price
from stillroom.gate.entropy import SeededEntropy
from stillroom.gate.events import event_from_json
from stillroom.gate.mechanisms import exponential_choice
from stillroom.vocabulary import RECORD, Bounded, Pair

SMALL = ExponentialChoice(models=3, grid=5, window=(4, 3, 1), steepness=Fraction(1, 8))
ENTITY = Pair.parse("entity/change")


def by_hand(mechanism, row):
    window = mechanism.window
    return [
        sum(window[abs(t - e)] if abs(t - e) < len(window) else 0 for e in row)
        for t in range(mechanism.grid)
    ]


@pytest.mark.parametrize("window", [(4, 3, 1), (1,), (2**40, 2**39 + 1)])
def test_scores_are_the_windows_sum(window):
    mechanism = ExponentialChoice(4, 6, window, Fraction(1, 2))
    rows = np.random.default_rng(0).integers(0, 6, (50, 4))
    scores = mechanism.scores(rows)
    assert scores.astype(np.int64).tolist() == [by_hand(mechanism, row) for row in rows.tolist()]


def test_chunks_are_no_part_of_the_law(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 5, (70, 3))
    monkeypatch.setattr(exponential_choice, "TOGETHER", 15)
    assert SMALL.draw(SeededEntropy(1), rows, 70).shape == (70,)
    assert SMALL.draw(SeededEntropy(1), rows[:0], 0).shape == (0,)


def test_no_neighbour_is_further_than_epsilon():
    """Every row and every change of one entry: log-ratios within epsilon, and its range too."""
    rows = np.array(list(product(range(5), repeat=3)))
    logs = np.log(SMALL.law(rows)).reshape(5, 5, 5, 5)
    worst = widest = 0.0
    for place in range(3):
        moved = np.moveaxis(logs, place, 0)
        ratios = moved[:, None] - moved[None, :]
        worst = max(worst, float(np.abs(ratios).max()))
        widest = max(widest, float(np.ptp(ratios, axis=-1).max()))
    epsilon = float(SMALL.epsilon)
    assert worst <= widest <= epsilon + 1e-12
    assert widest == pytest.approx(epsilon)


@pytest.mark.parametrize("printed", [True, False])
def test_the_printed_sensitivity_is_found(printed):
    """1/(M(M-1)) in place of w_max/M: the twin's log-ratios leave the range that it states."""
    models, width = 51, 0.3829249
    stated = 1 / (models * (models - 1)) if printed else width / models
    mechanism = ExponentialChoice(
        models, 41, (1000,), Fraction(1 / (2 * stated)) * Fraction(width) / (models * 1000)
    )
    row = [0] * 25 + [40] * 25
    logs = np.log(mechanism.law(np.array([[*row, 0], [*row, 40]])))
    loss = float(np.abs(logs[0] - logs[1]).max())
    assert (loss > 1) == printed


def test_the_price_is_that_of_bounded_range():
    ten = price(SMALL.lines(10), RECORD)
    rho = 10 * float(SMALL.epsilon) ** 2 / 8
    assert ten.curve[0] == pytest.approx(2 * rho)
    assert ten.pld(1e-5) is None
    assert ten.epsilon(1e-5) == ten.rdp(1e-5)


def test_a_record_in_all_models_costs_as_many_entries():
    shared = ExponentialChoice(3, 5, (4, 3, 1), Fraction(1, 8), moved=3)
    one, three = price(SMALL.lines(1), RECORD), price(shared.lines(1), RECORD)
    assert three.curve[0] > 2 * one.curve[0]
    assert price(shared.lines(1), ENTITY).curve == one.curve


def test_an_entry_outside_the_grid_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=["a"], purpose="benchmark")
    ledger.set_budget(Budget(50, 1e-5), reason="a test")
    way = Gate(ledger, ids=["a"]).reserve(SMALL, 2)
    for value in ([[0, 1, 5]], [[-1, 0, 0]], [[0, 1]]):
        with pytest.raises(BadInput):
            way.answer(b"x", lambda value=value: Bounded(np.array(value), SMALL.sensitivity))
    assert not list(ledger.store.rows("kind = 'draw'"))


@pytest.mark.parametrize(
    "numbers",
    [
        {"models": 0},
        {"grid": 1},
        {"grid": 2**13},
        {"window": ()},
        {"window": (0, 0)},
        {"window": (1,) * 6},
        {"window": (-1, 2)},
        {"window": (1.5,)},
        {"window": (2**52,)},
        {"steepness": 0},
        {"steepness": Fraction(-1)},
        {"steepness": Fraction(10**7)},
        {"moved": 4},
        {"moved": 0},
    ],
)
def test_numbers_out_of_range(numbers):
    given = {"models": 3, "grid": 5, "window": (4, 1), "steepness": Fraction(1, 8), **numbers}
    with pytest.raises(BadInput):
        ExponentialChoice(**given)


def test_descriptions_come_back():
    told = SMALL.describe()
    assert mechanism_from_json(json.loads(json.dumps(told))) == SMALL
    (event, count) = SMALL.lines(7)[0]
    assert (event_from_json(event.to_json()), count) == (event, 7)
