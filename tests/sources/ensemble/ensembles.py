"""A small ensemble over the built-in digits, and passages through the gate for it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from stillroom.engine import Engine
from stillroom.gate import Gate, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.sources.ensemble_answers import PaidEnsemble
from stillroom.sources.teachers import HINTS, VOTES, TeachersSection
from stillroom.vocabulary import RECORD, Receipt, Sanitised

EPSILON, DELTA = 20.0, 1e-5
NOISE = Fraction(4)
"""About epsilon 0.9 for the whole block: enough where only the counting matters."""
LITTLE = Fraction(1, 3)
"""About epsilon 17: generous, with few teachers."""
CHUNK = 25
PLAN = TeachersSection.of(count=30, shard_cap=60, votes=60, temperature=0.1)
TEACHERS = PLAN.ensemble("rona")
HINTED = TeachersSection.of(**PLAN.model_dump(exclude_unset=True), hints=40, hint_share="1/4")
GATED = TeachersSection.of(
    count=30,
    shard_cap=60,
    asked=60,
    votes=55,
    temperature=0.1,
    threshold="9/10",
    threshold_noise=3,
)
SERIAL = Engine("serial")


def changed(section, **numbers):
    """The same section with other numbers, checked again."""
    return TeachersSection.of(**{**section.model_dump(exclude_unset=True), **numbers})


def wishes(section, noise, classes=10, width=10, **unit):
    """Mechanisms and counts by name, at a scale of the noise."""
    requests = section.requests(classes, width, **unit)
    return {request.name: (request.at(noise), request.count) for request in requests}


def lines(wanted):
    return [line for mechanism, count in wanted.values() for line in mechanism.lines(count)]


def cost(wanted):
    return price(lines(wanted), RECORD).epsilon(DELTA)


def multiplier(section, epsilon):
    return smallest_sigma(lambda noise: lines(wishes(section, noise)), epsilon, DELTA, RECORD)


def paid(ledger, split, wanted):
    return Gate(ledger, ids=split.sensitive.ids).reserve_all(wanted, recipe="this run")


def again(ledger, split):
    """A continued run: the ledger is opened anew and the block taken up."""
    ledger.close()
    return Gate(Ledger.open(ledger.path), ids=split.sensitive.ids).reopen("this run")


def drawn(ledger, place=0):
    """Rows that the ledger recorded as drawn for a wish."""
    rows = ledger.store.rows("kind = 'draw'")
    return sum(row.body["count"] for row in rows if row.body["wish"] == place)


class Noting(PaidEnsemble):
    """Notes the rows that its passages gave; each draw counts once."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self._noted = {}

    def _ask(self, passage, *rest):
        found = super()._ask(passage, *rest)
        for noisy in found:
            (receipt,) = noisy.receipts
            self._noted[receipt.draw] = passage is self._hints, len(noisy.value)
        return found

    @property
    def asked(self):
        """Votes and hints that this run was given; gated queries count too."""
        rows = list(self._noted.values())
        return tuple(sum(n for hint, n in rows if hint is which) for which in (False, True))

    @property
    def hints_left(self):
        return self._hints.rest if self._hints else 0


class Source(Noting):
    """Behind passages by name, with the public digits at hand."""

    def __init__(self, section, ensemble, passages, split, chunk=CHUNK):
        own = passages[VOTES], passages.get(HINTS)
        super().__init__(section, ensemble, *own, split.public, chunk=chunk)


class NoNoise:
    """A passage that adds nothing, to see what is released."""

    def __init__(self, mechanism, count):
        self.mechanism, self.count, self.left, self.block = mechanism, count, count, 1

    def knows(self, question):
        return False

    def ahead(self, rows):
        return min(rows, self.left)

    @property
    def rest(self):
        return self.left

    def answer(self, question, ask):
        value = ask().open_bounded()
        self.left -= len(value)
        return Sanitised(value, (Receipt("none", self.block, self.left),))


def noise_free(section, ensemble, split, chunk=CHUNK):
    wanted = wishes(section, Fraction(1, 1000))
    passages = {name: NoNoise(*wish) for name, wish in wanted.items()}
    return Source(section, ensemble, passages, split, chunk)


def probabilities(scores):
    """Of the classes, from their logarithms."""
    found = np.exp(scores.values)
    return found / found.sum(axis=1, keepdims=True)
