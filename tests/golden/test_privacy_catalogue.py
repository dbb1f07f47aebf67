"""The published and worked-out figures that this package must reproduce."""

from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
import torch
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from stillroom.gate import ConfidentVotes, GaussianSum, NoisyVotes, RandomisedResponse
from stillroom.gate.accounting import price
from stillroom.methods.rona.claims import claimed_epsilon, verdict_on
from stillroom.methods.rona.losses import hint_loss, privacy_sanitize
from stillroom.methods.rona.published_plan import PublishedPlan
from stillroom.methods.rona.section import PublishedSection, RonaSection
from stillroom.planning import label_accuracy, plan
from stillroom.vocabulary import RECORD, Pair, Relation, Unit

PAPER = PublishedPlan(
    RonaSection.of(hint_epochs=40, rounds=5, distillation_epochs=8, batch=512),
    PublishedSection(),
)
CHANGE = Pair(Unit.RECORD, Relation.CHANGE)
ENTITY = Pair(Unit.ENTITY, Relation.CHANGE)


def votes(sigma, queries):
    return price(NoisyVotes(teachers=250, classes=10, sigma=sigma).lines(queries), RECORD)


@pytest.mark.parametrize(
    ("queries", "sigma", "epsilon"),
    [
        (200, 40, 1.99),
        (200, 60, 1.27),
        (200, 80, 0.93),
        (200, 100, 0.73),
        (500, 40, 3.34),
        (500, 100, 1.20),
        (500, 150, 0.77),
        (2000, 40, 7.51),
        (2000, 60, 4.653),
        (2000, 100, 2.594),
        (5000, 40, 13.21),
        (5000, 60, 8.004),
        (5000, 100, 4.377),
    ],
)
def test_votes_table(queries, sigma, epsilon):
    assert votes(sigma, queries).epsilon(1e-5) == pytest.approx(epsilon, abs=0.006)


def test_relation_trap():
    """One event, three epsilons: the library's relation changes PLD but not RDP."""
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.GaussianDpEvent(40 / math.sqrt(2)), 2000
    )
    native = {}
    for relation in (NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE):
        native[relation] = PLDAccountant(relation).compose(event).get_epsilon(1e-5)
        assert RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(
            1e-5
        ) == pytest.approx(8.08, abs=0.01)
    assert native[NeighboringRelation.ADD_OR_REMOVE_ONE] == pytest.approx(7.51, abs=0.01)
    assert native[NeighboringRelation.REPLACE_ONE] == pytest.approx(17.86, abs=0.01)
    # Ours holds the diameter already, so every pair of one vote has the same figure.
    lines = NoisyVotes(teachers=250, classes=10, sigma=40).lines(2000)
    for pair in (RECORD, CHANGE, ENTITY):
        figures = price(lines, pair).guarantee(1e-5).by_accountant
        assert figures["PLD"] == pytest.approx(7.51, abs=0.02)
        assert figures["RDP"] == pytest.approx(8.08, abs=0.02)


def test_sampled_relation():
    """q 0.01, multiplier 1, 1000 steps: 1.83 to add or remove, 2.84 natively to change."""
    steps = GaussianSum(sigma=10_000, width=1, squared_norm=10_000**2, rate="1/100").lines(1000)
    assert price(steps, RECORD).epsilon(1e-5) == pytest.approx(1.83, abs=0.005)
    assert price(steps, CHANGE).epsilon(1e-5) == pytest.approx(2.84, abs=0.005)


def exact_response_epsilon(classes: int, keep: float, answers: int, delta: float) -> float:
    """Randomised response composed by enumeration: the loss is eps0 times a trinomial walk."""
    other = (1 - keep) / (classes - 1)
    step = np.array([other, 1 - keep - other, keep])
    law = np.array([1.0])
    for bit in f"{answers:b}":
        law = np.convolve(law, law)
        law = np.convolve(law, step) if bit == "1" else law
    loss = np.arange(-answers, answers + 1) * math.log(keep / other)
    low, high = 0.0, float(loss[-1])
    for _ in range(60):
        middle = (low + high) / 2
        over = loss > middle
        true = (law[over] * -np.expm1(middle - loss[over])).sum()
        low, high = (low, middle) if true <= delta else (middle, high)
    return low


@pytest.mark.parametrize(
    ("eps0", "answers", "exact"),
    [(0.1, 200, 2.672), (0.1, 2000, 10.259), (0.25, 2000, 35.551), (0.5, 2000, 107.391)],
)
def test_local_randomised_response_totals(eps0, answers, exact):
    keep = math.exp(eps0) / (math.exp(eps0) + 9)
    enumerated = exact_response_epsilon(10, keep, answers, 1e-5)
    assert enumerated == pytest.approx(exact, abs=0.001)
    lines = RandomisedResponse(classes=10, keep=Fraction(keep)).lines(answers)
    assert enumerated <= price(lines, ENTITY).epsilon(1e-5) <= enumerated * 1.005


