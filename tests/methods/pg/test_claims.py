"""PG, PGP and PGC: what the paper claims, and the cases that refute it (theory.md#pg)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from stillroom.gate import ExponentialChoice
from stillroom.gate.accounting import price
from stillroom.methods.pg import PG
from stillroom.methods.pg.claims import claimed_epsilon, steepness, true_epsilon
from stillroom.methods.registry import parse
from stillroom.parameters import ParameterGrid
from stillroom.parameters.sizes import SIZES
from stillroom.pipeline.pricing import price as priced
from stillroom.sources import Facts
from stillroom.vocabulary import RECORD, Pair

ONE = Fraction(1)
GRID = ParameterGrid(1.0, 401, 0.1)
DELTA = 1e-5


def choice(sensitivity, models=51, grid=GRID, epsilon=ONE):
    steep = steepness(grid, models, epsilon, sensitivity)
    return ExponentialChoice(models, grid.points, grid.window, steep)


def laws(mechanism, grid, at):
    """25 models here and 25 there; the last one changes sides."""
    low, high = grid.nearest(np.array([-at, at]))
    row = [low] * 25 + [high] * 25
    return mechanism.law(np.array([[*row, low], [*row, high]]))


@pytest.mark.parametrize(("sensitivity", "loss"), [("printed", 9.57), ("true", 0.50)])
def test_one_weight_with_the_printed_sensitivity(sensitivity, loss):
    first, second = laws(choice(sensitivity), GRID, 0.5)
    assert np.abs(np.log(first / second)).max() == pytest.approx(loss, abs=0.005)


def least_epsilon(count, one, other, delta):
    """The smallest epsilon that both laws of a count allow at delta, by bisection."""
    k = np.arange(count + 1)
    first, second = binom.pmf(k, count, one), binom.pmf(k, count, other)
    low, high = 0.0, 1000.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        beyond = np.maximum(first - np.exp(min(middle, 700)) * second, 0).sum()
        low, high = (middle, high) if beyond > delta else (low, middle)
    return low


@pytest.mark.parametrize(("weights", "bound"), [(10, 4.79), (50, 18.0), (100, 29.5), (1000, 174)])
def test_slices_do_not_compose_in_parallel(weights, bound):
    """How many of the weights are above 0 tells on which side the model was; claimed: 1."""
    first, second = laws(choice("true"), GRID, 0.5)
    one, other = first[201:].sum(), second[201:].sum()
    assert sorted([one, other]) == pytest.approx([0.383, 0.617], abs=1e-3)
    least = least_epsilon(weights, max(one, other), min(one, other), DELTA)
    assert least == pytest.approx(bound, rel=0.005)
    cost = price(choice("true").lines(weights), RECORD).epsilon(DELTA)
    assert least < cost
    if weights == 100:
        assert cost == pytest.approx(35.1, abs=0.05)


@pytest.mark.parametrize(
    ("kept_bits", "true", "claimed"),
    [(8, 0.4999, None), (4, 0.486, 0.25), (2, 0.479, 0.167), (1, 0.479, 0.143)],
)
def test_truncation_divides_nothing(kept_bits, true, claimed):
    """A weight of 8 bits with modes at a fifth and four fifths of its range."""
    grid = ParameterGrid(0.5, 256, 0.05)
    both = laws(choice("true", grid=grid), grid, 0.3).reshape(2, 2**kept_bits, -1).sum(axis=2)
    found = np.abs(np.log(both[0] / both[1])).max()
    assert found == pytest.approx(true, abs=6e-4)
    if claimed is not None:
        assert 1 / (8 - kept_bits) == pytest.approx(claimed, abs=5e-4)
        assert found > claimed


# -- what a whole network costs ---------------------------------------------------------------

PLAIN = """
method = "pg"
source = "plain"
mode = "as-published"
purpose = "benchmark"
[data]
source = "mnist"
test_is_public = true
declared_size = 60000
[collection]
model = "{network}"
models = 50
shard_cap = 60000
[pg]
publisher = "{publisher}"
[published]
epsilon = {epsilon}
{more}
[privacy]
epsilon = 10
"""
SOUND = 'grid = "public"\nsensitivity = "true"\nsharing = "disjoint"\n'


def recipe(network="mnist-net", publisher="pg", epsilon=1, more=""):
    text = PLAIN.format(network=network, publisher=publisher, epsilon=epsilon, more=more)
    return parse(text)


@pytest.mark.parametrize(
    ("network", "shape", "epsilon", "true"),
    [
        ("mnist-net", (1, 28, 28), 1, 1.53e5),
        ("cifar-net", (3, 32, 32), 2, 6.3e5),
        ("svhn-net", (3, 32, 32), 1, 4.1e4),
    ],
)
def test_a_whole_network_on_disjoint_shards(network, shape, epsilon, true):
    """The ledger keeps to whole orders, and says up to twice as much of so many weights."""
    text, weights = recipe(network, epsilon=epsilon, more=SOUND), SIZES[network](shape, 10)
    assert true_epsilon(text, weights, DELTA) == pytest.approx(true, rel=0.01)
    ((mechanism, _),) = priced(text).wishes.values()
    charged = price(mechanism.lines(weights), RECORD).epsilon(DELTA)
    assert true_epsilon(text, weights, DELTA) <= charged <= 2 * true
    assert claimed_epsilon(text) == epsilon
    assert f"{true_epsilon(text, weights, DELTA):,.0f}" in claim_status(text, shape)


def claim_status(text, shape):
    channels, height, width = shape
    records = (height, width) if channels == 1 else (height, width, channels)
    facts = Facts(records, tuple(map(str, range(10))))
    return PG.plan(text, facts).claim.status


def test_a_record_in_all_models_but_one_costs_their_square():
    shared = recipe(more='grid = "public"\nsensitivity = "true"\n')
    ((mechanism, count),) = priced(shared).wishes.values()
    assert mechanism.moved == 49
    alone = price(mechanism.lines(count), Pair.parse("entity/change")).epsilon(DELTA)
    together = price(mechanism.lines(count), RECORD).epsilon(DELTA)
    assert together > 15 * alone


def test_an_observed_grid_is_infinite():
    assert priced(recipe()).epsilon == float("inf")
    assert priced(recipe(more=SOUND)).epsilon < 1e7


@pytest.mark.parametrize(
    ("publisher", "more", "claimed"),
    [
        ("pg", "", 1.0),
        ("pgp", "cluster_epsilon = 1\nresidual_epsilon = 2", 3.0),
        ("pgp", 'cluster_epsilon = "1/4"\nresidual_epsilon = "1/4"', 1.0),
        ("pgc", "points = 256\nresidual_bits = 1", 1 / 7),
        ("pgc", "points = 256\nresidual_bits = 8", 1.0),
    ],
)
def test_corollaries(publisher, more, claimed):
    assert claimed_epsilon(recipe(publisher=publisher, more=more)) == pytest.approx(claimed)


def test_pgp_is_infinite_whatever_its_grid():
    assert priced(recipe(publisher="pgp", more=SOUND)).epsilon == float("inf")


def test_compression_changes_no_price():
    before, after = (priced(recipe(publisher=p, more=SOUND)) for p in ("pg", "pgc"))
    assert before.epsilon == after.epsilon
    assert before.wishes == after.wishes
