"""Figures of votes of entities: Zhao's claim, and what local noise and secure sums cost."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from stillroom.gate import (
    GaussianShare,
    ResponseShare,
    TruncatedGeometric,
    UnaryEncoding,
)
from stillroom.gate.accounting import price
from stillroom.vocabulary import Pair, Relation, Unit

ENTITY = Pair(Unit.ENTITY, Relation.CHANGE)
DELTA = 1e-5


def published(epsilon: str, classes: int = 10) -> TruncatedGeometric:
    """The paper's noise: alpha = exp(-epsilon / M), clamped to the M classes."""
    return TruncatedGeometric(classes, classes / Fraction(epsilon))


def printed_law(classes: int, epsilon: str, truth: int) -> list[float]:
    """Of the reports 0..M for a truth in 1..M, as the paper has it: 0 is no class."""
    alpha = math.exp(-float(epsilon) / classes)
    ends = (0, classes)
    return [
        alpha ** abs(report - truth) / (1 + alpha) * (1 if report in ends else 1 - alpha)
        for report in range(classes + 1)
    ]


def level(laws: list[np.ndarray]) -> float:
    return max(float(np.log(one / other).max()) for one, other in permutations(laws, 2))


@pytest.mark.parametrize(
    ("classes", "epsilon", "again"),
    [(10, "1", 1.3298), (10, "0.1", 0.172), (10, "4", 4.102), (3, "0.1", 0.127)],
)
def test_zhao_channel_eps(classes, epsilon, again):
    """Clamped, epsilon (M - 1) / M; with report 0 drawn again, more than was claimed."""
    mechanism = published(epsilon, classes)
    clamped = [np.array(mechanism.law(truth)) for truth in range(classes)]
    holds = float(Fraction(epsilon)) * (classes - 1) / classes
    assert level(clamped) == pytest.approx(holds, abs=1e-12)
    assert float(mechanism.level) == pytest.approx(holds)
    assert TruncatedGeometric(classes, (classes - 1) / Fraction(epsilon)).level == Fraction(epsilon)
    printed = [np.array(printed_law(classes, epsilon, truth)) for truth in range(1, classes + 1)]
    redrawn = [law[1:] / law[1:].sum() for law in printed]
    assert level(redrawn) == pytest.approx(again, abs=6e-4)


def test_zhao_report_zero_becomes_class_one():
    """The printed law, on 0..M for classes 1..M, with 0 counted as 1, is the clamped one."""
    printed = printed_law(10, "1", 4)
    merged = [printed[0] + printed[1], *printed[2:]]
    assert published("1").law(3) == pytest.approx(merged, abs=1e-15)
    assert printed_law(10, "1", 1)[0] == pytest.approx(0.475, abs=5e-4)


def fractional_epsilon(mechanism: TruncatedGeometric, count: int) -> float:
    """By Renyi orders between 1 and 2 as well, which the accountant's grid does not have."""
    first, last = (np.array(mechanism.law(t)) for t in (0, mechanism.classes - 1))
    orders = 1 + np.concatenate([np.arange(1, 100) / 100, np.arange(10, 640) / 10])
    losses = [math.log((first**a * last ** (1 - a)).sum()) / (a - 1) for a in orders]
    return min(
        count * loss + math.log1p(-1 / a) - math.log(DELTA * a) / (a - 1)
        for a, loss in zip(orders, losses, strict=True)
    )


@pytest.mark.parametrize(
    ("epsilon", "count", "renyi"),
    [
        ("0.1", 2000, 25.6),
        ("0.5", 2000, 261),
        ("1", 2000, 770),
        ("0.1", 200, 6.07),
        ("0.5", 200, 43.2),
        ("1", 200, 108),
    ],
)
def test_zhao_total(epsilon, count, renyi):
    """The paper's T epsilon, the pure 0.9 of it, and what Renyi divergence and PLD make of it."""
    mechanism = published(epsilon)
    pure = count * float(mechanism.level)
    assert pure == pytest.approx(0.9 * count * float(epsilon))
    assert fractional_epsilon(mechanism, count) == pytest.approx(renyi, rel=0.01)
    cost = price(mechanism.lines(count), ENTITY)
    told = cost.ideal(DELTA)
    assert told < renyi < pure
    assert cost.epsilon(DELTA) >= told


@pytest.mark.parametrize(
    ("epsilon", "figure", "accountant"), [("1", 1068.3, "RDP"), ("0.5", 252.9, "PLD")]
)
def test_zhao_total_certified(epsilon, figure, accountant):
    """Beyond 500 no distribution is certified; Renyi orders from 2 on give 1068 there."""
    found = price(published(epsilon).lines(2000), ENTITY).guarantee(DELTA)
    assert (found.accountant, found.epsilon) == (accountant, pytest.approx(figure, abs=0.1))


@pytest.mark.parametrize(("truth", "least"), [(2, 6.93), (3, 4.81), (4, 3.82), (5, 3.22)])
def test_zhao_plurality(truth, least):
    """Unanimous entities without number: class 2 of 10 is the mode from epsilon 6.93 on."""
    for step, wins in ((-0.01, False), (0.01, True)):
        law = published(f"{least + step:.2f}").law(truth - 1)
        assert (np.argmax(law) == truth - 1) is np.bool_(wins)


