"""A paid way through the gate: what it has answered is replayed, what is new is drawn."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stillroom.errors import BadInput, NotSanitised, NumericalDoubt
from stillroom.gate.entropy import Entropy
from stillroom.gate.ledger import draws
from stillroom.gate.ledger.chain import canonical
from stillroom.gate.ledger.draws import Stored
from stillroom.gate.ledger.ledger import Ledger
from stillroom.gate.mechanisms.base import Mechanism
from stillroom.gate.mechanisms.selection import Judge, PrivateSelection
from stillroom.gate.sampling import coins
from stillroom.vocabulary import Bounded, Integers, Receipt, Sanitised, SecretSample


@dataclass(eq=False, repr=False)
class Passage:
    """A paid way through the gate for one mechanism; satisfies `vocabulary.OpenGate`.

    Guarantee: each answer is drawn once. A continued run walks through the answers that its block
    has given, in order and question by question, and draws only what comes after them; a draw that
    was lost stays charged and is never replayed (L2).

    Args:
        ledger: where the block was paid for.
        entropy: where noise comes from.
        recipe_hash: what the block was paid for.
        block: the block.
        place: of the wish in its block.
        name: of the wish.
        mechanism: the way through.
        count: the most answers it may give, as many as the block was paid for.
    """

    _ledger: Ledger
    _entropy: Entropy
    _recipe_hash: str
    block: int
    _place: int
    name: str
    mechanism: Mechanism
    count: int

    def __post_init__(self) -> None:
        self._pending: tuple[SecretSample, int] | None = None
        self._waiting = deque(draws.committed(self._ledger.store, self.block, self._place))
        self._unkeyed: dict[str, Stored] = {}

    @property
    def paid_as(self) -> str:
        """The block and its ledger: what is kept of its answers is never taken for another's."""
        return f"{self._ledger.id}-{self.block}"

    @property
    def left(self) -> int:
        """How many answers the block can still give; lost ones are gone."""
        return self.count - self._ledger.drawn(self.block, self._place)

    @property
    def replaying(self) -> bool:
        """Whether an answer from before is still waiting to be asked for again."""
        return bool(self._waiting)

    def ahead(self, rows: int) -> int:
        """How many rows the next answer will have when up to `rows` are asked for.

        As many as it had before, where it is replayed; else as many as are left. None where the
        mechanism has a cap on answers and may give no more.
        """
        return min(rows, self._waiting[0].rows if self._waiting else self.rest)

    @property
    def rest(self) -> int:
        """How many rows this run can still be given: old ones to be replayed, and new ones."""
        wish = (self.mechanism, self.count)
        answerable = draws.answerable(self._ledger.store, self.block, self._place, wish)
        new = self.left if answerable > 0 else 0
        return new + sum(stored.rows for stored in self._waiting)

    def knows(self, question: bytes) -> bool:
        """Whether the question was answered already, so that to ask it now draws nothing."""
        key = self._key(question)
        return (bool(self._waiting) and self._waiting[0].key == key) or self._known(key) is not None

    def answer(
        self, question: bytes, ask: Callable[[], Bounded], judge: Judge | None = None
    ) -> Sanitised[Integers]:
        """The answer to a public question: the old one, free, or a new one, drawn and kept (L7).

        Args:
            question: all that the answer depends on beside the records and the recipe, as bytes.
            ask: computes the bounded value; not called where the answer is known. For a sampled
                mechanism it draws its sample with `poisson`.
            judge: scores the answers that a selection is made from, by public things alone; what
                it depends on is part of the question.

        Raises:
            BadInput: the run asks something else than it did before at this point.
            NotSanitised: the value may move further than was paid for.
            BudgetExhausted: the block has fewer answers left; nothing was drawn.
        """
        key = self._key(question)
        waiting = self._waiting
        if waiting and waiting[0].key == key:
            return self._kept(waiting.popleft())
        known = self._known(key)
        if known is None and waiting and waiting[0].key is None:
            # Older ledgers kept no question with an answer: its place in the order has to do.
            known = self._unkeyed[key] = waiting.popleft()
        if known is not None:
            return self._kept(known)
        if waiting:
            raise BadInput(
                "the run asks another question than it did before at this point",
                where=f"{self._ledger.path}, block {self.block}",
                why="the old answer would be taken for an answer to another question",
                remedy="go on with the same recipe and version on the same machine, or begin a new "
                "run",
            )
        return self._release(ask(), key, judge)

    def _key(self, question: bytes) -> str:
        """What an answer is kept under: the hash of its question, and of who asked what (L7)."""
        if self.mechanism.one_row:
            # Sums are numbered, so that only their own wish may recall them: never cached (L7).
            question = f"{self.block} {self._place} ".encode() + question
        asked = hashlib.sha256(question).hexdigest()
        parts = [self._ledger.id, self._recipe_hash, asked, self.mechanism.describe()]
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def _known(self, key: str) -> Stored | None:
        """What was answered before under this key, unless it still waits for its turn here."""
        known = self._unkeyed.get(key) or draws.known(self._ledger.store, key)
        waiting = known is not None and known.draw in {stored.draw for stored in self._waiting}
        return None if waiting else known

    def _kept(self, stored: Stored) -> Sanitised[Integers]:
        values = draws.answers(self._ledger.store, stored.draw)
        return Sanitised(values, (Receipt(self._ledger.id, stored.block, stored.draw),))

    def poisson(self) -> SecretSample:
        """Begin a step: its row is written, then the sample of the block's rate can be opened.

        The next release must be of a value computed on this very sample.
        """
        mechanism = self.mechanism
        if mechanism.rate == 1:
            raise BadInput(
                f"{mechanism.name} was not paid for as a sampled sum",
                where="poisson",
                why="sampling without its own price gives a false epsilon",
                remedy="reserve a GaussianSum with a rate below 1",
            )
        if self._pending is not None:
            raise BadInput(
                "the last Poisson sample was not used",
                where="poisson",
                why="choosing among samples is not covered by the price",
                remedy="release the sum over each sample before drawing the next",
            )
        draw, _ = self._begin(1)
        rate = mechanism.rate
        secret = SecretSample(rate, lambda size: coins(self._entropy, rate, size))
        self._pending = (secret, draw)
        return secret

    def _begin(self, count: int) -> tuple[int, int]:
        wish = (self.mechanism, self.count)
        return self._ledger.begin_draw(self.block, self._place, wish, count)

    def _release(
        self, bounded: Bounded, key: str, judge: Judge | None = None
    ) -> Sanitised[Integers]:
        value, mechanism = self._checked(bounded), self.mechanism
        if self._pending is not None:
            _, draw = self._pending
            self._pending, allowance = None, 1
        else:
            draw, allowance = self._begin(len(value))
        if isinstance(mechanism, PrivateSelection) and judge is not None:
            mechanism = mechanism.judged_by(judge)
        answers = mechanism.draw(self._entropy, value, allowance)
        if answers.dtype != np.int64:
            raise NumericalDoubt(
                f"{self.mechanism.name} drew {answers.dtype} answers instead of integers",
                where="release",
                why="floating-point noise leaks through its rounding; the draw stays charged",
                remedy="mend the mechanism's sampler",
            )
        answered = self.mechanism.answered(answers)
        self._ledger.commit_draw(self.block, draw, answers, answered, key)
        return Sanitised(answers, (Receipt(self._ledger.id, self.block, draw),))

    def _checked(self, bounded: Bounded) -> Integers:
        if not isinstance(bounded, Bounded):
            raise NotSanitised(
                f"the gate was given a {type(bounded).__name__}, not a Bounded value",
                why="without a proven sensitivity no noise is enough",
                remedy="let the private room make a Bounded value",
            )
        if not self.mechanism.sensitivity.covers(bounded.sensitivity):
            raise NotSanitised(
                f"the value may move further than {self.mechanism.name} was paid for",
                why="the noise would be too small for it",
                remedy="clip it to the declared sensitivity, or reserve a mechanism that covers it",
            )
        sample = self._pending[0] if self._pending is not None else None
        if bounded.sample is not sample or (self.mechanism.rate < 1) != (
            sample is not None and sample.opened
        ):
            raise NotSanitised(
                "the value was not computed on the sample that was drawn for it",
                why="the price of a sampled sum holds only for its own fresh sample",
                remedy="draw a sample with poisson, compute on it, release; one after the other",
            )
        value = bounded.open_bounded()
        self.mechanism.check(value)
        if self.mechanism.one_row and len(value) != 1:
            raise BadInput(
                f"a sum is one row, got {len(value)}",
                where="release",
                why="each sum is one draw",
                remedy="release the sums one by one",
            )
        return value
