"""A continued run: old answers in order and free, new ones drawn, other questions refused."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
from fractions import Fraction

import numpy as np
import pytest

from gate.ledger.tracing import SUPPORTED, traced
from stillroom.errors import BadInput, BudgetExhausted, DoesNotVerify
from stillroom.gate import (
    Budget,
    ConfidentVotes,
    Gate,
    GaussianSum,
    Ledger,
    NoisyVotes,
    Passage,
)
from stillroom.gate.entropy import Entropy
from stillroom.gate.ledger import verify
from stillroom.vocabulary import Bounded, OpenGate

VOTES = NoisyVotes(teachers=5, classes=3, sigma=40)
SAMPLED = GaussianSum(400, 2, 9, rate=Fraction(1, 2))
CONFIDENT = ConfidentVotes(5, 3, 20, threshold=-(10**6), threshold_sigma=30, most_answers=3)
IDS = ["a", "b"]


@pytest.fixture
def path(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.sqlite", ids=IDS)
    ledger.set_budget(Budget(20.0, 1e-5), reason="a test")
    ledger.close()
    return ledger.path


def begin(path, mechanism, count, recipe="a run") -> OpenGate:
    return Gate(Ledger.open(path), ids=IDS).reserve(mechanism, count, recipe=recipe)


def go_on(path, recipe="a run", kind: type[Passage] = Passage) -> OpenGate:
    """As another process would: a new ledger, a new gate, the same block."""
    (way,) = Gate(Ledger.open(path), ids=IDS).reopen(recipe).values()
    way.__class__ = kind
    return way


def rows(path, kind="draw"):
    return list(Ledger.open(path).store.rows("kind = ?", (kind,)))


def votes(*counts):
    return lambda: Bounded(np.array(counts or [[3, 1, 1]]), VOTES.sensitivity)


def questions(way, *asked):
    """One answer a question, all bytes of them."""
    return [way.answer(question, votes()).value.tobytes() for question in asked]


def sampled_sum(way):
    def ask():
        secret = way.poisson()
        return Bounded(
            np.array([[1, 2]]) * secret.open_secret(1).sum(), SAMPLED.sensitivity, secret
        )

    return ask


def dies(entropy, count):
    raise KeyboardInterrupt


def lost(way, monkeypatch, question=b"lost", ask=None):
    """A draw whose process dies before its commit."""
    with monkeypatch.context() as patch:
        patch.setattr(Entropy, "octets", dies)
        with pytest.raises(KeyboardInterrupt):
            way.answer(question, ask or votes())


def checks_replay(path, kind: type[Passage]) -> None:
    """What a replay must do; every broken twin of it fails here."""
    first = questions(begin(path, VOTES, 5), b"one", b"two", b"three")
    way = go_on(path, kind=kind)
    assert [way.answer(q, pytest.fail).value.tobytes() for q in (b"one", b"two")] == first[:2]
    refused = []
    for question in (b"another", b"four"):
        try:
            way.answer(question, lambda: refused.append("asked") or votes()())
        except BadInput as error:
            refused.append(error.what)
    assert refused == ["the run asks another question than it did before at this point"] * 2
    assert len(rows(path)) == 3
    assert way.answer(b"three", pytest.fail).value.tobytes() == first[2]
    way.answer(b"four", votes())
    assert len(rows(path)) == 4


def test_a_continued_run_gets_equal_bytes_in_order(path):
    checks_replay(path, Passage)
    verify(Ledger.open(path))


class DoesNotCompare(Passage):
    """Takes the next old answer for an answer to whatever is asked."""

    def answer(self, question, ask):
        if self._waiting:
            return self._kept(self._waiting.popleft())
        return super().answer(question, ask)


class Skips(Passage):
    """Forgets what is waiting when something else is asked."""

    def answer(self, question, ask):
        try:
            return super().answer(question, ask)
        except BadInput:
            self._waiting.clear()
            return super().answer(question, ask)


class SkipsAhead(Passage):
    """Looks for the question among all that is waiting."""

    def answer(self, question, ask):
        while self._waiting and self._waiting[0].key != self._key(question):
            self._waiting.popleft()
        return super().answer(question, ask)


class DrawsAgain(Passage):
    """Replays nothing."""

    def answer(self, question, ask):
        return self._release(ask(), key=self._key(question))


@pytest.mark.parametrize("twin", [DoesNotCompare, Skips, SkipsAhead, DrawsAgain])
def test_a_broken_replay_is_caught(path, twin):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        checks_replay(path, twin)


def test_another_order_is_refused_and_nothing_is_drawn(path):
    questions(begin(path, VOTES, 5), b"one", b"two")
    way = go_on(path)
    with pytest.raises(BadInput, match="another question") as caught:
        way.answer(b"two", pytest.fail)
    assert "same recipe" in caught.value.remedy
    assert way.replaying
    assert len(rows(path)) == 2


def test_an_answered_question_is_free_whatever_is_waiting(path):
    way = begin(path, VOTES, 5)
    first = questions(way, b"one", b"two")
    assert questions(way, b"two", b"one") == first[::-1]
    again = go_on(path)
    assert questions(again, b"one", b"one", b"two", b"one") == [first[0], *first, first[0]]
    # Of another block under the same recipe too (L7), but not of another recipe.
    other = begin(path, VOTES, 5)
    assert questions(other, b"two") == first[1:]
    assert other.left == 5
    assert questions(begin(path, VOTES, 5, recipe="another run"), b"two") != first[1:]
    # The newest block under the recipe has drawn nothing itself.
    assert not go_on(path).replaying


def test_what_two_blocks_were_asked_at_once_is_replayed_by_each(path):
    """Neither knew the other's answer when it drew its own."""
    one, two = begin(path, VOTES, 2), begin(path, VOTES, 2)
    first = two._release(votes()(), key=two._key(b"one")).value
    one._release(votes()(), key=one._key(b"one"))
    questions(two, b"two")
    again = go_on(path)
    assert again.block == two.block
    assert np.array_equal(again.answer(b"one", pytest.fail).value, first)
    questions(again, b"two")
    assert not again.replaying


