"""The sketch: it costs what it says, goes on after a cut, and its samples look like the classes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from stillroom.data import Dataset, digits
from stillroom.errors import BadInput, NotSanitised
from stillroom.features.basis import Basis
from stillroom.gate import Budget, Gate, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.ledger import draws, verify
from stillroom.private import sketch_records
from stillroom.recipe.common import FeaturesSection
from stillroom.sources import sketch_section as source
from stillroom.sources.sketch_section import SHARES, SketchSection
from stillroom.vocabulary import RECORD, Pair, Relation, Sanitised, Sealed, Unit

SHAPE, FULL_SCALE = (8, 8), 16.0
SMALL = {"mu": 3, "directions": 8, "radius": 6, "residual": 4}


@pytest.fixture(scope="module")
def data():
    return digits()


class NoNoise:
    """A passage that says what it was given."""

    def __init__(self, name, mechanism):
        self.name, self.mechanism, self.count, self.left, self.given = name, mechanism, 1, 1, []

    def ahead(self, rows):
        return self.left

    def answer(self, question, ask):
        bounded = ask()
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


def requests(sketch, classes=10, shape=SHAPE):
    """Mechanisms by name; a sketch's noise is the recipe's own, whatever scale is sought."""
    asked = sketch.requests(shape, classes)
    assert all((request.count, request.sought) == (1, False) for request in asked)
    return {request.name: request.at(Fraction(1)) for request in asked}


def lines(sketch):
    return [line for one in requests(sketch, shape=(28, 28)).values() for line in one.lines(1)]


def records_of(data, sketch):
    return sketch_records(
        Sealed(data), basis=sketch.basis(SHAPE), full_scale=FULL_SCALE, clip=sketch.clip
    )


def passages_without_noise(sketch, **given):
    return {name: NoNoise(name, one) for name, one in requests(sketch, **given).items()}


@pytest.mark.parametrize("lloyd", [1, 3, 7])
def test_the_shares_are_mu_squared_exactly(lloyd):
    sketch = SketchSection.of(mu="0.1", lloyd=lloyd)
    assert sum(SHARES) == 1
    assert sum(sketch.squared_mus()) == Fraction(1, 100)
    asked = requests(sketch, shape=(28, 28)).values()
    for mechanism, mu in zip(asked, sketch.squared_mus(), strict=True):
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
    sketch = SketchSection.of(mu=0.1)
    assert exact < price(lines(sketch), RECORD).epsilon(1e-5) < exact + 1e-5
    # The twin whose steps of Lloyd's do not share costs visibly more.
    cheap = lines(SketchSection.of(mu=0.1, lloyd=1))
    assert price([*cheap[:2], *[cheap[2]] * 3, cheap[3]], RECORD).epsilon(1e-5) > exact + 0.05


@pytest.mark.parametrize(
    "numbers",
    [
        {"mu": 0},
        {"mu": "much"},
        {"mu": float("nan")},
        {"coefficients": 0},
        {"directions": 0},
        {"centres": 0},
        {"lloyd": 0},
        {"radius": 0},
        {"residual": -1},
        {"whitened": 0},
        {"chroma": 0},
        {"shares": ["1/2", "1/4", "1/4"]},
        {"shares": ["1/2", "1/4", "1/8", "1/4"]},
        {"shares": ["1/2", "1/2", "1/2", "-1/2"]},
        {"spread": [1.2, 1.0]},
        {"spread": [float("nan"), 1.0]},
        {"spread": [-1.0, 1.0]},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        SketchSection.of(**{**SMALL, **numbers})
    assert caught.value.what.startswith(next(iter(numbers)))


@pytest.mark.parametrize("full_scale", [0, float("inf")])
def test_a_white_that_is_none(full_scale):
    with pytest.raises(BadInput) as caught:
        FeaturesSection.of(full_scale=full_scale)
    assert caught.value.what.startswith("full_scale: ")


@pytest.mark.parametrize(
    ("numbers", "shape"), [({}, (1, 8)), ({}, (8, 8, 4)), ({}, (64,)), ({"directions": 65}, SHAPE)]
)
def test_pictures_that_have_no_such_basis(numbers, shape):
    sketch = SketchSection.of(**{**SMALL, **numbers})
    for ask in (sketch.basis, lambda shape: sketch.requests(shape, 10)):
        with pytest.raises(BadInput, match="needs pictures") as caught:
            ask(shape)
        assert caught.value.where == "sketch"


def test_a_sketch_without_classes():
    with pytest.raises(BadInput, match="width"):
        requests(SketchSection.of(**SMALL), classes=0)


def test_a_grid_too_coarse_for_the_noise_is_refused(monkeypatch):
    monkeypatch.setattr(source, "GRID", 2)
    with pytest.raises(BadInput, match="finer grid"):
        requests(SketchSection.of(**{**SMALL, "mu": 50}))


def test_a_grid_of_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(source, "GRID", 0)
    with pytest.raises(BadInput, match="grid"):
        requests(SketchSection.of(**SMALL))


@pytest.mark.parametrize("more", [{}, {"whitened": 1}], ids=["plain", "whitened"])
def test_the_requests_are_the_records_own_bounds(data, more):
    """Without noise: every request has the width and the sensitivity of what is released."""
    sketch = SketchSection.of(**SMALL, **more)
    passages = passages_without_noise(sketch)
    mixture = sketch.draw(passages, records_of(data, sketch))
    assert all(passage.given for passage in passages.values())
    assert min(correlations(mixture, data)) > 0.95
    assert mixture.weights.sum() == pytest.approx(len(data))


def test_digits_through_the_gate(data, tmp_path):
    sketch = SketchSection.of(**SMALL)
    records = records_of(data, sketch)
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=data.ids, purpose="benchmark")
    ledger.set_budget(Budget(30.0, 1e-5), reason="a test")
    gate = Gate(ledger, ids=data.ids)
    wishes = {name: (mechanism, 1) for name, mechanism in requests(sketch).items()}
    passages = gate.reserve_all(wishes, recipe="this run")
    names = list(passages)

    # A cut after the second release; what was drawn is read again, the rest is drawn once.
    class Cut:
        mechanism = passages[names[2]].mechanism

        def ahead(self, rows):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sketch.draw({**passages, **dict.fromkeys(names[2:], Cut())}, records)
    passages = Gate(Ledger.open(ledger.path), ids=data.ids).reopen("this run")
    assert list(passages) == names
    assert [passage.left for passage in passages.values()] == [0, 0, 1, 1, 1, 1]
    early = [answers_of(passages[name])[0] for name in names[:2]]
    mixture = sketch.draw(passages, records)
    assert min(correlations(mixture, data)) > 0.9
    for name, before in zip(names, early, strict=False):
        assert np.array_equal(answers_of(passages[name])[0], before)

    # The block is used up: drawing again reads it and gives the same pictures.
    block = passages[names[0]].block
    passages = Gate(Ledger.open(ledger.path), ids=data.ids).reopen("this run")
    nobody = records_of(data.select(np.arange(0)), sketch)
    again = sketch.draw(passages, nobody)
    assert np.array_equal(again.sample(2, 50)[0], mixture.sample(2, 50)[0])
    kinds = [row.kind for row in ledger.store.rows("block = ?", (block,))]
    assert kinds == ["draw", "commit"] * 6
    verify(ledger)


def answers_of(passage):
    """What a passage has said so far, as the ledger keeps it."""
    store = passage._ledger.store
    return [
        draws.answers(store, one.draw)
        for one in draws.committed(store, passage.block, passage._place)
    ]


def test_a_lost_answer_is_not_drawn_again(data):
    sketch = SketchSection.of(**SMALL)
    passages = passages_without_noise(sketch)
    list(passages.values())[3].left = 0
    with pytest.raises(BadInput, match=r"incomplete.*lost.*new run"):
        sketch.draw(passages, records_of(data, sketch))
    assert [bool(passage.given) for passage in passages.values()] == [True] * 3 + [False] * 3


def test_other_passages_than_the_sketch_needs(data):
    """They are found by name before anything is drawn."""
    sketch = SketchSection.of(**SMALL)
    passages = passages_without_noise(sketch)
    last = passages.pop("sketch: cluster moments")
    with pytest.raises(KeyError, match="cluster moments"):
        sketch.draw({**passages, "sketch: more": last}, records_of(data, sketch))
    assert not any(passage.given for passage in passages.values())


def test_records_with_a_wider_clip_do_not_pass(data, tmp_path):
    """The gate compares what was paid for with what the records can do."""
    sketch, wider = SketchSection.of(**SMALL), SketchSection.of(**{**SMALL, "radius": 7})
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=data.ids, purpose="benchmark")
    ledger.set_budget(Budget(30.0, 1e-5), reason="a test")
    wishes = {name: (mechanism, 1) for name, mechanism in requests(sketch).items()}
    passages = Gate(ledger, ids=data.ids).reserve_all(wishes)
    with pytest.raises(NotSanitised, match="further"):
        sketch.draw(passages, records_of(data, wider))


def test_shares_of_the_recipe_s_own():
    sketch = SketchSection.of(mu="1/10", shares=["0.05", "0.15", "0.4", "0.4"], lloyd=2)
    parts = [Fraction(5), Fraction(15), Fraction(20), Fraction(20), Fraction(40)]
    assert sketch.squared_mus() == [part / 100 / 100 for part in parts]
    exact = gaussian_epsilon(0.1, 1e-5)
    assert exact < price(lines(sketch), RECORD).epsilon(1e-5) < exact + 1e-5


def test_whitened_covariances_are_those_of_the_records(data):
    """Without noise: how far each class spreads, along the sketch's own directions."""
    numbers = {**SMALL, "radius": 8, "residual": 8, "whitened": 4, "centres": 1}
    sketch = SketchSection.of(**numbers)
    passages = {
        name: NoNoise(name, replace(one, sigma=Fraction(3)))
        for name, one in requests(sketch).items()
    }
    mixture = sketch.draw(passages, records_of(data, sketch))
    rows = (data.x / FULL_SCALE).reshape(len(data), -1) @ mixture.basis.matrix.T
    for which in range(10):
        own = (rows[data.y == which] - mixture.centres[which, 0]) @ mixture.directions
        true = own.T @ own / len(own)
        away = np.linalg.norm(mixture.covariances[which] - true) / np.linalg.norm(true)
        assert away < 0.1


