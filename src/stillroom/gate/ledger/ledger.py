"""The ledger: what was promised, reserved and drawn on one set of sensitive records.

It belongs to the data, not to a run (L1): every pipeline on the same records shares its budget.
Reserve, draw, commit: a block is charged whole before its first draw, a draw's row is on disk
before its noise exists, a crash counts as spent, and nothing refunds (L2, L3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from stillroom.errors import BadInput, WrongData
from stillroom.gate.ledger import creation, draws, members
from stillroom.gate.ledger.blocks import PricedBlock, Wish
from stillroom.gate.ledger.books import Books
from stillroom.gate.ledger.budget import Totals
from stillroom.gate.ledger.chain import Head
from stillroom.gate.ledger.creation import Purpose
from stillroom.gate.ledger.newest import NewestCopy
from stillroom.gate.ledger.promises import check_reason
from stillroom.gate.ledger.register import Register
from stillroom.gate.ledger.store import Store
from stillroom.vocabulary import Budget, Identities, Integers, Pair, Sealed, Unit


class Ledger(Books):
    """A budget that outlives the process and cannot be rewound.

    Guarantee: noise is drawn only for blocks that fit every budget; lost draws stay charged.
    Assumes: the operator is trusted; see SECURITY.md for what a ledger cannot notice.

    >>> import tempfile; folder = tempfile.mkdtemp()
    >>> ledger = Ledger.create(folder + "/ledger.sqlite", ids=["a", "b"], purpose="benchmark")
    >>> ledger.set_budget(Budget(epsilon=1.0, delta=1e-5), reason="first release")
    >>> ledger.budgets()
    [Budget(epsilon=1.0, delta=1e-05, pair=record/add-or-remove)]
    """

    def __init__(self, store: Store, key: bytes | None = None) -> None:
        super().__init__(store, key)
        self._known = Register() if self.purpose is Purpose.RELEASE else None
        self._newest = NewestCopy(store, self.id, self._known)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *sealed: Sealed[Any],
        ids: Iterable[str] | None = None,
        persons: Iterable[str] | None = None,
        purpose: Purpose | str = Purpose.RELEASE,
        ids_from_content: bool = False,
        unit: Unit | str = Unit.RECORD,
    ) -> Ledger:
        """A new ledger for these records, of which there may be none yet.

        Args:
            path: where the file will be; its key goes beside it.
            sealed: the sensitive records; their ids are seen by the gate alone.
            ids: the ids of sensitive records, where they are not sealed.
            persons: the ids of the persons they belong to, if known.
            purpose: release, benchmark or audit.
            ids_from_content: whether ids are made from the records' content; found by itself where
                one of these ids is.
            unit: whom it protects; fixed with the first block.

        Raises:
            WrongData: some records already belong to a known release ledger.
            BadInput: there is already a file, or no records are named.
        """
        whose = members.whose(sealed, ids, persons, from_content=ids_from_content)
        creation.create(Path(path), whose, Purpose.named(purpose), Unit(unit))
        return cls(Store(Path(path)))

    @classmethod
    def in_memory(
        cls,
        *sealed: Sealed[Any],
        ids: Iterable[str] | None = None,
        persons: Iterable[str] | None = None,
        purpose: Purpose | str,
        ids_from_content: bool = False,
        unit: Unit | str = Unit.RECORD,
    ) -> Ledger:
        """A new ledger without a file: the same rows, chain, prices and checks, until it is closed.

        Assumes: nothing that is drawn under it is released; other ledgers do not know of it.

        Args: as `create`; the purpose is benchmark or audit.

        Raises:
            BadInput: it is for release, or no records are named.

        >>> ledger = Ledger.in_memory(ids=["a", "b"], purpose="audit")
        >>> ledger.set_budget(Budget(epsilon=1.0, delta=1e-5), reason="one of many runs")
        >>> ledger.close()
        """
        whose = members.whose(sealed, ids, persons, from_content=ids_from_content)
        return cls(*creation.create_in_memory(whose, Purpose.named(purpose), Unit(unit)))

    @classmethod
    def open(cls, path: str | Path, *, head: Head | None = None, read_only: bool = False) -> Ledger:
        """An existing ledger, its chain checked.

        Args:
            path: the file.
            head: a head kept by a run or a certificate; it must still be in the ledger (L8).
            read_only: only look; the file is not changed.

        Raises:
            DoesNotVerify: the chain is broken, or the ledger went back in time.
        """
        if not read_only:
            creation.sweep_leftovers(Path(path))
        ledger = cls(Store(Path(path), read_only=read_only))
        ledger._newest.expect(head)
        return ledger

    @classmethod
    def look_at(cls, path: str | Path, *, head: Head | None = None) -> Ledger:
        """An existing ledger to look at, its chain checked; no file appears or changes beside it.

        Assumes: it is closed soon. While another process draws, SQLite's own files are shared.

        Args: as `open`.

        Raises:
            DoesNotVerify: the chain is broken, or the ledger went back in time.
        """
        ledger = cls(Store(Path(path), read_only=True, traceless=True))
        ledger._newest.expect(head)
        return ledger

    @staticmethod
    def refuse_new(path: str | Path, *sealed: Sealed[Any], purpose: Purpose | str) -> None:
        """Say whether `create` would refuse these records, and make nothing.

        Raises:
            WrongData: some records already belong to a known release ledger.
        """
        if Purpose.named(purpose) is Purpose.RELEASE:
            Register().refuse_others("", Path(path), members.whose(sealed))

    def close(self) -> None:
        """Let go of the file, or of the memory."""
        self._store.close()

    def on_new_head(self, keep: Callable[[Head], None]) -> None:
        """Hand the head of every change to `keep`, before anything is drawn for it (L8)."""
        self._newest.tell(keep)

    def _change(self) -> AbstractContextManager[None]:
        """All or nothing, on disk when it ends; on an old copy of this ledger, nothing (L8)."""
        return self._newest.change()

    # -- whose data -------------------------------------------------------------------------

    def admit(self, ids: Iterable[str], persons: Iterable[str] | None = None) -> None:
        """Accept a data set that may have gained and lost records since last time (L1).

        Raises:
            WrongData: not one record was seen before, or one belongs to another ledger.
        """
        whose = members.whose((), ids, persons)
        self._refuse_others(whose, self.promises.unit)
        if self._known is not None:
            self._known.enter(self.id, self.path, whose)
        key = self.key()
        prints = members.fingerprints(key, whose.ids, whose.persons)
        with self._change():
            # Also where none is new: the number of rows must not tell (K10).
            seen = members.seen(self._store)
            members.enter(self._store, key, [p for p in prints if p not in seen])

    def refuse_others(self, *sealed: Sealed[Any], unit: Unit | str) -> None:
        """Refuse records of another data set, or another model, and change nothing.

        Args:
            sealed: what the ledger shall answer for.
            unit: what would be protected.

        Raises:
            WrongData: not one record was seen before.
        """
        self._refuse_others(members.whose(sealed), Unit(unit))

    def refuse_members_of_others(self, *sealed: Sealed[Any]) -> None:
        """Say whether `admit` would refuse records because of another ledger; changes nothing.

        Raises:
            WrongData: some of them belong to another known release ledger.
        """
        if self._known is not None:
            self._known.refuse_others(self.id, self.path, members.whose(sealed))

    def _refuse_others(self, whose: Identities, unit: Unit) -> None:
        records = whose.ids
        # Without a single record on either side there is nothing to tell data sets apart by.
        known = not records or self.recognises(records) or not self._store.has_members()
        if not known or (not self.ids_from_content and whose.from_content):
            other = "not one of these records belongs to the ledger"
            if unit is Unit.ENTITY:
                other = "the ledger does not belong to this model: to other weights, or to records"
            raise WrongData(
                other if not known else "ids are made from content here, and were given before",
                where=str(self.path),
                why="the budget of one data set must not pay for another",
                remedy="open the ledger of this data set, or make one with Ledger.create",
            )

    # -- budgets ----------------------------------------------------------------------------

    def fix_unit(self, unit: Unit | str) -> None:
        """Protect this unit; where another was named and nothing is paid yet, a row says so.

        Raises:
            BadInput: blocks were paid for another unit.
        """
        with self._change():
            promises, unit = self.promises, Unit(unit)
            if unit is not promises.unit:
                promises.set_unit(unit)
                self._store.append("unit", {"unit": str(unit)})

    def set_budget(self, budget: Budget, reason: str) -> None:
        """Set or raise a budget; the row, with its reason, stays for ever (L9).

        Raises:
            BadInput: the reason is missing or cannot be printed in one line, no block of this
                ledger can meet the budget, or the ledger's own would be lowered.
        """
        reason = check_reason(reason)
        with self._change():
            self.promises.set(budget)
            self._store.append(
                "budget",
                {
                    "pair": str(budget.pair),
                    "epsilon": budget.epsilon,
                    "delta": budget.delta,
                    "reason": reason,
                },
            )

    def unset_budget(self, pair: Pair, reason: str) -> None:
        """Take back a budget that is not the ledger's own; later certificates print the reason.

        Raises:
            BadInput: there is no such budget, it is the ledger's own, or the reason is missing.
        """
        reason = check_reason(reason)
        with self._change():
            self.promises.unset(pair)
            self._store.append("unset", {"pair": str(pair), "reason": reason})

    # -- reserve, draw, commit --------------------------------------------------------------

    def refuse_without_budget(self, epsilon: float = 1.0) -> None:
        """Say early, before long work, that nothing can be drawn.

        Args:
            epsilon: what is about to be spent, for the hint.

        Raises:
            BadInput: the ledger's own budget is not set.
        """
        promises = self.promises
        if promises.own_budget is None:
            raise BadInput(
                f"no budget is set for this data, for {promises.own}",
                where=str(self.path),
                why="without one nobody has decided how much may be told about these records",
                remedy=f"stillroom ledger budget set {self.path} --epsilon {epsilon:g} "
                "--reason '...'",
            )

    def reserve(
        self,
        wishes: Mapping[str, Wish],
        *,
        recipe_hash: str,
        noise: str,
        accept_infinite: bool = False,
    ) -> int:
        """Charge a whole block, on disk, before anything is drawn; return its number (L3).

        Args:
            wishes: mechanisms and how many answers each may give, by name.
            recipe_hash: what the block is for.
            noise: "os", or "test" for a repeatable stream, which makes the block infinite (K6).
            accept_infinite: let a block without a finite price pass and spend everything (L5).

        Raises:
            BadInput: no budget is set.
            BudgetExhausted: the block does not fit; nothing was drawn.
        """
        self.refuse_without_budget()
        budgets = self.budgets()
        # Priced before the file is locked: other processes need not wait for arithmetic.
        block = PricedBlock(wishes, noise, [b.delta for b in budgets], self.unproven)
        with self._change():
            self.refuse_without_budget()  # it may have lapsed since, with another unit
            before, samples = self._refuse_unless_it_fits(block, accept_infinite)
            row = self._store.append(
                "block", {"recipe": recipe_hash, **block.body(before, samples)}
            )
        return row.seq

    def refuse_what_does_not_fit(
        self, wishes: Mapping[str, Wish], *, noise: str, accept_infinite: bool = False
    ) -> None:
        """Say whether a block would fit now, and charge nothing: for several parties that pay.

        Args: as `reserve`.

        Raises:
            BadInput: no budget is set.
            BudgetExhausted: the block does not fit.
        """
        self.refuse_without_budget()
        deltas = [budget.delta for budget in self.budgets()]
        self._refuse_unless_it_fits(
            PricedBlock(wishes, noise, deltas, self.unproven), accept_infinite
        )

    def _refuse_unless_it_fits(
        self, block: PricedBlock, accept_infinite: bool
    ) -> tuple[Totals, int]:
        """What was charged before, and table samples drawn for it."""
        earlier = self._store.last("kind = 'block'")
        before = self.totals()
        samples = earlier.body["samples"] if earlier else 0
        for budget in self.budgets():
            block.refuse_unless_it_fits(
                budget,
                before,
                samples,
                first=earlier is None,
                accept_infinite=accept_infinite,
                where=str(self.path),
            )
        return before, samples

    def begin_draw(self, block: int, place: int, wish: Wish, count: int) -> tuple[int, int]:
        """Write a draw's row before its noise exists.

        Returns the row's number and how many rows may be answered.

        Raises:
            BudgetExhausted: the block has fewer answers left; nothing was drawn.
        """
        with self._change():
            return draws.begin(self._store, block, place, wish, count)

    def commit_draw(
        self, block: int, draw: int, answers: Integers, answered: int, key: str
    ) -> None:
        """Store the noisy answers and close the draw, in one transaction (L2)."""
        with self._change():
            draws.commit(self._store, block, draw, answers, answered, key)
