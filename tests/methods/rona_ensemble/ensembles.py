"""A small ensemble over the built-in digits, and ways through the gate for it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from stillroom.engine import Engine
from stillroom.gate import Gate, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.methods.rona.answers import Confident, EnsembleAnswers
from stillroom.methods.rona.ensemble import EnsembleSource
from stillroom.private import EnsemblePlan
from stillroom.vocabulary import RECORD, Receipt, Sanitised

EPSILON, DELTA = 20.0, 1e-5
NOISE = Fraction(4)
"""About epsilon 0.9 for the whole block: enough where only the counting matters."""
LITTLE = Fraction(1, 3)
"""About epsilon 17: generous, with few teachers."""
TEACHERS = EnsemblePlan(count=30, key="rona", shard_cap=60)
PLAN = EnsembleAnswers(
    TEACHERS,
    classes=10,
    hints=0,
    hint_width=0,
    votes=60,
    hint_share=Fraction(0),
    temperature=0.1,
    chunk=25,
)
HINTED = replace(PLAN, hints=40, hint_width=10, hint_share=Fraction(1, 4))
GATED = replace(PLAN, confident=Confident(Fraction(9, 10), Fraction(3), most=55))
SERIAL = Engine("serial")


def lines(wishes):
    return [line for mechanism, count in wishes for line in mechanism.lines(count)]


def cost(wishes):
    return price(lines(wishes), RECORD).epsilon(DELTA)


def multiplier(plan, epsilon):
    return smallest_sigma(lambda noise: lines(plan.wishes(noise)), epsilon, DELTA, RECORD)


def paid(ledger, split, wishes):
    return Gate(ledger, ids=split.sensitive.ids).reserve_all(wishes, recipe="this run")


def again(ledger, split):
    """A continued run: the ledger is opened anew and the block taken up."""
    ledger.close()
    return Gate(Ledger.open(ledger.path), ids=split.sensitive.ids).reopen("this run")


def drawn(ledger, place=0):
    """Rows that the ledger recorded as drawn for a wish."""
    rows = ledger.store.rows("kind = 'draw'")
    return sum(row.body["count"] for row in rows if row.body["wish"] == place)


class NoNoise:
    """A way that adds nothing, to see what is released."""

    def __init__(self, mechanism, count):
        self.mechanism, self.count, self.left, self.block = mechanism, count, count, 1

    def earlier(self):
        return []

    def ask(self, question, answer):
        value = answer().open_bounded()
        self.left -= len(value)
        return Sanitised(value, (Receipt("none", self.block, self.left),))


def noise_free(plan, ensemble):
    ways = [NoNoise(mechanism, count) for mechanism, count in plan.wishes(Fraction(1, 1000))]
    return EnsembleSource(plan, ensemble, ways)