def test_a_lost_draw_in_the_middle_stays_charged_and_is_not_replayed(path, monkeypatch):
    way = begin(path, VOTES, 4)
    first = questions(way, b"one")
    lost(way, monkeypatch, b"two")
    first += questions(way, b"two")
    again = go_on(path)
    assert questions(again, b"one", b"two") == first
    assert again.left == again.ahead(5) == 1
    questions(again, b"three")
    assert again.ahead(1) == 0
    with pytest.raises(BudgetExhausted):
        questions(again, b"four")


def test_sampled_sums_are_replayed_and_go_on(path, monkeypatch):
    way = begin(path, SAMPLED, 4)
    first = [way.answer(b"sum %d" % n, sampled_sum(way)).value for n in (1, 2)]
    lost(way, monkeypatch, b"sum 3", sampled_sum(way))
    assert len(rows(path)) == 3
    again = go_on(path)
    for number, value in enumerate(first, 1):
        assert np.array_equal(again.answer(b"sum %d" % number, pytest.fail).value, value)
    again.answer(b"sum 3", sampled_sum(again))
    assert again.ahead(1) == 0
    with pytest.raises(BudgetExhausted):
        again.answer(b"sum 4", sampled_sum(again))
    verify(Ledger.open(path))


def test_the_sample_of_a_lost_sum_is_not_used_for_the_next(path):
    way = begin(path, SAMPLED, 4)
    secret = []

    def ask():
        secret.append(way.poisson())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        way.answer(b"sum 1", ask)
    assert len(rows(path)) == 1  # before the sample could be opened
    with pytest.raises(BadInput, match="not used"):
        way.answer(b"sum 1", sampled_sum(way))


def test_sums_are_never_taken_from_another_wish_or_block(path):
    mechanism = GaussianSum(400, 2, 9)

    def ask():
        return Bounded(np.array([[1, 2]]), mechanism.sensitivity)

    gate = Gate(Ledger.open(path), ids=IDS)
    two = gate.reserve_all({"first": (mechanism, 1), "second": (mechanism, 1)})
    ways = [*two.values(), gate.reserve(mechanism, 1)]
    receipts = {way.answer(b"gradient sum 1", ask).receipts for way in ways}
    assert len(receipts) == 3
    assert ways[0].answer(b"gradient sum 1", pytest.fail).receipts in receipts


def older_answer(path, way) -> bytes:
    """An answer as older ledgers kept sums: no question stands beside it."""
    ledger = Ledger.open(path)
    draw, _ = ledger.begin_draw(way.block, 0, (VOTES, way.count), 1)
    content = VOTES.draw(Entropy(), np.array([[3, 1, 1]]), 1).tobytes()
    body = {"draw": draw, "answered": 1, "answers": hashlib.sha256(content).hexdigest()}
    with ledger.store.transaction():
        ledger.store.append("commit", body, way.block)
        ledger.store.insert_answers(draw, None, "1,3", content)
    verify(ledger)
    return content


def test_answers_without_a_question_are_replayed_in_order(path):
    way = begin(path, VOTES, 4)
    first = [older_answer(path, way) for _ in range(2)]
    again = go_on(path)
    assert questions(again, b"one", b"two", b"one") == [*first, first[0]]
    assert again.left == 2
    questions(again, b"three")
    assert questions(go_on(path), b"one", b"two") == first


