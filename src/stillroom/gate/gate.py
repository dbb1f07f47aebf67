"""The gate itself: reserve, draw, commit; the one door for sensitive knowledge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy, source_of
from stillroom.gate.ledger.ledger import Ledger
from stillroom.gate.mechanisms import Mechanism
from stillroom.gate.passage import Passage, question_key
from stillroom.vocabulary import Integers, Receipt, Sanitised


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
    >>> from stillroom.gate import Budget, Ledger, NoisyArgmax
    >>> from stillroom.private import VotingTeachers
    >>> split = Split.by_fraction(digits(), key="tour", public="1/10", test="1/10")
    >>> teachers = VotingTeachers.train(split.sensitive, count=40, key="tour")
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
            Passage(self.ledger, self._entropy, recipe_hash, block, place, mechanism, count)
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
            Passage(self.ledger, self._entropy, recipe_hash, block, place, mechanism, count)
            for place, (mechanism, count) in enumerate(wishes)
        ]

    def recall(
        self, mechanism: Mechanism, query: bytes, *, recipe: str = ""
    ) -> Sanitised[Integers] | None:
        """The answer already paid for to the same public question, if there is one; free (L7)."""
        recipe_hash = hashlib.sha256(recipe.encode()).hexdigest()
        known = self.ledger.known(question_key(self.ledger, recipe_hash, query, mechanism))
        if known is None:
            return None
        receipt = Receipt(self.ledger.id, known.block, known.draw)
        return Sanitised(self.ledger.answers(known.draw), (receipt,))