def coloured(data):
    """The digits, each class in a colour of its own."""
    shades = np.stack([np.linspace(0.2, 1, 10), np.linspace(1, 0.2, 10), np.full(10, 0.5)], axis=1)
    x = data.x[..., None] * shades[data.y][:, None, None, :]
    return Dataset(x, data.y, data.classes, ids=data.ids)


@pytest.mark.parametrize("more", [{}, {"whitened": 1}], ids=["plain", "whitened"])
def test_pictures_in_colour(data, more):
    sketch = SketchSection.of(**SMALL, coefficients=60, chroma=8, **more)
    shape, colourful = (8, 8, 3), coloured(data)
    assert sketch.basis(shape) == Basis(8, 8, 60, 8)
    passages = passages_without_noise(sketch, shape=shape)
    records = sketch_records(
        Sealed(colourful), basis=sketch.basis(shape), full_scale=FULL_SCALE, clip=sketch.clip
    )
    mixture = sketch.draw(passages, records)
    assert min(correlations(mixture, colourful)) > 0.9


def test_a_basis_of_colour_has_room_for_brightness():
    few = SketchSection.of(**{**SMALL, "coefficients": 20})
    assert few.basis((8, 8, 3)) == Basis(8, 8, 20, 9)
    assert SketchSection.of(**SMALL, chroma=99).basis((8, 8, 3)) == Basis(8, 8, 192, 64)
    for numbers in ({"coefficients": 2, "directions": 1}, {"coefficients": 1, "directions": 1}):
        with pytest.raises(BadInput, match="needs pictures"):
            SketchSection.of(**{**SMALL, **numbers}).basis((8, 8, 3))


