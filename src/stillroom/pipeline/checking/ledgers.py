"""Whether the ledgers of a recipe would let its release in; nothing is made, charged or entered."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.gate import Ledger
from stillroom.gate.accounting import price as price_of
from stillroom.gate.ledger.budget import share_spent
from stillroom.pipeline.checking.report import Report
from stillroom.pipeline.holders import holder_names
from stillroom.pipeline.pricing import Cost, Wish
from stillroom.pipeline.release import ledger_place
from stillroom.pipeline.run import protected, refuse_opened, refuse_purpose, refuse_without_budgets
from stillroom.pipeline.run_folder import Run
from stillroom.recipe import Recipe
from stillroom.sources import Party
from stillroom.vocabulary import Sealed, Unit


class LedgerCheck:
    """The ledgers of a recipe, looked at.

    Args:
        report: is told.
        recipe: the recipe.
        text: its text.
        files: the folder it is in.
        run: the run that would go on, if there is one.
    """

    def __init__(
        self, report: Report, recipe: Recipe, text: str, files: Path, run: Run | None
    ) -> None:
        self._report, self._recipe, self._files = report, recipe, files
        self._names = holder_names(recipe)
        self._place = files / recipe.ledger
        self._run = run
        self._paid_as = None if run is None else run.block_recipe(text)

    def _head(self, name: str) -> Any:
        """What the run that goes on has seen of a ledger: the only one's, not those of several."""
        alone = self._run is not None and len(self._names) == 1
        return self._run.head if alone and self._run is not None else None

    def look(
        self,
        sealed: Mapping[str, Sealed[Any]],
        public: Dataset | None,
        test: Sealed[Dataset] | Dataset | None,
        cost: Cost | None,
    ) -> None:
        """Look at all ledgers.

        Args:
            sealed: the sensitive records of each party; none where they could not be read.
            public: the public part, if it could be read.
            test: the test part, if it could be read.
            cost: what is drawn; None where that is not known.
        """
        places = {name: ledger_place(self._recipe, self._files, name) for name in self._names}
        there = {name: place for name, place in places.items() if os.path.lexists(place)}
        self._report.facts["ledger"] = {
            "where": str(self._place),
            "there": len(there),
            "of": len(places),
        }
        for name, place in places.items():
            if name not in there:
                with self._report.collecting("ledger"):
                    self._refuse_new(place, _all(sealed.get(name), test))
        if not there:
            epsilon = self._recipe.privacy.epsilon
            self._report.notes.append(
                f"there is no ledger at {self._place} yet: the first `stillroom release` makes it "
                f"and ends 2, and `stillroom ledger budget set {self._place} --epsilon {epsilon:g} "
                "--reason '...'` says how much may be told; then the same release goes on"
            )
        opened: list[Party] = []
        for name, place in there.items():
            with self._report.collecting("ledger"):
                ledger = Ledger.look_at(place, head=self._head(name))
                own = sealed.get(name)
                party = Party(name, Sealed(None) if own is None else own, ledger)
                opened.append(party)
                refuse_purpose(self._recipe, ledger)
                if own is not None:
                    unit = self._recipe.data.unit
                    ledger.refuse_others(*_all(own, test), unit=unit)
                    assert test is not None
                    ledger.refuse_members_of_others(*protected(party, test))
        with self._report.collecting("ledger"):
            self._refuse_unit(opened)
            refuse_without_budgets(opened, self._recipe.privacy.epsilon)
            if cost is not None:
                for party in opened:
                    self._fit(party, cost.wishes_of(party.name))
        if opened and public is not None and test is not None and sealed:
            with self._report.collecting("ledger"):
                refuse_opened(opened, public, test)
        for party in opened:
            party.ledger.close()

    def _refuse_new(self, place: Path, sealed: Sequence[Sealed[Any]]) -> None:
        folder = self._files if len(self._names) == 1 else place.parent.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise BadInput(
                "the ledger cannot be made: its folder cannot be written to",
                where=str(folder),
                why="without a ledger nothing may be drawn",
                remedy="choose a folder that exists, can be written to and has room",
            )
        if sealed:
            Ledger.refuse_new(place, *sealed, purpose=self._recipe.purpose)

    def _refuse_unit(self, parties: Sequence[Party]) -> None:
        unit = Unit(self._recipe.data.unit)
        for party in parties:
            promises = party.ledger.promises
            former, lapse = promises.unit, promises.budgets
            promises.set_unit(unit)
            if unit is not former and lapse:
                raise BadInput(
                    f"the ledger's budget is for {lapse[0].pair}, and the recipe protects each "
                    f"{unit}",
                    where=str(party.ledger.path),
                    why="nothing was paid yet, so the release turns the ledger to the recipe's "
                    "unit, and the budget lapses",
                    remedy=f'write unit = "{former}" under [data]; or begin the release, which '
                    "then asks for the other budget",
                )

    def _fit(self, party: Party, wishes: Mapping[str, Wish]) -> None:
        """Whether the block fits, and how much would be left."""
        ledger, facts = party.ledger, self._report.facts["ledger"]
        standing = ledger.standing()
        own = next(s for s in standing if s.budget == ledger.promises.own_budget)
        budget = own.budget
        lines = [line for mechanism, count in wishes.values() for line in mechanism.lines(count)]
        needed = share_spent(price_of(lines, budget.pair).curve, budget)
        facts |= {
            "for": str(budget.pair),
            "budget": budget.epsilon,
            "delta": budget.delta,
            "spent": own.epsilon,
            "share_used": min(1.0, own.share),
            "share_needed": min(1.0, needed),
        }
        if self._is_paid(ledger):
            facts["paid"] = True
            return
        ledger.refuse_what_does_not_fit(
            wishes, noise="os", accept_infinite=self._recipe.mode == "as-published"
        )

    def _is_paid(self, ledger: Ledger) -> bool:
        if self._paid_as is None:
            return False
        paid_as = hashlib.sha256(self._paid_as.encode()).hexdigest()
        return ledger.reserved(paid_as, "os") is not None


def _all(own: Sealed[Any] | None, test: Sealed[Dataset] | Dataset | None) -> list[Sealed[Any]]:
    return [part for part in (own, test) if isinstance(part, Sealed)]
