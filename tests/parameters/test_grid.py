"""The public grid: the batched score equals the direct formula, to a stated tolerance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erf

from stillroom.errors import BadInput
from stillroom.gate import ExponentialChoice
from stillroom.methods.pg.claims import printed_sensitivity, true_sensitivity
from stillroom.parameters import ParameterGrid
from stillroom.parameters.grid import LEVELS

GRIDS = [
    ParameterGrid(1.0, 41, 0.1),
    ParameterGrid(0.5, 128, 0.02, 0.05),
    ParameterGrid(2.0, 9, 1.5, 0.3),
]


def direct(values, grid):
    """Eq. 3 by erf differences, for values that stand where they stand."""
    half = (grid.width or grid.bandwidth) / 2
    away = (grid.values[:, None] - values[None, :]) / (np.sqrt(2) * grid.bandwidth)
    reach = half / (np.sqrt(2) * grid.bandwidth)
    return ((erf(away + reach) - erf(away - reach)) / 2).mean(axis=1)


@pytest.mark.parametrize("grid", GRIDS)
def test_scores_are_those_of_the_direct_formula(grid):
    """Rounding to whole units costs half a unit; bringing values to the grid half a step.

    A window's mass changes by at most width * max|phi'| / b^2 per unit of distance, and max|phi'|
    is 0.242, so half a step costs at most half a step times that.
    """
    rng = np.random.default_rng(3)
    values = np.clip(rng.normal(0.1, 0.3, (20, 50)), -grid.radius, grid.radius)
    choice = ExponentialChoice(50, grid.points, grid.window, Fraction(1, 4))
    units = choice.scores(grid.nearest(values)) * (grid.highest / (LEVELS * 50))
    wanted = np.stack([direct(row, grid) for row in values])
    rounding = grid.highest / (2 * LEVELS)
    moving = grid.step / 2 * (grid.width or grid.bandwidth) * 0.242 / grid.bandwidth**2
    assert np.abs(units - wanted).max() <= rounding + moving
    on_grid = np.stack([direct(grid.values[grid.nearest(row)], grid) for row in values])
    assert np.abs(units - on_grid).max() <= rounding + 1e-12


@pytest.mark.parametrize("grid", GRIDS)
def test_the_highest_score_is_that_of_its_own_point(grid):
    assert grid.window[0] == LEVELS == max(grid.window)
    assert all(a >= b > 0 for a, b in zip(grid.window, grid.window[1:], strict=False))
    assert grid.highest == pytest.approx(
        erf((grid.width or grid.bandwidth) / grid.bandwidth / 8**0.5)
    )


def test_sensitivities_of_the_paper_and_of_the_truth():
    grid = ParameterGrid(1.0, 401, 0.1)
    assert true_sensitivity(grid, 50) == pytest.approx(0.007658, abs=5e-7)
    assert printed_sensitivity(50) == pytest.approx(0.000408, abs=5e-7)


def test_every_value_has_a_point_and_is_looked_at_alone():
    grid = ParameterGrid(1.0, 5, 0.3)
    values = np.array([-9.0, -0.26, 0.0, 0.24, 0.26, 1e300, np.inf, -np.inf, np.nan])
    points = grid.nearest(values)
    assert points.tolist() == [0, 1, 2, 2, 3, 4, 2, 2, 2]
    assert [int(grid.nearest(values[i : i + 1])[0]) for i in range(len(values))] == points.tolist()


@pytest.mark.parametrize(
    "numbers",
    [
        {"radius": 0},
        {"radius": float("inf")},
        {"points": 1},
        {"points": 4097},
        {"points": 2.5},
        {"bandwidth": 0},
        {"width": -1.0},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput):
        ParameterGrid(**{"radius": 1.0, "points": 5, "bandwidth": 0.3, **numbers})
