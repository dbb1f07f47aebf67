"""What a ledger promises: whom it protects, and how much may be told at most (L9).

The unit is that of the first release and never changes after it. Its own budget can only be raised
then: what a block was let in under must stay true. Every change is a row with its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stillroom.errors import BadInput
from stillroom.gate.ledger.chain import Row
from stillroom.vocabulary import CHANGED_LABEL, CHANGED_RECORD, Budget, Pair, Unit

KINDS = ("open", "unit", "budget", "unset")
"""The rows that make or change a promise."""


class Promises:
    """The unit and the budgets in force after some rows.

    Args:
        rows: all rows of the kinds above, in their order.
        unproven: pairs that nothing can be promised for, whatever is drawn.
        paid: whether a block was paid for after them.

    Raises:
        BadInput: a row breaks a rule, so that no ledger of this package wrote it.
    """

    def __init__(
        self, rows: Iterable[Row] = (), unproven: Collection[Pair] = (), *, paid: bool = False
    ) -> None:
        self.unit = Unit.RECORD
        self.paid = False
        self._budgets: dict[Pair, Budget] = {}
        # Ids that are made from content are made from labels too.
        labels = {CHANGED_LABEL} if CHANGED_RECORD in unproven else ()
        self._unproven = {*unproven, *labels}
        for row in rows:
            self.follow(row)
        self.paid = paid

    @property
    def own(self) -> Pair:
        """What the ledger is for: one unit more or less, or another model."""
        return Pair.of(self.unit)

    @property
    def budgets(self) -> list[Budget]:
        """Those in force, one per pair."""
        return [self._budgets[pair] for pair in sorted(self._budgets)]

    @property
    def own_budget(self) -> Budget | None:
        """The budget that nothing is drawn without."""
        return self._budgets.get(self.own)

    def follow(self, row: Row) -> None:
        """Take over what a row says, as far as it may be said."""
        if row.kind in ("open", "unit"):
            self.set_unit(Unit(row.body["unit"]))
        elif row.kind == "budget":
            pair = Pair.parse(row.body["pair"])
            self.set(Budget(row.body["epsilon"], row.body["delta"], pair))
        elif row.kind == "unset":
            self.unset(Pair.parse(row.body["pair"]))
        elif row.kind == "block":
            self.paid = True

    def set_unit(self, unit: Unit) -> None:
        """Protect another unit, before anything was paid for; budgets of the former one lapse."""
        if self.paid and unit is not self.unit:
            raise BadInput(
                f"this ledger protects each {self.unit}, and not each {unit}",
                where="unit",
                why=f"what it has already paid for has no price for one {unit}",
                remedy=f'use unit = "{self.unit}" in the recipe',
            )
        if unit is not self.unit:
            self.unit, self._budgets = unit, {}

    def set(self, budget: Budget) -> None:
        """Set or raise a budget."""
        if budget.pair.unit is not self.unit or budget.pair in self._unproven:
            raise BadInput(
                f"no block of this ledger can meet a budget for {budget.pair}",
                where="pair (--for)",
                why="ids are made from content, so a changed record is another record"
                if budget.pair.unit is self.unit
                else f"it protects each {self.unit}, as its first recipe says",
                remedy=f"set a budget for {self.own}",
            )
        former = self._budgets.get(budget.pair, budget)
        lower = budget.epsilon < former.epsilon or budget.delta < former.delta
        if lower and self.paid and budget.pair == self.own:
            raise BadInput(
                f"the budget for {self.own} can only be raised",
                where="budget",
                why="blocks were let in under it, and their certificates name it",
                remedy=f"keep at least epsilon {former.epsilon:g} at delta {former.delta:g}",
            )
        self._budgets[budget.pair] = budget

    def unset(self, pair: Pair) -> None:
        """Take back a budget that is not the ledger's own."""
        if pair == self.own or pair not in self._budgets:
            raise BadInput(
                f"there is no budget for {pair}"
                if pair != self.own
                else f"the budget for {pair} is the ledger's own and cannot be taken back",
                where="pair",
                why="without its own budget nobody has decided how much may be told",
                remedy="name another budget that is set; the ledger's own can be raised",
            )
        del self._budgets[pair]


def check_reason(reason: str) -> str:
    """A reason that can be printed on a certificate.

    Raises:
        BadInput: it is missing, or is more than a line.
    """
    if not reason.strip() or not reason.strip().isprintable():
        raise BadInput(
            "a budget needs a reason, in one line of plain text",
            where="reason",
            why="whoever reads the certificate must see why it was set, raised or taken back",
            remedy="say in a few words what the budget is for",
        )
    return reason.strip()
