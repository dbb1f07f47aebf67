"""The sketch: it costs what it says, goes on after a cut, and its samples look like the classes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from stillroom.data import digits
from stillroom.errors import BadInput, NotSanitised
from stillroom.gate import Budget, Gate, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.ledger import verify
from stillroom.methods.sketch import SHARES, Sketch
from stillroom.vocabulary import RECORD, Sanitised, Unit

SMALL = {"mu": 3, "shape": (8, 8), "full_scale": 16, "directions": 8, "radius": 6, "residual": 4}


@pytest.fixture(scope="module")
def data():
    return digits()


class NoNoise:
    """A way that says what it was given."""

    def __init__(self, mechanism):
        self.mechanism, self.count, self.left, self.given = mechanism, 1, 1, []

    def earlier(self):
        return self.given

    def release(self, bounded):
        self.mechanism.check(bounded.open_bounded())
        assert self.mechanism.sensitivity.covers(bounded.sensitivity)
        assert bounded.sensitivity.covers(self.mechanism.sensitivity)  # no noise is wasted
        self.left, self.given = 0, [Sanitised(bounded.open_bounded(), ())]
        return self.given[0]


def correlations(mixture, data):
    """Of each class: its mean sample with its true mean."""
    pictures, classes = mixture.sample(1, 4000)
    return [
        np.corrcoef(
            pictures[classes == c].mean(axis=0).ravel(), data.x[data.y == c].mean(axis=0).ravel()
        )[0, 1]
        for c in range(10)
    ]


def lines(sketch, classes=10):
    return [line for mechanism, count in sketch.wishes(classes) for line in mechanism.lines(count)]


@pytest.mark.parametrize("lloyd", [1, 3, 7])
def test_the_shares_are_mu_squared_exactly(lloyd):
    sketch = Sketch(mu="0.1", shape=(28, 28), lloyd=lloyd)
    assert sum(SHARES) == 1
    assert sum(sketch.squared_mus()) == Fraction(1, 100)
    for (mechanism, count), mu in zip(sketch.wishes(10), sketch.squared_mus(), strict=True):
        assert count == 1
        # Never less noise than mu allows, and hardly more.
        assert mechanism.sigma**2 * mu >= mechanism.squared_norm
        assert mechanism.sigma**2 * mu <= mechanism.squared_norm * (1 + Fraction(1, 10**5))


def gaussian_epsilon(mu, delta):
    """The exact epsilon of one Gaussian release (Balle and Wang 2018, Theorem 8)."""
    return brentq(
        lambda e: ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu) - delta, 0, 5
    )


def test_mu_one_tenth_is_epsilon_0_34():
    exact = gaussian_epsilon(0.1, 1e-5)
    assert exact == pytest.approx(0.3407, abs=1e-4)
    sketch = Sketch(mu=0.1, shape=(28, 28))
    assert exact < price(lines(sketch), RECORD).epsilon(1e-5) < exact + 1e-5
    # The twin whose steps of Lloyd's do not share costs visibly more.
    cheap = lines(Sketch(mu=0.1, shape=(28, 28), lloyd=1))
    assert price([*cheap[:2], *[cheap[2]] * 3, cheap[3]], RECORD).epsilon(1e-5) > exact + 0.05


def test_a_person_is_not_hidden():
    with pytest.raises(BadInput, match="one record, not one person"):
        Sketch(mu="1/10", shape=(28, 28)).wishes(10, Unit.PERSON)


@pytest.mark.parametrize(
    "numbers",
    [
        {"mu": 0},
        {"mu": "much"},
        {"mu": float("nan")},
        {"shape": (1, 8)},
        {"shape": (8, 8, 3)},
        {"full_scale": 0},
        {"full_scale": float("inf")},
        {"coefficients": 0},
        {"directions": 65},
        {"directions": 0},
        {"centres": 0},
        {"lloyd": 0},
        {"grid": 0},
        {"radius": 0},
        {"residual": -1},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        Sketch(**{**SMALL, **numbers})
    assert caught.value.where == next(iter(numbers))


def test_a_sketch_without_classes():
    with pytest.raises(BadInput, match="classes"):
        Sketch(**SMALL).wishes(0)


def test_a_grid_too_coarse_for_the_noise_is_refused():
    with pytest.raises(BadInput, match="finer grid"):
        Sketch(**{**SMALL, "grid": 2, "mu": 50}).wishes(10)


def test_the_wishes_are_the_records_own_bounds(data):
    """Without noise: every wish has the width and the sensitivity of what is released."""
    sketch = Sketch(**SMALL)
    ways = [NoNoise(mechanism) for mechanism, _ in sketch.wishes(10)]
    mixture = sketch.draw(ways, sketch.records(data.x, data.y, 10))
    assert all(way.given for way in ways)
    assert min(correlations(mixture, data)) > 0.95
    assert mixture.weights.sum() == pytest.approx(len(data))


def test_digits_through_the_gate(data, tmp_path):
    sketch = Sketch(**SMALL)
    records = sketch.records(data.x, data.y, 10)
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=data.ids, purpose="benchmark")
    ledger.set_budget(Budget(30.0, 1e-5), reason="a test")
    gate = Gate(ledger, ids=data.ids)
    ways = gate.reserve_all(sketch.wishes(10), recipe="this run")

    # A cut after the second release; what was drawn is read again, the rest is drawn once.
    class Cut:
        def earlier(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sketch.draw([*ways[:2], *[Cut()] * 4], records)
    ways = Gate(Ledger.open(ledger.path), ids=data.ids).reopen("this run")
    assert [way.left for way in ways] == [0, 0, 1, 1, 1, 1]
    early = [way.earlier()[0].value for way in ways[:2]]
    mixture = sketch.draw(ways, records)
    assert min(correlations(mixture, data)) > 0.9
    assert all(
        np.array_equal(way.earlier()[0].value, before)
        for way, before in zip(ways, early, strict=False)
    )

    # The block is used up: drawing again reads it and gives the same pictures.
    again = sketch.draw(ways, sketch.records(data.x[:0], data.y[:0], 10))
    assert np.array_equal(again.sample(2, 50)[0], mixture.sample(2, 50)[0])
    kinds = [row.kind for row in ledger.store.rows("block = ?", (ways[0].block,))]
    assert kinds == ["draw", "commit"] * 6
    verify(ledger)


def test_a_lost_answer_is_not_drawn_again(data):
    sketch = Sketch(**SMALL)
    ways = [NoNoise(mechanism) for mechanism, _ in sketch.wishes(10)]
    ways[3].left = 0
    with pytest.raises(BadInput, match=r"incomplete.*lost.*new run"):
        sketch.draw(ways, sketch.records(data.x, data.y, 10))
    assert [bool(way.given) for way in ways] == [True] * 3 + [False] * 3


def test_other_ways_than_the_sketch_needs(data):
    sketch = Sketch(**SMALL)
    with pytest.raises(BadInput, match="needs 6 ways"):
        sketch.draw([], sketch.records(data.x, data.y, 10))


def test_records_with_a_wider_clip_do_not_pass(data, tmp_path):
    """The gate compares what was paid for with what the records can do."""
    sketch, wider = Sketch(**SMALL), Sketch(**{**SMALL, "radius": 7})
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=data.ids, purpose="benchmark")
    ledger.set_budget(Budget(30.0, 1e-5), reason="a test")
    ways = Gate(ledger, ids=data.ids).reserve_all(sketch.wishes(10))
    with pytest.raises(NotSanitised, match="further"):
        sketch.draw(ways, wider.records(data.x, data.y, 10))