def test_ahead_is_what_the_next_answer_will_have(path):
    way = begin(path, VOTES, 7)
    assert (way.ahead(4), way.ahead(10)) == (4, 7)
    way.answer(b"4", votes(*[[3, 1, 1]] * 4))
    assert way.ahead(5) == 3
    way.answer(b"3", votes(*[[3, 1, 1]] * 3))
    assert way.ahead(5) == 0
    again = go_on(path)
    assert (again.ahead(2), again.ahead(5)) == (2, 4)
    again.answer(b"4", pytest.fail)
    assert again.ahead(5) == 3
    assert again.knows(b"4")
    assert again.knows(b"3")
    assert not again.knows(b"5")
    again.answer(b"3", pytest.fail)
    assert again.ahead(5) == 0
    assert not again.replaying


def test_ahead_is_nothing_once_no_answer_can_be_given(path, monkeypatch):
    def ask():
        return Bounded(np.array([[3, 1, 1]] * 2), CONFIDENT.sensitivity)

    way = begin(path, CONFIDENT, 20)
    way.answer(b"one", ask)
    assert way.ahead(2) == 2
    way.answer(b"two", ask)
    assert (way.ahead(2), way.left) == (0, 16)
    again = go_on(path)
    assert again.ahead(2) == 2
    again.answer(b"one", pytest.fail)
    again.answer(b"two", pytest.fail)
    assert again.ahead(2) == 0
    # Whether lost questions were answered is not known, so all of them count.
    way = begin(path, CONFIDENT, 20, recipe="another run")
    lost(way, monkeypatch, ask=lambda: Bounded(np.array([[3, 1, 1]] * 3), CONFIDENT.sensitivity))
    assert (way.ahead(2), way.left) == (0, 17)


def test_a_question_that_was_changed_is_found(path):
    questions(begin(path, VOTES, 2), b"one")
    ledger = Ledger.open(path)
    (commit,) = ledger.store.rows("kind = 'commit'")
    assert ledger.store.query("SELECT key FROM answers") == [(commit.body["question"],)]
    with ledger.store.transaction() as connection:
        connection.execute("DROP TRIGGER answers_never_update")
        connection.execute("UPDATE answers SET key = 'another'")
    with pytest.raises(DoesNotVerify, match="stored answers"):
        verify(ledger)


def work(path, dies_at: int | None) -> None:
    """Six questions; killed without a word before the n-th noise, if at all."""
    real, drawn = Entropy.octets, []

    def doomed(entropy, count):
        drawn.append(count)
        if len(drawn) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(entropy, count)

    Entropy.octets = doomed
    way = go_on(path)
    for number in range(6):
        if way.ahead(1):
            way.answer(b"question %d" % number, votes())


def test_kill_9_at_every_draw_and_going_on(path):
    begin(path, VOTES, 9)
    fork = multiprocessing.get_context("fork")
    known: list[tuple[bytes]] = []
    for dies_at, ends in ((1, -9), (3, -9), (2, -9), (None, 0)):
        child = fork.Process(target=work, args=(path, dies_at))
        child.start()
        child.join()
        assert child.exitcode == ends
        ledger = Ledger.open(path)
        verify(ledger)
        now = ledger.store.query("SELECT key, content FROM answers ORDER BY draw")
        assert now[: len(known)] == known
        known = now
        ledger.close()
    assert len(known) == len({key for key, _ in known}) == 6
    assert len(rows(path)) == 9
    assert go_on(path).left == 0


@pytest.mark.skipif(not SUPPORTED, reason="needs the kernel's tracing of x86-64 Linux")
def test_dying_at_any_write_loses_no_answer_and_repeats_none(path, counted):
    """The child dies before each change on disk in turn; who goes on asks the same again."""
    begin(path, VOTES, 500)
    questions(go_on(path), b"one")

    def prepare():
        way = go_on(path)
        return lambda: len(questions(way, b"one", b"two", b"three")) - 3

    seen: set[bytes] = set()
    for number in range(0, 400, 7):
        ended = traced(prepare, path.parent, dies=number)
        ledger = Ledger.open(path)
        verify(ledger)
        kept = ledger.store.query("SELECT content FROM answers ORDER BY draw")
        assert 1 <= len(kept) <= 3
        assert seen <= {content for (content,) in kept}
        seen = {content for (content,) in kept}
        ledger.close()
        if ended.code == 0:
            break
    assert len(seen) == 3
    counted("deaths between two answers", number // 7)
