"""The gate: what it lets through, what it refuses, and what it remembers."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from drawing import drawn
from stillroom.errors import BadInput, BudgetExhausted, NotSanitised, NumericalDoubt
from stillroom.gate import (
    UNANSWERED,
    Budget,
    ConfidentVotes,
    Gate,
    GaussianSum,
    LaplaceCounts,
    Ledger,
    NoisyArgmax,
    NoisyCounts,
    NoisyVotes,
    RandomisedResponse,
)
from stillroom.gate.ledger import verify
from stillroom.gate.mechanisms.discrete_gaussian import check_sigma
from stillroom.vocabulary import Bounded, Norm, OpenGate, Sanitised, Sensitivity, Unit

VOTES = NoisyVotes(teachers=5, classes=3, sigma=40)
COUNTS = np.array([[3, 1, 1]])


@pytest.fixture
def gate(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.sqlite", ids=["a", "b"])
    ledger.set_budget(Budget(8.0, 1e-5), reason="a test")
    return Gate(ledger, ids=["a", "b"])


def draws(gate):
    return [row.body["count"] for row in gate.ledger.store.rows("kind = 'draw'")]


def test_a_release_carries_its_receipt(gate):
    way: OpenGate = gate.reserve(VOTES, 2)
    answer = drawn(way, Bounded(COUNTS, VOTES.sensitivity))
    assert answer.value.shape == (1, 3)
    (receipt,) = answer.receipts
    assert receipt.ledger == gate.ledger.id
    assert next(gate.ledger.store.rows("seq = ?", (receipt.draw,))).block == receipt.block
    doubled = answer.map(lambda value: 2 * value)
    assert isinstance(doubled, Sanitised)
    assert doubled.receipts == answer.receipts


def test_a_block_gives_no_more_than_it_was_paid_for(gate):
    way = gate.reserve(VOTES, 3)
    drawn(way, Bounded(np.repeat(COUNTS, 2, axis=0), VOTES.sensitivity))
    with pytest.raises(BudgetExhausted, match="1 answers left"):
        drawn(way, Bounded(np.repeat(COUNTS, 2, axis=0), VOTES.sensitivity))
    assert draws(gate) == [2]


def test_raw_values_and_wider_values_are_refused(gate):
    way = gate.reserve(VOTES, 3)
    with pytest.raises(NotSanitised, match="not a Bounded"):
        drawn(way, COUNTS)
    for proven in (
        Sensitivity.uniform(Norm.UNIT_STEPS, 3),
        Sensitivity.uniform(Norm.L2_SQUARED, 1),
        Sensitivity.uniform(Norm.UNIT_STEPS, 2, Unit.ENTITY),
    ):
        with pytest.raises(NotSanitised, match="move further"):
            drawn(way, Bounded(COUNTS, proven))
    assert draws(gate) == []


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (VOTES, [[6, 0, 0]]),
        (VOTES, [[-1, 0, 0]]),
        (VOTES, [[1, 1]]),
        (VOTES, [1, 1, 1]),
        (RandomisedResponse(3, Fraction(1, 2), Unit.RECORD), [[3]]),
        (NoisyCounts(40, 1), [[2**62]]),
        (GaussianSum(400, 1, 9), [[1], [1]]),
    ],
)
def test_values_that_cannot_be_are_refused_before_a_draw(gate, mechanism, value):
    way = gate.reserve(mechanism, 3)
    with pytest.raises(BadInput) as caught:
        drawn(way, Bounded(np.array(value), mechanism.sensitivity))
    assert caught.value.remedy
    assert draws(gate) == []


def test_bounded_hides_its_value():
    secret = Bounded(np.array([[1234567]]), VOTES.sensitivity)
    assert "1234567" not in repr(secret)
    assert "1234567" not in str(secret)
    with pytest.raises(BadInput, match="pickled"):
        pickle.dumps(secret)
    with pytest.raises(BadInput, match="integers"):
        Bounded(np.array([[0.5]]), VOTES.sensitivity)
    with pytest.raises(BadInput, match="int64"):
        Bounded(np.array([[2**63]], dtype=np.uint64), VOTES.sensitivity)


def test_the_same_question_gets_the_same_answer_free(gate):
    way = gate.reserve(VOTES, 2)
    asked = []

    def teachers():
        asked.append(1)
        return Bounded(COUNTS, VOTES.sensitivity)

    first = way.answer(b"picture 1", teachers)
    again = way.answer(b"picture 1", teachers)
    other = way.answer(b"picture 2", teachers)
    assert np.array_equal(first.value, again.value)
    assert again.receipts == first.receipts != other.receipts
    assert len(asked) == 2
    assert draws(gate) == [1, 1]
    # In another process and another block: the ledger remembers.
    elsewhere = Gate(Ledger.open(gate.ledger.path), ids=["a"])
    paid = elsewhere.reserve(VOTES, 1)
    recalled = paid.answer(b"picture 1", pytest.fail)
    assert np.array_equal(recalled.value, first.value)
    assert recalled.receipts == first.receipts
    assert paid.left == 1
    assert not paid.knows(b"picture 3")
    assert not elsewhere.reserve(VOTES, 1, recipe="another").knows(b"picture 1")
    assert not elsewhere.reserve(NoisyVotes(5, 3, 41), 1).knows(b"picture 1")


def test_sums_are_never_shared_by_question(gate):
    way, other = (gate.reserve(GaussianSum(400, 1, 9), 1) for _ in range(2))
    first = way.answer(b"weights", lambda: Bounded(np.array([[1]]), way.mechanism.sensitivity))
    assert way.knows(b"weights")
    assert not other.knows(b"weights")
    again = other.answer(b"weights", lambda: Bounded(np.array([[1]]), way.mechanism.sensitivity))
    assert again.receipts != first.receipts


def test_several_mechanisms_are_one_block_or_none(gate):
    cheap, dear = NoisyVotes(5, 3, 400), NoisyVotes(5, 3, 1)
    with pytest.raises(BudgetExhausted):
        gate.reserve_all({"cheap": (cheap, 1), "dear": (dear, 100)})
    assert not list(gate.ledger.store.rows("kind = 'block'"))
    first, second = gate.reserve_all({"cheap": (cheap, 1), "votes": (VOTES, 2)}).values()
    assert first.block == second.block
    drawn(first, Bounded(COUNTS, cheap.sensitivity))
    with pytest.raises(BudgetExhausted):
        drawn(first, Bounded(COUNTS, cheap.sensitivity))
    drawn(second, Bounded(COUNTS, VOTES.sensitivity))


def test_wishes_are_found_again_by_their_names(gate):
    sums = GaussianSum(400, 2, 9)
    assert gate.reopen("a run") is None
    paid = gate.reserve_all({"votes": (VOTES, 2), "second moment": (sums, 1)}, recipe="a run")
    assert [(name, way.name, way.count) for name, way in paid.items()] == [
        ("votes", "votes", 2),
        ("second moment", "second moment", 1),
    ]
    first = paid["votes"].answer(b"one", lambda: Bounded(COUNTS, VOTES.sensitivity))
    again = Gate(Ledger.open(gate.ledger.path), ids=["a"]).reopen("a run")
    assert list(again) == list(paid)
    assert again["votes"].answer(b"one", pytest.fail).receipts == first.receipts
    (block,) = gate.ledger.store.rows("kind = 'block'")
    assert [wish["name"] for wish in block.body["wishes"]] == list(paid)
    verify(gate.ledger)


def test_wishes_without_a_name_are_numbered(gate):
    """As in older ledgers, whose rows hold no names."""
    wishes = {"wish 1": (VOTES, 2), "wish 2": (NoisyVotes(5, 3, 41), 1)}
    ways = gate.reserve_all(wishes, recipe="a run")
    assert [way.name for way in ways.values()] == ["wish 1", "wish 2"]
    (block,) = gate.ledger.store.rows("kind = 'block'")
    assert not any("name" in wish for wish in block.body["wishes"])
    again = Gate(Ledger.open(gate.ledger.path), ids=["a"]).reopen("a run")
    assert list(again) == ["wish 1", "wish 2"]
    assert [way.name for way in again.values()] == ["wish 1", "wish 2"]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 65, 3])
def test_a_name_can_be_read(gate, name):
    with pytest.raises(BadInput, match="cannot be called"):
        gate.reserve_all({name: (VOTES, 1)})
    assert not list(gate.ledger.store.rows("kind = 'block'"))


@pytest.mark.parametrize("count", [0, -1, 1.5, None])
def test_a_block_says_how_much(gate, count):
    with pytest.raises(BadInput, match="answers"):
        gate.reserve(VOTES, count)


def test_confident_votes_stop_at_their_cap(gate):
    mechanism = ConfidentVotes(5, 3, 20, threshold=-(10**6), threshold_sigma=30, most_answers=3)
    way = gate.reserve(mechanism, 10)
    batches = [
        drawn(way, Bounded(np.repeat(COUNTS, 5, axis=0), mechanism.sensitivity)) for _ in "ab"
    ]
    answered = [mechanism.answered(batch.value) for batch in batches]
    assert answered == [3, 0]
    assert (batches[1].value == UNANSWERED).all()


class TestPoisson:
    """A sampled sum: sample, compute, release; one after the other, each its own row."""

    SUM = GaussianSum(400, 2, 9, rate=Fraction(1, 2))

    @pytest.fixture
    def way(self, gate):
        return gate.reserve(self.SUM, 3)

    def bounded(self, secret):
        return Bounded(np.array([[1, 2]]), self.SUM.sensitivity, secret)

    def test_one_row_a_step(self, gate, way):
        for _ in range(3):
            secret = way.poisson()
            assert secret.open_secret(1000).dtype == np.bool_
            drawn(way, self.bounded(secret))
        assert draws(gate) == [1, 1, 1]
        with pytest.raises(BudgetExhausted):
            way.poisson()

    def test_the_row_is_written_before_the_sample_is_drawn(self, gate, way):
        way.poisson()
        assert draws(gate) == [1]

    def test_a_sum_without_its_sample_is_refused(self, way):
        with pytest.raises(NotSanitised, match="sample"):
            drawn(way, self.bounded(None))

    def test_an_unopened_sample_is_refused(self, way):
        with pytest.raises(NotSanitised, match="sample"):
            drawn(way, self.bounded(way.poisson()))

    def test_an_old_sample_is_refused(self, way):
        old = way.poisson()
        old.open_secret(5)
        drawn(way, self.bounded(old))
        new = way.poisson()
        new.open_secret(5)
        with pytest.raises(NotSanitised, match="sample"):
            drawn(way, self.bounded(old))

    def test_samples_cannot_be_chosen_among(self, way):
        way.poisson()
        with pytest.raises(BadInput, match="not used"):
            way.poisson()

    def test_a_sample_opens_once_and_hides(self, way):
        secret = way.poisson()
        secret.open_secret(3)
        with pytest.raises(BadInput, match="twice"):
            secret.open_secret(3)
        assert repr(secret) == "SecretSample(rate=1/2)"

    def test_only_sampled_sums_have_samples(self, gate):
        with pytest.raises(BadInput, match="not paid for"):
            gate.reserve(VOTES, 1).poisson()
        with pytest.raises(BadInput, match="not paid for"):
            gate.reserve(GaussianSum(400, 2, 9), 1).poisson()


def test_float_answers_never_leave(gate):
    class Floats(NoisyVotes):
        def draw(self, entropy, value, allowance):
            return value + 0.5

    way = gate.reserve(Floats(5, 3, 40), 1)
    with pytest.raises(NumericalDoubt, match="instead of integers"):
        drawn(way, Bounded(COUNTS, VOTES.sensitivity))


@pytest.mark.parametrize(
    "make",
    [
        lambda: NoisyVotes(0, 3, 40),
        lambda: NoisyVotes(5, 1, 40),
        lambda: NoisyVotes(5, 3, 0),
        lambda: NoisyVotes(5, 3, float("nan")),
        lambda: NoisyVotes(5, 3, float("inf")),
        lambda: NoisyVotes(5, 3, "a lot"),
        lambda: NoisyArgmax(5, True, 40),
        lambda: NoisyVotes(5, 3, 2**60),
        lambda: ConfidentVotes(5, 3, 40, threshold_sigma=0),
        lambda: ConfidentVotes(5, 3, 40, most_answers=0),
        lambda: LaplaceCounts(2**51, 1),
        lambda: LaplaceCounts(1, 0),
        lambda: GaussianSum(2, 1, 1),
        lambda: GaussianSum(20, 1, 1, rate=0),
        lambda: GaussianSum(20, 1, 1, rate=Fraction(3, 2)),
        lambda: RandomisedResponse(3, Fraction(1)),
        lambda: RandomisedResponse(3, Fraction(1, 4)),
        lambda: Budget(0, 1e-5),
        lambda: Budget(float("nan"), 1e-5),
        lambda: Budget(1, 1.0),
        lambda: Budget(1, 1e-13),
    ],
)
def test_nonsense_is_refused_with_a_remedy(make):
    with pytest.raises(BadInput) as caught:
        make()
    assert caught.value.remedy
    assert caught.value.exit_code == 2


def test_sigma_means_what_is_written():
    assert check_sigma(0.1) == check_sigma("0.1") == Fraction(1, 10)