def test_randomised_response_enumerated():
    """One answer: the largest log ratio of the exact laws is ln(keep / other), and is charged."""
    mechanism = RandomisedResponse(classes=5, keep=Fraction(1, 3))
    laws = [mechanism.law(truth) for truth in range(5)]
    assert all(sum(law) == 1 for law in laws)
    worst = max(math.log(a / b) for p in laws for q in laws for a, b in zip(p, q, strict=True))
    assert worst == pytest.approx(math.log(2))
    for delta in (1e-12, 1e-5):
        assert worst - 1e-4 <= price(mechanism.lines(1), ENTITY).epsilon(delta) <= worst + 1e-3


@pytest.mark.parametrize(
    ("queries", "answers", "epsilon"), [(2000, 1124, 5.53), (5000, 2811, 9.59)]
)
def test_gating(queries, answers, epsilon):
    gated = ConfidentVotes(250, 10, 40, threshold=200, threshold_sigma=150, most_answers=answers)
    assert price(gated.lines(queries), RECORD).epsilon(1e-5) == pytest.approx(epsilon, abs=0.01)


@pytest.mark.parametrize(
    ("epsilon", "multiplier"),
    [(0.5, 7.03), (1, 3.731), (2, 1.994), (3, 1.391), (5, 0.892), (8, 0.600), (10, 0.500)],
)
def test_budget_constants(epsilon, multiplier):
    """The total Gaussian noise multiplier of each epsilon, seen through a fine grid."""
    norm = 10**6
    sigma = Fraction(str(multiplier)) * norm
    spent = price(GaussianSum(sigma, width=1, squared_norm=norm**2).lines(1), RECORD).epsilon(1e-5)
    assert spent == pytest.approx(epsilon, rel=0.002)


@pytest.mark.parametrize(
    ("sigma", "at_90", "at_60"), [(40, 0.9996, 0.954), (60, 0.970, 0.764), (100, 0.739, 0.469)]
)
def test_label_accuracy(sigma, at_90, at_60):
    """Figures of 400,000 simulated labels."""
    assert label_accuracy(250, 10, sigma, 0.9) == pytest.approx(at_90, abs=0.002)
    assert label_accuracy(250, 10, sigma, 0.6) == pytest.approx(at_60, abs=0.002)


def test_calibration_is_the_smallest_and_holds():
    found = plan(queries=200, epsilon=1)
    assert found.epsilon <= 1
    a_little_less = found.sigma - Fraction(1, 1000)
    assert plan(queries=200, sigma=a_little_less).epsilon > 1


def test_rona_noise_in_gradient():
    """Literal RONA: the same gradient under any noise on the loss, so no epsilon at all."""
    gradients = []
    for noise in (0.0, 123.0):
        said = torch.zeros(1, 3, requires_grad=True)
        loss = hint_loss(said, torch.tensor([[0.3, -0.7, 0.2]]))
        privacy_sanitize(loss, 10.0, noise, detached=True).backward()
        gradients.append(said.grad)
    assert torch.equal(*gradients)
    requests = PAPER.requests(40_000, hint_width=128, classes=10)
    lines = [line for one in requests for line in one.at(Fraction(1)).lines(one.count)]
    assert price(lines, RECORD).epsilon(1e-5) == math.inf
    assert "does not hold" in verdict_on(PAPER, 40_000, 1e-5)


def test_rona_clip_zero_grad():
    said = torch.zeros(1, 2, requires_grad=True)
    loss = hint_loss(said, torch.tensor([[30.0, -40.0]]))
    privacy_sanitize(loss, 1.0, 0.0, detached=False).backward()
    assert loss.item() > 1
    assert not said.grad.any()


def test_rona_t_count():
    assert (PAPER.calls(40_000), PAPER.claimed_calls(40_000)) == (3200, 3125)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 38.7), (math.sqrt(2), 64.2), (2, 109.3)])
def test_rona_readme_eps(sensitivity, epsilon):
    assert claimed_epsilon(3125, 10, 1e-5, sensitivity) == pytest.approx(epsilon, abs=0.05)


def test_float_laplace_trap():
    """Inverse-CDF Laplace noise in doubles: 64 % of the outputs of 1 cannot come from 0."""
    rng = np.random.default_rng(1)  # repeats the demonstration, draws nothing private

    def magnitude(k):
        return -np.log(k / 2.0**53)

    def reachable_from_zero(y):
        centre = np.round(np.exp(-np.abs(y)) * 2.0**53)
        return np.any([magnitude(centre + step) == np.abs(y) for step in range(-8, 9)], axis=0)

    sign = rng.choice([-1.0, 1.0], 40_000)
    k = rng.integers(1, 2**53, 40_000).astype(float)
    fractions = []
    for x in (0.0, 1.0):
        y = x + sign * magnitude(k)
        y = y[(np.abs(y) > 1.5) & (np.abs(y) < 3)]
        fractions.append(reachable_from_zero(y).mean())
    assert fractions[0] == 1.0
    assert fractions[1] == pytest.approx(0.36, abs=0.02)