def test_a_person_costs_as_a_record_does_with_so_much_more_noise():
    sketch = SketchSection.of(mu="1/10", whitened=1)
    asked = [one.at(Fraction(1)) for one in sketch.requests((28, 28), 10, Unit.PERSON, 3)]
    single = [one.at(Fraction(1)) for one in sketch.requests((28, 28), 10)]
    for one, other in zip(asked, single, strict=True):
        assert one.unit is Unit.PERSON
        assert one.squared_norm == 9 * other.squared_norm
        assert one.sigma == pytest.approx(3 * other.sigma, rel=1e-3)
    told = [line for one in asked for line in one.lines(1)]
    exact = gaussian_epsilon(0.1, 1e-5)
    assert exact < price(told, Pair(Unit.PERSON, Relation.ADD_OR_REMOVE)).epsilon(1e-5)
    assert price(told, Pair(Unit.PERSON, Relation.ADD_OR_REMOVE)).epsilon(1e-5) < exact + 1e-5
    assert price(told, RECORD).epsilon(1e-5) == float("inf")


def test_persons_through_the_requests(data):
    """Without noise: the bounds of persons are those that are paid for."""
    owners = tuple(f"person {i // 2}" for i in range(len(data)))
    owned = Dataset(data.x, data.y, data.classes, ids=data.ids, persons=owners)
    sketch = SketchSection.of(**SMALL, whitened=1)
    asked = sketch.requests(SHAPE, 10, Unit.PERSON, 2)
    passages = {one.name: NoNoise(one.name, one.at(Fraction(1))) for one in asked}
    records = sketch_records(
        Sealed(owned),
        basis=sketch.basis(SHAPE),
        full_scale=FULL_SCALE,
        clip=sketch.clip,
        unit=Unit.PERSON,
        max_records_per_person=2,
    )
    assert min(correlations(sketch.draw(passages, records), data)) > 0.9
