"""The gate itself: reserve, draw, commit; the one door for sensitive knowledge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from stillroom.gate.entropy import Entropy, source_of
from stillroom.gate.ledger import members
from stillroom.gate.ledger.blocks import Wish, name_of
from stillroom.gate.ledger.ledger import Ledger
from stillroom.gate.mechanisms.base import Mechanism
from stillroom.gate.passage import Passage
from stillroom.vocabulary import Sealed


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
    >>> asked = split.public.x[:50]
    >>> labels = votes.answer(asked.tobytes(), lambda: teachers.votes(asked))
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

    @classmethod
    def of(cls, ledger: Ledger, *sealed: Sealed[Any], entropy: Entropy | None = None) -> Gate:
        """A gate for sealed records, whose ids it alone looks at.

        Args:
            ledger: the ledger of these records.
            sealed: all records that the ledger answers for.
            entropy: as above.

        Raises:
            WrongData: the ledger belongs to other data.
        """
        whose = members.whose(sealed)
        return cls(ledger, whose.ids, whose.persons, entropy)

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
        passages = self.reserve_all(
            {name_of(0): (mechanism, count)}, recipe=recipe, accept_infinite=accept_infinite
        )
        return passages[name_of(0)]

    def reserve_all(
        self, wishes: Mapping[str, Wish], *, recipe: str = "", accept_infinite: bool = False
    ) -> dict[str, Passage]:
        """Pay for several mechanisms as one block: all of them fit, or none is charged.

        Args:
            wishes: mechanisms and the most answers they may give, by name.
            recipe: what the answers are for.
            accept_infinite: let a block that has no finite price spend the whole budget (L5).

        Raises:
            BadInput: a name or a count cannot stand in the ledger.
            BudgetExhausted: they do not fit; nothing was drawn.
        """
        recipe_hash = _hash(recipe)
        block = self.ledger.reserve(
            wishes,
            recipe_hash=recipe_hash,
            noise=source_of(self._entropy),
            accept_infinite=accept_infinite,
        )
        return self._passages(recipe_hash, block, wishes)

    def refuse_what_does_not_fit(
        self, wishes: Mapping[str, Wish], *, accept_infinite: bool = False
    ) -> None:
        """Say whether `reserve_all` would be refused now, and charge nothing.

        Args: as there.

        Raises:
            BudgetExhausted: they do not fit.
        """
        self.ledger.refuse_what_does_not_fit(
            wishes, noise=source_of(self._entropy), accept_infinite=accept_infinite
        )

    def reopen(self, recipe: str) -> dict[str, Passage] | None:
        """The block that was paid for under this very recipe, to go on with; None if there is none.

        Returns:
            Its passages by name; "wish 1", "wish 2", ... where the ledger is older than names.

        Raises:
            UnsupportedEvent: the block's mechanisms are not known here.
        """
        recipe_hash = _hash(recipe)
        found = self.ledger.reserved(recipe_hash, source_of(self._entropy))
        return None if found is None else self._passages(recipe_hash, *found)

    def _passages(
        self, recipe_hash: str, block: int, wishes: Mapping[str, Wish]
    ) -> dict[str, Passage]:
        return {
            name: Passage(self.ledger, self._entropy, recipe_hash, block, place, name, *wish)
            for place, (name, wish) in enumerate(wishes.items())
        }


def _hash(recipe: str) -> str:
    return hashlib.sha256(recipe.encode()).hexdigest()