def test_zhao_is_no_better_than_a_guess():
    """P(correct) for class 5 of 10 at epsilon 1: .050, with randomised response .232."""
    assert published("1").law(4)[4] == pytest.approx(0.050, abs=5e-4)
    assert math.e / (math.e + 9) == pytest.approx(0.232, abs=5e-4)


def response(entities: int, epsilon: float) -> ResponseShare:
    keep = Fraction(math.exp(epsilon) / (math.exp(epsilon) + 9)).limit_denominator(10**9)
    return ResponseShare(entities, 0, 0, 10, keep)


@pytest.mark.parametrize(
    ("entities", "epsilon", "rounded_up", "least"),
    [
        (250, 0.25, 3.19, 1.46),
        (250, 0.5, 7.65, 3.46),
        (250, 0.75, 13.53, 6.26),
        (250, 1.0, 21.1, 10.1),
        (1000, 0.25, 1.48, 0),
        (1000, 0.5, 3.41, 0),
        (1000, 0.75, 5.81, 0),
        (1000, 1.0, 8.75, 0),
    ],
)
def test_krr_shuffle_pair(entities, epsilon, rounded_up, least):
    """Rounding every loss up gives the figures of the catalogue; connecting the dots a bit less."""
    found = price(response(entities, epsilon).lines(2000), ENTITY).epsilon(DELTA)
    assert max(least, rounded_up - 0.04) <= found <= rounded_up


@pytest.mark.parametrize(("epsilon", "local"), [(0.25, 35.55), (0.5, 107.39), (1.0, 396)])
def test_summed_responses_if_the_sum_is_broken(epsilon, local):
    found = price(response(250, epsilon).local_lines(2000), ENTITY).ideal(DELTA)
    assert found == pytest.approx(local, rel=2e-3)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "local"), [(40, 7.511, 418), (60, 4.653, 209), (100, 2.594, 92)]
)
def test_distributed_discrete_gaussian(sigma, epsilon, local):
    share = Fraction(math.ceil(sigma / math.sqrt(250) * 10**6), 10**6)
    mechanism = GaussianShare(250, 0, 0, classes=10, share=share)
    assert price(mechanism.lines(2000), ENTITY).epsilon(DELTA) == pytest.approx(epsilon, abs=5e-4)
    alone = price(mechanism.local_lines(2000), ENTITY)
    assert alone.ideal(DELTA) == pytest.approx(local, abs=0.5)
    # Certified it would be infinite: no table of the sampler vouches for so large a figure.
    assert alone.epsilon(DELTA) == math.inf


def test_tau_of_the_distributed_discrete_gaussian():
    for sigma, tau in ((40, 4e-27), (60, 2e-61)):
        share = Fraction(math.ceil(sigma / math.sqrt(250) * 10**6), 10**6)
        event = GaussianShare(250, 0, 0, classes=1 + 1, share=share).lines(1)[0][0]
        assert event.slack / 2 == pytest.approx(tau, rel=0.1)


@pytest.mark.parametrize(("missing", "epsilon"), [(0, 4.65), (25, 4.95), (83, 5.89), (125, 7.00)])
def test_entities_that_vanish_or_collude(missing, epsilon):
    """Sigma 60 in all, if nobody is missing; the shares stay what they were."""
    share = Fraction(math.ceil(60 / math.sqrt(250) * 10**6), 10**6)
    mechanism = GaussianShare(250, missing // 2, missing - missing // 2, classes=10, share=share)
    assert price(mechanism.lines(2000), ENTITY).epsilon(DELTA) == pytest.approx(epsilon, abs=0.006)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "weight"), [(60, 1, 0.254), (60, 3, 0.682), (60, 8, 1.58)]
)
def test_weights_of_personal_budgets(sigma, epsilon, weight):
    """Weights on a grid of thousandths; noise alike."""
    share = Fraction(math.ceil(sigma * 1000 / math.sqrt(250)))
    mechanism = GaussianShare(250, 0, 0, 10, share, weight=int(weight * 1000))
    found = price(mechanism.lines(2000), ENTITY).epsilon(DELTA)
    assert found == pytest.approx(epsilon, rel=0.005)


def exact_unary_epsilon(flip: float, count: int) -> float:
    """Rows composed by enumeration: each adds the level, nothing, or takes it away."""
    step = np.array([flip / 2, 0.5, (1 - flip) / 2])
    law = np.array([1.0])
    for bit in f"{count:b}":
        law = np.convolve(law, law)
        law = np.convolve(law, step) if bit == "1" else law
    loss = np.arange(-count, count + 1) * math.log((1 - flip) / flip)
    low, high = 0.0, float(loss[-1])
    for _ in range(60):
        middle = (low + high) / 2
        over = loss > middle
        true = (law[over] * -np.expm1(middle - loss[over])).sum()
        low, high = (low, middle) if true <= DELTA else (middle, high)
    return low


@pytest.mark.parametrize(("level", "count"), [(0.1, 200), (0.5, 200), (1.0, 200), (0.1, 2000)])
def test_unary_totals(level, count):
    flip = Fraction(1 / (math.exp(level) + 1)).limit_denominator(10**9)
    exact = exact_unary_epsilon(float(flip), count)
    found = price(UnaryEncoding(10, flip).lines(count), ENTITY).epsilon(DELTA)
    assert exact <= found <= exact * 1.0005 + 1e-3
