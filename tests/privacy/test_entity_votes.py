"""Votes of entities: exact enumeration of what is priced, and twins that only they can have."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest

from privacy.conformance import Case, check_law, check_price, hockey_stick
from privacy.entity_cases import (
    clamped,
    drawn_again,
    gaussian_share,
    response_share,
    summed_gaussian,
    summed_worlds,
    truncated_geometric,
)
from privacy.laws import gaussian, joint
from privacy.twins import Twin
from stillroom.errors import BadInput
from stillroom.gate import SITS_OUT, GaussianShare, ResponseShare, TruncatedGeometric, renyi
from stillroom.gate.accounting import price
from stillroom.gate.entity_events import DistributedGaussianEvent, SummedResponseEvent
from stillroom.gate.entropy import Entropy
from stillroom.gate.finite_losses import MOST_COUNTED, Losses
from stillroom.vocabulary import Pair, Relation, Unit

ENTITY = Pair(Unit.ENTITY, Relation.CHANGE)


def priced_delta(losses: Losses, epsilon: float) -> float:
    return float((losses.mass * np.maximum(0, -np.expm1(epsilon - losses.loss))).sum())


def renyi_loss(first: np.ndarray, second: np.ndarray, order: int) -> float:
    return math.log((first**order * second ** (1 - order)).sum()) / (order - 1)


@pytest.mark.parametrize(("classes", "scale"), [(2, "1/2"), (3, "7/3"), (5, "1"), (10, "10")])
def test_first_against_last_is_the_worst_pair_of_the_channel(classes, scale):
    mechanism = TruncatedGeometric(classes, Fraction(scale))
    channel = [clamped(classes, float(mechanism.scale), truth) for truth in range(classes)]
    for truth, law in enumerate(channel):
        np.testing.assert_allclose(mechanism.law(truth), law, rtol=1e-12)
    event = mechanism.lines(1)[0][0]
    pairs = list(permutations(channel, 2))
    for epsilon in (-0.5, -0.1, 0.0, 0.05, 0.3, 0.8):
        worst = max(hockey_stick(one, other, epsilon) for one, other in pairs)
        assert priced_delta(event.losses, epsilon) == pytest.approx(worst, abs=1e-11)
    for order, loss in zip(renyi.ORDERS[:20], event.curve(ENTITY), strict=False):
        worst = max(renyi_loss(one, other, order) for one, other in pairs)
        assert worst <= loss <= worst + 1e-11
    assert max(np.log(a / b).max() for a, b in pairs) == pytest.approx(float(mechanism.level))


class DrawsAgain(Twin):
    """Reports one class more, as the published law does, and draws again where it is that one."""

    def draw(self, entropy, value, allowance):
        wide = dataclasses.replace(self.real, classes=self.real.classes + 1)
        answers = np.full(len(value), -1)
        while (open_rows := np.flatnonzero(answers < 0)).size:
            answers[open_rows] = wide.draw(entropy, value[open_rows] + 1, allowance) - 1
        return answers


def test_drawing_again_is_caught(tmp_path):
    mechanism = TruncatedGeometric(8, Fraction(30))
    true = dataclasses.replace(
        truncated_geometric(),
        mechanism=mechanism,
        law=dict(enumerate(clamped(8, 30.0, 3, 2000))),
        worlds=lambda pair: (clamped(8, 30.0, 0, 2000), clamped(8, 30.0, 7, 2000)),
    )
    check_law(true, tmp_path)
    with pytest.raises(AssertionError):
        check_law(dataclasses.replace(true, mechanism=DrawsAgain(mechanism)), tmp_path)
    check_price(true, tmp_path)
    redrawn = dataclasses.replace(
        true, worlds=lambda pair: (drawn_again(8, 30.0, 0), drawn_again(8, 30.0, 7))
    )
    with pytest.raises(AssertionError):
        check_price(redrawn, tmp_path)


def test_tables_are_charged_to_the_rarest_report():
    """So that a level needs no delta: 8 tables, each within 2^-128, and both sides of a ratio."""
    for classes, scale in ((10, Fraction(10)), (2, Fraction(1, 40)), (10_000, Fraction(2**30))):
        event = TruncatedGeometric(classes, scale).lines(1)[0][0]
        law = TruncatedGeometric(classes, scale).law(0)
        assert event.noise_samples == 0
        assert 8 * 2.0**-128 / min(law) <= event.slack / 2 < 1e-9


class AnyShare(DistributedGaussianEvent):
    """Takes shares below 2, to see what they would do."""

    def __post_init__(self):
        pass


class WithoutTau(AnyShare):
    """Takes the sum of the shares for one discrete Gaussian."""

    slack = 0.0


def small_shares(kind, share: Fraction, honest: int) -> Case:
    real = gaussian_share()

    class Small(Twin):
        def lines(self, count):
            return [(kind(honest, share * share, 2, real.mechanism.sensitivity), count)]

    def worlds(pair):
        here, there = (summed_gaussian(float(share), honest, w, 30) for w in (1, 0))
        return joint(here, there), joint(there, here)

    return dataclasses.replace(real, mechanism=Small(real.mechanism), worlds=worlds)


@pytest.mark.parametrize("share", ["2/5", "1/2"])
def test_shares_below_two_without_tau_are_caught(share, tmp_path):
    with pytest.raises(AssertionError):
        check_price(small_shares(WithoutTau, Fraction(share), 4), tmp_path)
    check_price(small_shares(AnyShare, Fraction(share), 4), tmp_path)


@pytest.mark.parametrize("share", [0.75, 1.0])
@pytest.mark.parametrize("honest", [2, 3, 6])
def test_tau_bounds_the_distance_of_a_sum_from_one_gaussian(share, honest):
    """At every point that is not too rare to be summed in doubles."""
    summed = summed_gaussian(share, honest, reach=60)
    reach = len(summed) // 2
    one = gaussian(share * math.sqrt(honest), 0, reach)
    seen = one > 1e-13
    apart = np.abs(np.log(summed[seen] / one[seen])).max()
    square = Fraction(share) ** 2
    slack = AnyShare(honest, square, 1, gaussian_share().mechanism.sensitivity).slack
    assert 1e-7 < apart <= slack
    assert WithoutTau(honest, square, 1, gaussian_share().mechanism.sensitivity).slack < apart


def test_tau_at_two_with_many_entities():
    getcontext().prec = 40
    doubled = Decimal("-19.7392088021787172376689819991635") * 4
    exact = 10 * sum((doubled * k / (k + 1)).exp() for k in range(1, 10_000))
    event = GaussianShare(10_000, 0, 0, classes=7, share=2).lines(1)[0][0]
    assert 7 * exact <= Decimal(event.slack) <= 7 * exact * Decimal("1.00000001")
    assert GaussianShare(1, 0, 0, classes=7, share=2).lines(1)[0][0].slack == 0


@pytest.mark.parametrize("weight", [1, 3])
def test_tau_is_charged_in_both_prices(weight, monkeypatch):
    lines = GaussianShare(100, 0, 0, classes=10, share=8, weight=weight).lines(20)
    free = price(lines, ENTITY).guarantee(1e-5).by_accountant
    tau = 1e-3
    monkeypatch.setattr(DistributedGaussianEvent, "slack", tau)
    more = GaussianShare(100, 0, 0, classes=10, share=Fraction(800001, 10**5), weight=weight)
    charged = price(more.lines(20), ENTITY).guarantee(1e-5).by_accountant
    assert charged["PLD"] >= free["PLD"] + 2 * 20 * tau - 1e-4
    assert charged["RDP"] >= free["RDP"] + 2 * 20 * tau - 1e-4


class CountsEveryone(Twin):
    """Charges as if nobody vanished and nobody colluded."""

    def lines(self, count):
        (event, n), *_ = self.real.lines(count)
        return [(dataclasses.replace(event, honest=self.real.entities), n)]


@pytest.mark.parametrize("case", [gaussian_share, lambda: gaussian_share(3)])
def test_missing_entities_that_are_counted_are_caught(case, tmp_path):
    real = case()
    with pytest.raises(AssertionError):
        check_price(dataclasses.replace(real, mechanism=CountsEveryone(real.mechanism)), tmp_path)


def test_missing_responses_that_are_counted_are_caught(tmp_path):
    real = response_share()
    mechanism = dataclasses.replace(real.mechanism, entities=40, colluding=38)
    check_price(dataclasses.replace(real, mechanism=mechanism), tmp_path)
    with pytest.raises(AssertionError):
        check_price(dataclasses.replace(real, mechanism=CountsEveryone(mechanism)), tmp_path)


@pytest.mark.parametrize(("classes", "honest"), [(2, 1), (2, 5), (3, 2), (3, 4), (4, 3)])
@pytest.mark.parametrize("keep", [0.4, 0.6, 0.9])
def test_the_pair_of_summed_responses_covers_every_answer_of_the_others(classes, honest, keep):
    """All answers of all entities, those that sit out too, by going through every report."""
    if keep < 1 / classes:
        return
    mechanism = ResponseShare(honest, 0, 0, classes, Fraction(keep))
    losses = mechanism.lines(1)[0][0].losses
    answers = [*range(classes), None]
    for two in ((0, 1), (0, None), (None, 0)):
        for others in combinations_with_replacement(answers, honest - 1):
            one, other = summed_worlds(classes, keep, two, others)
            for epsilon in (0.0, 0.1, 0.3, 0.7, 1.2, 2.0):
                true = hockey_stick(one, other, epsilon)
                assert true <= priced_delta(losses, epsilon) + 1e-12
    if honest == 1:  # nobody hides it: what is priced is what happens
        one, other = summed_worlds(classes, keep, (0, 1), [])
        assert priced_delta(losses, 0.1) == pytest.approx(hockey_stick(one, other, 0.1), rel=1e-6)


def test_the_pair_is_the_multinomial_one():
    """Against the pair itself, point by point and without a window: h = 12, M = 4."""
    h, p, classes = 12, 0.55, 4
    q = (1 - p) / (classes - 1)
    first, second = {}, {}
    for a in range(h):
        for b in range(h - a):
            ways = math.factorial(h - 1) / math.prod(map(math.factorial, (a, b, h - 1 - a - b)))
            chance = ways * q ** (a + b) * (1 - 2 * q) ** (h - 1 - a - b)
            for law, (one, other) in ((first, (p, q)), (second, (q, p))):
                law[a + 1, b] = law.get((a + 1, b), 0) + chance * one
                law[a, b + 1] = law.get((a, b + 1), 0) + chance * other
    here, there = (np.array([law[at] for at in first]) for law in (first, second))
    sensitivity = response_share().mechanism.sensitivity
    losses = SummedResponseEvent(h, classes, Fraction(p), sensitivity).losses
    assert losses.mass.sum() == pytest.approx(1, abs=1e-9)
    for epsilon in (0.0, 0.01, 0.2, 0.7, 1.1):
        true = hockey_stick(here, there, epsilon)
        assert true <= priced_delta(losses, epsilon) <= true + 1e-7


def test_more_entities_only_hide_better():
    def epsilon(entities):
        share = ResponseShare(entities, 0, 0, 10, Fraction(1, 7))
        return price(share.lines(100), ENTITY).epsilon(1e-5)

    figures = [epsilon(n) for n in (1, 2, 10, 100, MOST_COUNTED)]
    assert figures == sorted(figures, reverse=True)
    assert epsilon(10**6) == figures[-1]


def test_who_sits_out_reports_a_uniform_class():
    share = ResponseShare(9, 0, 0, classes=5, keep=Fraction(4, 5))
    value = np.full((50_000, 1), SITS_OUT)
    share.check(value)
    rows = share.draw(Entropy(), value, len(value))
    assert (rows.sum(axis=1) == 1).all()
    assert np.abs(rows.mean(axis=0) - 0.2).max() < 0.012
    assert share.law(SITS_OUT) == [Fraction(1, 5)] * 5
    with pytest.raises(BadInput):
        share.check(value - 1)


@pytest.mark.parametrize(
    "row", [[1, 1, 0], [2, 0, 0], [-3, 0, 0], [3, 3, 0], [0, 4, 0], [3, -3, 0], [3, 1, 0]]
)
def test_rows_that_are_no_vote_are_refused(row):
    share = GaussianShare(9, 0, 0, classes=3, share=2, weight=3)
    share.check(np.array([[0, 0, 0], [0, 0, 3], [3, 0, 0]]))
    with pytest.raises(BadInput, match="neither one vote"):
        share.check(np.array([[0, 0, 0], row]))


@pytest.mark.parametrize(
    "change",
    [
        {"share": Fraction(199, 100)},
        {"share": 0},
        {"dropouts": 5, "colluding": 4},
        {"dropouts": -1},
        {"colluding": 1.5},
        {"entities": 10**6 + 1},
        {"classes": 1},
        {"classes": 10**4 + 1},
        {"weight": -1},
        {"weight": 2**32},
    ],
)
def test_shares_out_of_range_are_refused(change):
    numbers = {"entities": 9, "dropouts": 1, "colluding": 1, "classes": 3, "share": 2, **change}
    with pytest.raises(BadInput):
        GaussianShare(**numbers)
