"""Prices: never NaN, never negative, never optimistic."""

from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.errors import NumericalDoubt
from stillroom.gate import (
    ConfidentVotes,
    GaussianSum,
    LaplaceCounts,
    NoisyCounts,
    NoisyVotes,
    RandomisedResponse,
    loss_distributions,
    renyi,
)
from stillroom.gate import accounting as accounting_module
from stillroom.gate.accounting import DELTAS, fold, price
from stillroom.gate.events import GaussianEvent, NonPrivateEvent, RandomisedResponseEvent
from stillroom.gate.loss_distributions import gaussian_part
from stillroom.gate.rounding import down, root_down, shown, up
from stillroom.vocabulary import RECORD, Norm, Pair, Relation, Sensitivity, Unit

CHANGE = Pair(Unit.RECORD, Relation.CHANGE)


def exact_votes_epsilon(sigma: int, moves: int, delta: float) -> float:
    """The least epsilon of `moves` unit moves, from the law of their sum alone.

    The losses add up to (X + moves/2) / sigma^2 with X a sum of discrete Gaussians, which for
    sigma >= 3 is a discrete Gaussian of variance moves sigma^2 up to a factor 1 +- 1e-70.
    """
    variance = moves * sigma**2
    reach = int(12 * math.sqrt(variance))
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    log_mass = -(x**2) / (2 * variance) - 0.5 * math.log(2 * math.pi * variance)
    loss = (x + moves / 2) / sigma**2

    def true_delta(epsilon):
        over = slice(np.searchsorted(loss, epsilon, side="right"), None)
        return (np.exp(log_mass[over]) * -np.expm1(epsilon - loss[over])).sum()

    low, high = 0.0, 200.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if true_delta(middle) <= delta else (middle, high)
    return low


GRID = [(40, 4000), (200, 20_000), (20, 2000), (1000, 200), (300, 200_000), (5, 10)]


@pytest.mark.parametrize(("sigma", "moves"), GRID)
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8, 1e-10, 1e-12])
def test_price_is_never_below_the_exact_value(sigma, moves, delta):
    lines = NoisyVotes(250, 10, sigma).lines(moves // 2)
    exact = exact_votes_epsilon(sigma, moves, delta)
    certified = price(lines, RECORD).epsilon(delta)
    assert exact <= certified <= exact * 1.15 + 0.02


@pytest.mark.parametrize(
    ("sigma", "moves", "delta"), [(200, 20_000, 1e-10), (40, 4000, 1e-10), (300, 200_000, 1e-9)]
)
def test_the_fourier_allowance_is_enough_and_not_superfluous(sigma, moves, delta, monkeypatch):
    """On a processor that loses all the delta it may, the allowance alone keeps the price true.

    How much the transforms lose differs from one processor to the next, so the loss is made here:
    every delta comes out too small by seven eighths of 2^-48 a composition. The last eighth is for
    what this processor loses itself (tests/privacy/test_fourier_error.py).
    """
    lost = 7 / 8 * moves * 2.0**-48
    honest = loss_distributions.Composed.epsilon
    monkeypatch.setattr(
        loss_distributions.Composed, "epsilon", lambda law, delta: honest(law, delta + lost)
    )
    for cached in ("_composed", "_guarantee"):  # no other test may meet these prices
        monkeypatch.setattr(
            accounting_module, cached, getattr(accounting_module, cached).__wrapped__
        )
    lines = NoisyVotes(250, 10, sigma).lines(moves // 2)
    exact = exact_votes_epsilon(sigma, moves, delta)
    assert exact <= price(lines, RECORD).epsilon(delta) <= exact + 0.05
    monkeypatch.setattr(loss_distributions, "FOURIER_ERROR", 0.0)
    assert price(lines, RECORD).epsilon(delta) < exact - 0.01


def discrete(sigma: float, centre: int, reach: int) -> dict[int, float]:
    x = np.arange(-reach, reach + 1)
    weights = -((x - centre) ** 2) / (2 * sigma**2)
    return dict(zip(x.tolist(), (weights - np.logaddexp.reduce(weights)).tolist(), strict=True))


def mixture(rate: float, sigma: float, centre: int, reach: int) -> dict[int, float]:
    absent, present = discrete(sigma, 0, reach), discrete(sigma, centre, reach)
    if rate == 1:
        return present
    return {
        x: float(np.logaddexp(math.log1p(-rate) + absent[x], math.log(rate) + present[x]))
        for x in absent
    }


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 4), Fraction(1, 50)])
@pytest.mark.parametrize(
    ("sigma", "radius"),
    [
        (3, 1),
        pytest.param(3, 4, marks=pytest.mark.slow),
        pytest.param(5, 2, marks=pytest.mark.slow),
        (8, 8),
    ],
)
@pytest.mark.parametrize("steps", [1, 20])
@pytest.mark.parametrize("pair", [RECORD, CHANGE], ids=str)
def test_e3_covers_the_discrete_law(rate, sigma, radius, steps, pair):
    """The continuous bound is no less than an optimistic PLD of the discrete law itself."""
    lines = GaussianSum(sigma, width=1, squared_norm=radius**2, rate=rate).lines(steps)
    reach = 30 * sigma
    present = mixture(float(rate), sigma, radius, reach)
    other = mixture(float(rate), sigma, -radius if pair is CHANGE else 0, reach)
    direct = pld.from_two_probability_mass_functions(
        other,
        present,
        pessimistic_estimate=False,
        value_discretization_interval=1e-3,
        symmetric=False,
    ).self_compose(steps)
    for delta in (1e-3, 1e-5):
        assert price(lines, pair).epsilon(delta) >= direct.get_epsilon_for_delta(delta) - 1e-9


