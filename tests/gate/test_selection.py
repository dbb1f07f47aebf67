"""Private selection: how many runs nobody learns, which one is best, and what that costs."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from stillroom.errors import BadInput, UnsupportedEvent
from stillroom.gate import (
    Budget,
    ConfidentVotes,
    ExponentialChoice,
    Gate,
    GaussianAnswers,
    GaussianSum,
    Ledger,
    PrivateSelection,
    mechanism_from_json,
    renyi,
)
from stillroom.gate.accounting import price
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import SelectionEvent, event_from_json
from stillroom.gate.ledger import verify
from stillroom.vocabulary import RECORD, Bounded

FALSE_ALARM = 1e-7
BASE = ExponentialChoice(models=3, grid=4, window=(2, 1), steepness=Fraction(1, 4))
VALUE = np.array([[0, 0, 3]])


def way_of(folder, mechanism, count=3):
    ledger = Ledger.create(folder / "ledger.sqlite", ids=["a"], purpose="benchmark")
    ledger.set_budget(Budget(90, 1e-5), reason="a test")
    return ledger, Gate(ledger, ids=["a"]).reserve(mechanism, count)


@pytest.mark.parametrize("tries", ["geometric", "logarithmic"])
def test_the_number_of_runs_has_its_law(tries):
    """Chi-square: rejects a right sampler with a probability of 1e-7."""
    mechanism, entropy, draws = PrivateSelection(BASE, 1, Fraction(2, 5), tries), Entropy(), 20_000
    seen = np.bincount([mechanism._count(entropy) for _ in range(draws)], minlength=40)
    k = np.arange(1, 40)
    law = 0.4 * 0.6 ** (k - 1) if tries == "geometric" else 0.6**k / k / -math.log(0.4)
    expected = np.append(law[:8], 1 - law[:8].sum()) * draws
    observed = np.append(seen[1:9], draws - seen[:9].sum())
    assert seen[0] == 0
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 8) > FALSE_ALARM
    mean = renyi.mean_runs(Fraction(2, 5), logarithmic=tries == "logarithmic")
    assert mean == pytest.approx((k * law).sum(), rel=1e-4)


def test_the_best_has_its_law():
    """P(best <= x) = stop F / (1 - (1 - stop) F), for the largest point as the best."""
    mechanism, draws = PrivateSelection(BASE, 1, Fraction(1, 4)), 6000
    rows = np.repeat(VALUE, draws, axis=0)
    found = mechanism.judged_by(lambda answer: float(answer[0])).draw(Entropy(), rows, 1)
    below = np.concatenate([[0.0], np.cumsum(BASE.law(VALUE)[0])])
    law = np.diff(0.25 * below / (1 - 0.75 * below))
    expected, observed = law * draws, np.bincount(found[:, 0], minlength=4)
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 3) > FALSE_ALARM


def test_a_run_of_several_rows_is_judged_as_a_whole():
    seen = []
    mechanism = PrivateSelection(BASE, 2, Fraction(1, 2))
    value = np.array([[0, 0, 0, 3, 3, 3]])
    judge = mechanism.judged_by(lambda answer: seen.append(answer.shape) or 1.0)
    best = judge.draw(Entropy(), value, 1)
    assert best.shape == (1, 2)
    assert set(seen) == {(2,)}


@pytest.mark.parametrize("broken", [lambda answer: math.nan, lambda answer: 1 / 0])
def test_a_judge_that_fails_tells_nothing(tmp_path, broken):
    """Such a run is the worst of all; where all are, the first is the answer."""

    def judge(answer):
        return broken(answer) if answer[0] == 0 else float(answer[0] == 3)

    mechanism = PrivateSelection(BASE, 1, Fraction(1, 60))
    best = mechanism.judged_by(judge).draw(Entropy(), np.repeat(VALUE, 60, axis=0), 60)
    assert (best == 3).mean() > 0.5
    assert mechanism.judged_by(broken).draw(Entropy(), VALUE, 1).shape == (1, 1)


class Counting:
    """A judge that is interrupted at a run."""

    def __init__(self, at):
        self.at, self.runs = at, 0

    def __call__(self, answer):
        self.runs += 1
        if self.runs == self.at:
            raise KeyboardInterrupt
        return 0.0


def test_one_row_of_the_ledger_and_no_number_of_runs(tmp_path):
    mechanism = PrivateSelection(BASE, 1, Fraction(1, 30))
    ledger, way = way_of(tmp_path, mechanism)
    judge = Counting(at=0)
    told = way.answer(b"x", lambda: Bounded(VALUE, mechanism.sensitivity), judge)
    assert told.value.shape == (1, 1)
    draws = list(ledger.store.rows("kind = 'draw'"))
    assert [row.body["count"] for row in draws] == [1]
    # The same question again: the same answer, without a judge, and without a draw.
    again = way.answer(b"x", lambda: pytest.fail("asked again"), judge)
    assert np.array_equal(again.value, told.value)
    lengths = set()
    for number in range(2):
        way.answer(bytes([number]), lambda: Bounded(VALUE, mechanism.sensitivity), Counting(0))
    for row in ledger.store.rows("kind IN ('draw', 'commit')"):
        lengths.add((row.kind, *sorted(row.body)))
    assert len(lengths) == 2
    verify(ledger)


def test_an_interrupted_selection_is_lost_and_not_gone_on_with(tmp_path):
    mechanism = PrivateSelection(BASE, 1, Fraction(1, 1000))
    ledger, way = way_of(tmp_path, mechanism, count=2)
    with pytest.raises(KeyboardInterrupt):
        way.answer(b"x", lambda: Bounded(VALUE, mechanism.sensitivity), Counting(at=1))
    assert way.left == 1
    again = Gate(Ledger.open(ledger.path), ids=["a"]).reopen("")["wish 1"]
    assert not again.knows(b"x")
    assert again.left == 1


# -- the price ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rho", "once", "best"),
    [(0.03055, 1.0, 2.13), (0.10826, 2.0, 4.02), (0.55095, 5.0, 8.92)],
)
def test_a_geometric_number_of_ten_in_the_mean(rho, once, best):
    """Integer orders alone cost 0.01 at the last."""
    base = tuple(order * rho for order in renyi.ORDERS)
    assert renyi.epsilon(base, 1e-5) == pytest.approx(once, abs=0.01)
    selected = renyi.best_of(base, Fraction(1, 10), logarithmic=False)
    assert renyi.epsilon(selected, 1e-5) == pytest.approx(best, abs=0.013)


@pytest.mark.parametrize("tries", ["geometric", "logarithmic"])
def test_it_agrees_with_dp_accounting(tries):
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    stop, logarithmic = Fraction(1, 10), tries == "logarithmic"
    mean = renyi.mean_runs(stop, logarithmic=logarithmic)
    for rho in (0.03, 0.5):
        orders = [float(order) for order in renyi.ORDERS]
        peer = RdpAccountant(orders)
        event = dp_event.RepeatAndSelectDpEvent(dp_event.ZCDpEvent(rho), mean, not logarithmic)
        peer.compose(event)
        base = tuple(order * rho for order in renyi.ORDERS)
        own = renyi.epsilon(renyi.best_of(base, stop, logarithmic=logarithmic), 1e-5)
        assert own == pytest.approx(peer.get_epsilon(1e-5), rel=1e-6)


THREE = {"here": [0.01 * math.e, 0.4 / math.e], "there": [0.01, 0.4]}


@pytest.mark.parametrize("broken", [True, False])
def test_conditioning_on_acceptance_is_not_selection(broken):
    """Three points, the first two accepted: base 1.0, drawn again until accepted 1.855."""
    laws = {name: np.array([*p, 1 - sum(p)]) for name, p in THREE.items()}
    losses = np.abs(np.log(laws["here"] / laws["there"]))
    assert losses.max() == pytest.approx(1.0)
    if broken:
        accepted = {name: law[:2] / law[:2].sum() for name, law in laws.items()}
        twin = np.abs(np.log(accepted["here"] / accepted["there"])).max()
        assert twin == pytest.approx(1.855, abs=5e-4)
        assert losses.max() < twin < 2 * losses.max()
        return
    stop, order = Fraction(1, 2), (1, 0, 2)  # from worst to best
    best = {}
    for name, law in laws.items():
        below = np.concatenate([[0.0], np.cumsum(law[list(order)])])
        best[name] = np.diff(0.5 * below / (1 - 0.5 * below))
    curve = renyi.best_of(renyi.pure(1.0), stop, logarithmic=False)
    for alpha, bound in zip(renyi.ORDERS, curve, strict=True):
        for one, other in (("here", "there"), ("there", "here")):
            logs = alpha * np.log(best[one]) + (1 - alpha) * np.log(best[other])
            assert logsumexp(logs) / (alpha - 1) <= bound


def test_a_selection_costs_more_than_a_run_and_less_than_all():
    for base in (BASE, GaussianAnswers(100, 4, 400)):
        one = price(base.lines(5), RECORD).epsilon(1e-5)
        selected = price(PrivateSelection(base, 5, Fraction(1, 10)).lines(1), RECORD)
        assert one < selected.epsilon(1e-5)
        assert selected.pld(1e-5) is None


def test_tables_are_paid_for_in_the_mean():
    base = GaussianAnswers(100, 4, 400)
    (event, _) = PrivateSelection(base, 5, Fraction(1, 10)).lines(1)[0]
    assert event.noise_samples == 10 * 5 * 4


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "more"),
    [
        (BASE, {"stop": Fraction(1)}),
        (BASE, {"stop": Fraction(1, 1001)}),
        (BASE, {"tries": "poisson"}),
        (BASE, {"rows": 0}),
        (GaussianSum(10, width=3, squared_norm=4), {}),
        (ConfidentVotes(10, 3, 5, most_answers=1), {}),
        (PrivateSelection(BASE, 1, Fraction(1, 2)), {}),
    ],
)
def test_what_cannot_be_selected_from(base, more):
    with pytest.raises(BadInput):
        PrivateSelection(**{"base": base, "rows": 1, "stop": Fraction(1, 2), **more})


def test_entries_of_a_run_are_checked(tmp_path):
    mechanism = PrivateSelection(BASE, 1, Fraction(1, 2))
    ledger, way = way_of(tmp_path, mechanism)
    with pytest.raises(BadInput, match="points of the grid"):
        way.answer(b"x", lambda: Bounded(np.array([[0, 4, 0]]), mechanism.sensitivity))
    assert not list(ledger.store.rows("kind = 'draw'"))


def test_descriptions_come_back():
    mechanism = PrivateSelection(BASE, 2, Fraction(1, 3), "logarithmic")
    told = json.loads(json.dumps(mechanism.describe()))
    assert mechanism_from_json(told) == mechanism
    (event, _) = mechanism.lines(1)[0]
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event
    nested = {**told, "base": told}
    with pytest.raises(UnsupportedEvent):
        mechanism_from_json(nested)
    body = event.to_json()
    for change in (
        {"base": [{**body, "count": 1}]},
        {"base": []},
        {"base": None},
        {"tries": "often"},
        {"stop": "1"},
    ):
        with pytest.raises(UnsupportedEvent):
            event_from_json({**body, **change})
    assert isinstance(event, SelectionEvent)
