"""The gate itself: reserve, draw, commit; the one door for sensitive knowledge."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from stillroom.errors import BadInput, NotSanitised, NumericalDoubt
from stillroom.gate.entropy import Entropy, source_of
from stillroom.gate.ledger.ledger import Ledger
from stillroom.gate.ledger.store import canonical
from stillroom.gate.mechanisms import GaussianSum, Mechanism
from stillroom.gate.sampling import coins
from stillroom.vocabulary import Bounded, Integers, Receipt, Sanitised, SecretSample


class Gate:
    """The one door: noise is drawn here, only for what the ledger has been charged for.

    Guarantee: every Sanitised value has a receipt for a block that fitted the budget beforehand.
    Assumes: what `private` hands over has the sensitivity it claims.

    Args:
        ledger: the ledger of the sensitive data.
        ids: the ids of the sensitive records in use; the ledger must know some of them.
        persons: the ids of the persons they belong to, if known.
        entropy: where noise comes from; anything but the default makes every block infinite.

    Raises:
        WrongData: the ledger belongs to other data.

    >>> import tempfile
    >>> from stillroom.data import Split, digits
    >>> from stillroom.engine import Engine
    >>> from stillroom.gate import Budget, Ledger, NoisyArgmax
    >>> from stillroom.private import Ensemble, EnsemblePlan
    >>> split = Split.by_fraction(digits(), key="tour", public="1/10", test="1/10")
    >>> plan = EnsemblePlan(count=40, key="tour", shard_cap=60)
    >>> teachers = Ensemble.train(split.sensitive, None, plan, engine=Engine("serial"))
    >>> path = tempfile.mkdtemp() + "/ledger.sqlite"
    >>> ledger = Ledger.create(path, ids=split.sensitive.ids, purpose="benchmark")
    >>> ledger.set_budget(Budget(epsilon=5, delta=1e-5), reason="label 50 digits")
    >>> gate = Gate(ledger, ids=split.sensitive.ids)
    >>> votes = gate.reserve(NoisyArgmax(teachers=40, classes=10, sigma=9), 50)
    >>> labels = votes.release(teachers.votes(split.public.x[:50]))
    >>> bool((labels.value == split.public.y[:50]).mean() > 0.5), len(labels.receipts)
    (True, 1)
    """

    def __init__(
        self,
        ledger: Ledger,
        ids: Iterable[str],
        persons: Iterable[str] | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self.ledger = ledger
        self._entropy = entropy if entropy is not None else Entropy()
        ledger.admit(ids, persons)

    def reserve(
        self, mechanism: Mechanism, count: int, *, recipe: str = "", accept_infinite: bool = False
    ) -> Passage:
        """Pay for `count` answers of one mechanism.

        Args:
            mechanism: the way through.
            count: the most answers it may give.
            recipe: what the answers are for; its hash is part of the block and of cache keys.
            accept_infinite: let a block that has no finite price spend the whole budget (L5).

        Raises:
            BudgetExhausted: it does not fit; nothing was drawn.
        """
        (passage,) = self.reserve_all(
            [(mechanism, count)], recipe=recipe, accept_infinite=accept_infinite
        )
        return passage

    def reserve_all(
        self,
        wishes: Sequence[tuple[Mechanism, int]],
        *,
        recipe: str = "",
        accept_infinite: bool = False,
    ) -> list[Passage]:
        """Pay for several mechanisms as one block: all of them fit, or none is charged."""
        for mechanism, count in wishes:
            if not isinstance(count, int) or count < 1:
                raise BadInput(
                    f"{mechanism.name} was asked for {count!r} answers",
                    where="reserve",
                    why="a block must say beforehand how much it draws",
                    remedy="reserve at least one answer",
                )
        recipe_hash = hashlib.sha256(recipe.encode()).hexdigest()
        block = self.ledger.reserve(
            wishes,
            recipe_hash=recipe_hash,
            noise=source_of(self._entropy),
            accept_infinite=accept_infinite,
        )
        return [
            Passage(self, block, place, mechanism, count, recipe_hash)
            for place, (mechanism, count) in enumerate(wishes)
        ]

    def reopen(self, recipe: str) -> list[Passage] | None:
        """The block that was paid for under this very recipe, to go on with; None if there is none.

        Raises:
            UnsupportedEvent: the block's mechanisms are not known here.
        """
        recipe_hash = hashlib.sha256(recipe.encode()).hexdigest()
        found = self.ledger.reserved(recipe_hash, source_of(self._entropy))
        if found is None:
            return None
        block, wishes = found
        return [
            Passage(self, block, place, mechanism, count, recipe_hash)
            for place, (mechanism, count) in enumerate(wishes)
        ]

    def recall(
        self, mechanism: Mechanism, query: bytes, *, recipe: str = ""
    ) -> Sanitised[Integers] | None:
        """The answer already paid for to the same public question, if there is one; free (L7)."""
        recipe_hash = hashlib.sha256(recipe.encode()).hexdigest()
        return self._recall(self._cache_key(mechanism, query, recipe_hash))

    def _cache_key(self, mechanism: Mechanism, query: bytes, recipe_hash: str) -> str:
        question = hashlib.sha256(query).hexdigest()
        parts = [self.ledger.id, recipe_hash, question, mechanism.describe()]
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def _recall(self, key: str) -> Sanitised[Integers] | None:
        found = self.ledger.recall(key)
        if found is None:
            return None
        block, draw, answers = found
        return Sanitised(answers, (Receipt(self.ledger.id, block, draw),))


class Passage:
    """A paid way through the gate for one mechanism; satisfies `vocabulary.OpenGate`."""

    def __init__(
        self,
        gate: Gate,
        block: int,
        place: int,
        mechanism: Mechanism,
        count: int,
        recipe_hash: str,
    ) -> None:
        self._gate = gate
        self._ledger = gate.ledger
        self._place = place
        self._recipe_hash = recipe_hash
        self._pending: tuple[SecretSample, int] | None = None
        self.block = block
        self.mechanism = mechanism
        self._count = count

    @property
    def count(self) -> int:
        """How many answers the block was paid for."""
        return self._count

    @property
    def left(self) -> int:
        """How many answers the block can still give; lost ones are gone."""
        return self.count - self._ledger.drawn(self.block, self._place)

    def earlier(self) -> list[Sanitised[Integers]]:
        """The answers the block has given so far, in order; reading them again is free."""
        return [
            Sanitised(answers, (Receipt(self._ledger.id, self.block, draw),))
            for draw, answers in self._ledger.answers(self.block, self._place)
        ]

    def release(self, bounded: Bounded) -> Sanitised[Integers]:
        """Add the mechanism's noise to a bounded value, one answer a row.

        Raises:
            NotSanitised: the value may move further than was paid for.
            BudgetExhausted: the block has fewer answers left; nothing was drawn.
        """
        return self._release(bounded, key=None)

    def ask(self, query: bytes, answer: Callable[[], Bounded]) -> Sanitised[Integers]:
        """Answer a public question; the same question again gets the same answer, free (L7).

        Args:
            query: the bytes of the public question.
            answer: computes the bounded value; not called when the answer is known.
        """
        if isinstance(self.mechanism, GaussianSum):
            raise BadInput(
                "sums are not kept by question",
                where="ask",
                why="a gradient is not an answer to a public question",
                remedy="use release",
            )
        key = self._gate._cache_key(self.mechanism, query, self._recipe_hash)
        return self._gate._recall(key) or self._release(answer(), key=key)

    def poisson(self) -> SecretSample:
        """Begin a step: its row is written, then the sample of the block's rate can be opened.

        The next release must be of a value computed on this very sample.
        """
        mechanism = self.mechanism
        if not isinstance(mechanism, GaussianSum) or mechanism.rate == 1:
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
        secret = SecretSample(rate, lambda size: coins(self._gate._entropy, rate, size))
        self._pending = (secret, draw)
        return secret

    def _begin(self, count: int) -> tuple[int, int]:
        wish = (self.mechanism, self.count)
        return self._ledger.begin_draw(self.block, self._place, wish, count)

    def _release(self, bounded: Bounded, key: str | None) -> Sanitised[Integers]:
        value = self._checked(bounded)
        if self._pending is not None:
            _, draw = self._pending
            self._pending, allowance = None, 1
        else:
            draw, allowance = self._begin(len(value))
        answers = self.mechanism.draw(self._gate._entropy, value, allowance)
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
        sampled = isinstance(self.mechanism, GaussianSum) and self.mechanism.rate < 1
        if bounded.sample is not sample or sampled != (sample is not None and sample.opened):
            raise NotSanitised(
                "the value was not computed on the sample that was drawn for it",
                why="the price of a sampled sum holds only for its own fresh sample",
                remedy="draw a sample with poisson, compute on it, release; one after the other",
            )
        value = bounded.open_bounded()
        self.mechanism.check(value)
        if isinstance(self.mechanism, GaussianSum) and len(value) != 1:
            raise BadInput(
                f"a sum is one row, got {len(value)}",
                where="release",
                why="each sum is one draw",
                remedy="release the sums one by one",
            )
        return value