@pytest.mark.parametrize("multiplier", [0.3, 1.391, 7.03, 500.0])
def test_all_points_at_once_are_the_points_one_by_one(multiplier):
    known = pld.from_gaussian_mechanism(multiplier, value_discretization_interval=1e-4)
    found = gaussian_part(multiplier, value_discretization_interval=1e-4)
    for delta in (1e-3, 1e-5, 1e-10):
        assert found.get_epsilon_for_delta(delta) == known.get_epsilon_for_delta(delta)
    for epsilon in (0.01, 1.0, 5.0):
        assert found.get_delta_for_epsilon(epsilon) == known.get_delta_for_epsilon(epsilon)


def test_e3_is_tight_on_a_fine_grid():
    lines = GaussianSum(1000, width=1, squared_norm=1000**2).lines(4)
    exact = gaussian_mechanism.get_epsilon_gaussian(0.5, 1e-5)
    assert exact <= price(lines, RECORD).epsilon(1e-5) <= exact * 1.001


@pytest.mark.parametrize(("rate", "multiplier", "steps"), [(0.01, 1, 1000), (0.5, 4, 60)])
def test_renyi_agrees_with_the_library(rate, multiplier, steps):
    curve = renyi.times(
        renyi.sampled_gaussian(float(Fraction(rate)), multiplier, change=False), steps
    )
    theirs = RdpAccountant(orders=renyi.ORDERS).compose(
        dp_accounting.PoissonSampledDpEvent(
            float(Fraction(rate)), dp_accounting.GaussianDpEvent(multiplier)
        ),
        steps,
    )
    for delta in (1e-5, 1e-8):
        assert renyi.epsilon(curve, delta) == pytest.approx(theirs.get_epsilon(delta), rel=1e-8)


@pytest.mark.parametrize(("rate", "multiplier"), [(0.01, 1.0), (0.5, 3.0)])
def test_renyi_of_a_change_covers_the_integral(rate, multiplier):
    """The triangle bound against the divergence of the two mixtures, integrated."""
    x = np.linspace(-60, 60, 400_001)
    step = x[1] - x[0]

    def log_mixture(centre):
        normal = lambda c: -((x - c) ** 2) / (2 * multiplier**2)  # noqa: E731
        return np.logaddexp(math.log1p(-rate) + normal(0), math.log(rate) + normal(centre))

    p, q = log_mixture(1.0), log_mixture(-1.0)
    p, q = p - np.log(np.exp(p).sum() * step), q - np.log(np.exp(q).sum() * step)
    curve = renyi.sampled_gaussian(rate, multiplier, change=True)
    for order, loss in list(zip(renyi.ORDERS, curve, strict=True))[:12]:
        true = math.log(np.exp(order * p + (1 - order) * q).sum() * step) / (order - 1)
        assert loss >= true


def test_pure_curve_is_binary_response():
    epsilon = 1.3
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    for order, loss in zip(renyi.ORDERS[:20], renyi.pure(epsilon), strict=False):
        true = math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order))
        assert loss == pytest.approx(true / (order - 1), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    sigma=st.fractions(Fraction(1, 10), 5000, max_denominator=1000),
    count=st.integers(1, 10_000),
    delta=st.floats(1e-12, 0.5),
)
def test_never_nan_never_negative(sigma, count, delta):
    mechanisms = [NoisyVotes(5, 3, sigma), NoisyCounts(sigma, 2), LaplaceCounts(sigma, 2)]
    for mechanism in mechanisms:
        figures = price(mechanism.lines(count), RECORD).guarantee(delta)
        for epsilon in (figures.epsilon, *figures.by_accountant.values()):
            assert epsilon is None or epsilon >= 0


@settings(max_examples=25, deadline=None)
@given(
    sigma=st.integers(3, 400),
    count=st.integers(1, 500),
    delta=st.sampled_from(DELTAS),
)
def test_more_answers_cost_more_and_more_noise_costs_less(sigma, count, delta):
    base = price(NoisyVotes(5, 3, sigma).lines(count), RECORD).epsilon(delta)
    more = price(NoisyVotes(5, 3, sigma).lines(2 * count), RECORD).epsilon(delta)
    quieter = price(NoisyVotes(5, 3, 2 * sigma).lines(count), RECORD).epsilon(delta)
    assert quieter <= base <= more


def test_a_pair_without_a_proof_is_infinite():
    person = Pair(Unit.PERSON, Relation.ADD_OR_REMOVE)
    lines = NoisyVotes(5, 3, 100).lines(1)
    assert price(lines, person).epsilon(1e-5) == math.inf
    assert math.isfinite(price(NoisyVotes(5, 3, 100, Unit.PERSON).lines(1), person).epsilon(1e-5))


CHANGED_ENTITY = Pair.parse("entity/change")
ONE_CHOICE = Sensitivity.uniform(Norm.CHOICES, 1, Unit.ENTITY)


@pytest.mark.parametrize(
    ("lines", "pair"),
    [
        (LaplaceCounts("0.001", 1).lines(3), RECORD),
        (RandomisedResponse(3, 1 - Fraction(1, 10**120)).lines(4), CHANGED_ENTITY),
        # Beyond what any mechanism or file may say.
        ([(RandomisedResponseEvent(3, 1 - Fraction(1, 10**400), ONE_CHOICE), 3)], CHANGED_ENTITY),
        (NoisyCounts("0.001", 1).lines(3), RECORD),
    ],
)
def test_next_to_no_noise_costs_a_lot_and_crashes_nothing(lines, pair):
    assert price(lines, pair).epsilon(1e-5) > 1000


def test_a_non_private_event_makes_everything_infinite():
    lines = [*NoisyVotes(5, 3, 100).lines(1), (NonPrivateEvent("raw mean"), 1)]
    figures = price(lines, RECORD).guarantee(1e-5)
    assert figures.epsilon == math.inf
    assert figures.by_accountant == {"PLD": None, "RDP": math.inf}


def test_folding_changes_nothing():
    votes = NoisyVotes(5, 3, 50).lines(1)
    assert fold(votes * 40) == fold(NoisyVotes(5, 3, 50).lines(40))


def test_mixed_kinds_compose():
    lines = [
        *NoisyVotes(5, 3, 50).lines(20),
        *LaplaceCounts(20, 3).lines(5),
        *RandomisedResponse(4, Fraction(2, 5), Unit.RECORD).lines(2),
        *GaussianSum(100, 4, 100, rate="1/10").lines(10),
        *ConfidentVotes(5, 3, 50, threshold=3, threshold_sigma=9, most_answers=3).lines(9),
    ]
    whole = price(lines, RECORD).guarantee(1e-6)
    parts = [price([line], RECORD).epsilon(1e-6) for line in lines]
    assert max(parts) < whole.epsilon < sum(parts) + 1
    assert whole.by_accountant["PLD"] <= whole.by_accountant["RDP"] * 1.01 + 0.01


def test_contradicting_accountants_fail_closed(monkeypatch):
    lines = NoisyVotes(5, 3, 77).lines(3)
    monkeypatch.setattr(accounting_module.Price, "rdp", lambda self, delta: 0.001)
    with pytest.raises(NumericalDoubt, match="more than RDP"):
        price(lines, RECORD).guarantee(1e-5)


def test_nan_fails_closed(monkeypatch):
    monkeypatch.setattr(renyi, "epsilon", lambda curve, delta: math.nan)
    broken = price(RandomisedResponse(3, Fraction(1, 2)).lines(1), Pair.parse("entity/change"))
    with pytest.raises(NumericalDoubt, match="NaN"):
        broken.guarantee(1e-5)


def test_table_error_is_charged():
    """With enough noise samples at a large epsilon the tables themselves forbid a finite figure."""
    one = Sensitivity(Norm.UNIT_STEPS, {RECORD: 1})
    few = price([(GaussianEvent(Fraction(1, 64), 1, one), 1)], RECORD)
    assert 60 < few.rdp(1e-3) < math.inf
    many = price([(GaussianEvent(Fraction(1, 64), 10**15, one), 1)], RECORD)
    assert many.rdp(1e-3) == math.inf


@given(st.fractions(Fraction(1, 10**9), 10**9))
def test_rounding_never_flatters(x):
    assert Fraction(down(x)) <= x <= Fraction(up(x))
    assert Fraction(root_down(x)) ** 2 <= x
    assert root_down(x) == pytest.approx(math.sqrt(x), rel=1e-12)


@given(st.floats(0, 1e6))
def test_shown_epsilon_is_never_less(epsilon):
    assert Fraction(shown(epsilon)) >= Fraction(epsilon) - Fraction(1, 10**12)
