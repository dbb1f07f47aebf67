"""A run in memory: recipe and parties to a result; nothing is written but the ledger.

Audits and comparisons call `run` hundreds of times in one process, with ledgers in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from stillroom.data import Dataset, shards
from stillroom.data.store import home
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import Gate, Ledger, Passage
from stillroom.methods.base import Measured, ModelGuesses, Plan, Result, Terms
from stillroom.methods.registry import method_named
from stillroom.methods.wording import promise_warnings
from stillroom.pipeline.estimate import tried, worth_trying
from stillroom.pipeline.pricing import EVALUATION, Wish, price
from stillroom.private import confusion
from stillroom.recipe import Recipe
from stillroom.release import Evaluation
from stillroom.release.sections.controls import Control
from stillroom.release.sections.evaluation import accuracy_of, better_than_guessing
from stillroom.sources import Facts, Party, Places, Progress, PublicSide, Setting
from stillroom.sources.base import PUBLIC_RECORDS, Observed
from stillroom.vocabulary import Bounded, Integers, Sealed, Unit

PERSONS = "persons"
"""Whether the records name persons stands on every certificate."""
LABEL_PLACES = 10**6


@dataclass(frozen=True)
class Finished:
    """A run that has come to its end, ready to be published.

    Args:
        recipe: the recipe.
        parties: whose records were used.
        blocks: what each party's ledger was charged for it.
        facts: what is public about the data.
        observed: everything the statements on a certificate rest on.
        plan: what was drawn, and what the model is compared with.
        terms: what the certificate says.
        result: the model, and what its method knows of it.
        evaluation: how good it is on the test part; None where nothing was tested.
        controls: those of the plan, with their accuracies.
        columns: the names of a record's features, where there are some.
    """

    recipe: Recipe
    parties: Sequence[Party]
    blocks: Mapping[str, int]
    facts: Facts
    observed: Observed
    plan: Plan
    terms: Terms
    result: Result
    evaluation: Evaluation | None
    controls: tuple[Control, ...]
    columns: tuple[str, ...] | None

    @property
    def accuracy(self) -> float | None:
        """On the test part; None where nothing was tested, or too little for its noise."""
        if self.evaluation is None:
            return None
        sigma = self.recipe.privacy.evaluation_sigma if self.evaluation.protected else None
        return accuracy_of(self.evaluation.confusion, sigma)


def run(
    recipe: Recipe,
    parties: Sequence[Party],
    public: Dataset,
    test: Sealed[Dataset] | Dataset,
    *,
    under: str | None = None,
    places: Places | None = None,
    progress: Progress | None = None,
    paying: AbstractContextManager[None] | None = None,
) -> Finished:
    """Follow a recipe with these records; a run under the same name goes on where it was cut off.

    Guarantee: one unit of a party's records, at the price of the block its ledger was charged for.

    Args:
        recipe: the recipe.
        parties: whose sealed records, and their ledgers.
        public: the public part; may be empty, and has the shape and the classes of all.
        test: the test part; a `Dataset` where it is declared public.
        under: what the block is reserved under; the recipe when left out.
        places: where things are kept; a folder that vanishes, and shared public work when left out.
        progress: told.
        paying: entered around the payment.

    Raises:
        BadInput, NumericalDoubt: something does not fit; nothing is paid for.
        BudgetExhausted: it does not fit the budget; nothing is drawn.

    >>> from stillroom.data import Split, digits
    >>> from stillroom.gate import Budget, Ledger
    >>> from stillroom.methods.registry import parse
    >>> recipe = parse(
    ...     'purpose = "benchmark"\\n[data]\\nsource = "digits"\\ntest_is_public = true\\n'
    ...     'declared_size = 1440\\n[features]\\nname = "pixels"\\n[privacy]\\nepsilon = 3'
    ... )
    >>> parts = Split.by_fraction(digits(), "tour", public=0).sealed(test_is_public=True)
    >>> ledger = Ledger.in_memory(parts.sensitive, purpose="benchmark")
    >>> ledger.set_budget(Budget(epsilon=3, delta=1e-5), reason="an example")
    >>> party = Party("data", parts.sensitive, ledger)
    >>> finished = run(recipe, [party], parts.public, parts.test)
    >>> finished.accuracy > 0.7
    True
    """
    progress = progress or Progress()
    _refuse_other_test(recipe, test)
    with _places(places) as kept, in_silence():
        kept.private_work.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = facts_of(public)
        positive = recipe.data.positive_of(facts.classes)
        gates: dict[str, Gate] = {}

        def begin(*, quick: bool = False) -> None:
            if gates:
                return
            for party in parties:
                refuse_purpose(recipe, party.ledger)
                gates[party.name] = Gate.of(party.ledger, *protected(party, test))
            refuse_opened(parties, public, test)
            refuse_without_budgets(parties, recipe.privacy.epsilon)
            _tell_how_long(recipe, facts, progress)

        method = method_named(recipe.method)
        method.plan(recipe, facts)  # refuses what cannot be drawn of such records
        side = public_side(recipe, public, test)
        # What is wrong with a record must be found by now: once something is paid for, no refusal
        # may depend on one (K10).
        job = method.prepare(Setting(recipe, facts, parties, side, kept, progress, begin))
        begin()
        facts = replace(facts, width=job.width)
        name = recipe.model_dump_json() if under is None else under
        with paying or nullcontext():
            passages = _pay(gates, recipe, facts, name, progress)
        result = job.run(passages)
        progress.tell("measuring")
        plan = method.plan(recipe, facts)
        own = next(iter(passages.values()))
        passage = own.get(EVALUATION)
        evaluation, controls = _evaluate(recipe, test, result, plan, passage, positive)
        observed = {
            PERSONS: facts.names_persons,
            PUBLIC_RECORDS: facts.public_records,
            **result.observed,
        }
        if "learnt" in observed and evaluation is not None:
            # Sums that are too faint to be told from noise may still add up to a model.
            learnt = bool(observed["learnt"])
            observed["learnt"] = learnt or better_than_guessing(evaluation.confusion)
        paid = next(iter(own.values()))
        terms = terms_of(recipe, observed, paid.count)
        return Finished(
            recipe=recipe,
            parties=parties,
            blocks={party: next(iter(own.values())).block for party, own in passages.items()},
            facts=facts,
            observed={name: observed[name] for name in sorted(terms.observed)},
            plan=plan,
            terms=terms,
            result=result,
            evaluation=evaluation,
            controls=controls,
            columns=public.columns,
        )


def _tell_how_long(recipe: Recipe, facts: Facts, progress: Progress) -> None:
    """Before anything is paid, by made-up records; nobody waits for it where a run is short."""
    if progress.expect is None or not worth_trying(recipe, facts):
        return
    progress.tell("trying how long it takes")
    phases = tried(recipe, facts)
    if phases is not None:
        progress.expect(phases)


def facts_of(public: Dataset) -> Facts:
    """What is public about the data, by their public part."""
    named = public.persons is not None
    return Facts(public.shape, public.classes, len(public), names_persons=named)


def public_side(recipe: Recipe, public: Dataset, test: Sealed[Dataset] | Dataset) -> PublicSide:
    """What may be used without charge."""
    tested = None if isinstance(test, Sealed) else test
    return PublicSide(public, _labelled(recipe, public), tested)


def _labelled(recipe: Recipe, public: Dataset) -> Dataset:
    """The public records whose labels are used: a share of them, by keyed hash of their units."""
    place = shards(public.units, LABEL_PLACES, f"{recipe.data.key}/labelled")
    return public.select(np.flatnonzero(place < int(recipe.data.labelled_share * LABEL_PLACES)))


def terms_of(recipe: Recipe, observed: Observed, paid: int) -> Terms:
    """What a certificate says: the method's own terms, and what holds for every method."""
    terms = method_named(recipe.method).terms(recipe, observed, paid)
    promises = promise_warnings(recipe, names_persons=bool(observed[PERSONS]))
    return replace(
        terms,
        warnings=(*promises, *terms.warnings),
        observed=terms.observed | {PERSONS},
    )


def default_places(checkpoint: Path, files: Path) -> Places:
    """Public and private work in the data home, shared by all runs."""
    return Places(home() / "work", home() / "private-work", checkpoint, files)


@contextmanager
def _places(given: Places | None) -> Iterator[Places]:
    if given is not None:
        yield given
        return
    with TemporaryDirectory() as folder:
        kept = Path(folder)
        yield Places(home() / "work", kept / "private-work", kept, Path())


@contextmanager
def in_silence() -> Iterator[None]:
    """Whatever a library has to say of a record stays unsaid: a warning would tell of it (K10)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def protected(party: Party, test: Sealed[Dataset] | Dataset) -> list[Sealed[Dataset]]:
    """Everything the ledger must answer for."""
    return [party.data, test] if isinstance(test, Sealed) else [party.data]


def _refuse_other_test(recipe: Recipe, test: Sealed[Dataset] | Dataset) -> None:
    """What is measured exactly must be declared public by the recipe, and nothing else (K1)."""
    if recipe.data.test_is_public != isinstance(test, Dataset):
        raise BadInput(
            "the test part is not what the recipe declares",
            where="data.test_is_public",
            why="a sealed part is measured through the gate, a public one exactly and for nothing",
            remedy="give what `Split.sealed(recipe.data.test_is_public)` gives",
        )


def refuse_purpose(recipe: Recipe, ledger: Ledger) -> None:
    """A recipe for a benchmark may draw what a ledger for release must not be charged with (L5)."""
    if str(ledger.purpose) != recipe.purpose:
        raise BadInput(
            f"a recipe for {recipe.purpose} and a ledger for {ledger.purpose}",
            where=f"purpose, {ledger.path}",
            why="models that saw records in the clear are for benchmark and audit alone, and a "
            "paper's algorithm may leave a ledger at infinity",
            remedy="name the ledger's own purpose in the recipe, or another ledger",
        )


def refuse_opened(
    parties: Sequence[Party], public: Dataset, test: Sealed[Dataset] | Dataset
) -> None:
    """What any ledger answers for cannot be public: its totals would leave the rest out."""
    opened = [*public.ids, *(() if isinstance(test, Sealed) else test.ids)]
    first, *others = parties
    # What ledgers elsewhere hold is the same question for all parties, and asked once.
    told = [first] if first.ledger.protects(opened) else []
    told += [party for party in others if party.ledger.recognises(opened, own=party.data)]
    if told:
        raise BadInput(
            "a record that is to be public belongs to a ledger, as a sensitive one",
            where=str(told[0].ledger.path),
            why="earlier releases promised to protect it, and what is public is not charged",
            remedy="keep the public and test parts as they were, or use other records",
        )


def refuse_without_budgets(parties: Sequence[Party], epsilon: float) -> None:
    """Of one ledger by its own words; of several, once for all."""
    without = [party for party in parties if party.ledger.promises.own_budget is None]
    if len(parties) == 1 or not without:
        for party in without:
            party.ledger.refuse_without_budget(epsilon)
        return
    ledger = without[0].ledger
    raise BadInput(
        f"no budget is set for {len(without)} of {len(parties)} entities, for "
        f"{ledger.promises.own}",
        where=str(ledger.path.parent),
        why="without one nobody has decided how much may be told about their records",
        remedy=f"stillroom ledger budget set {ledger.path.parent} --epsilon {epsilon:g} "
        "--reason '...'",
    )


def _pay(
    gates: Mapping[str, Gate], recipe: Recipe, facts: Facts, under: str, progress: Progress
) -> dict[str, dict[str, Passage]]:
    """Pay for the whole release, each party for its part of it."""
    paid = {party: gate.reopen(under) for party, gate in gates.items()}
    unpaid = [party for party, old in paid.items() if old is None]
    if unpaid:
        progress.tell("finding the least noise")
        cost = price(recipe, facts)
    if len(unpaid) > 1:
        # Nobody is charged for a release that another party cannot afford.
        for party in unpaid:
            gates[party].refuse_what_does_not_fit(
                cost.wishes_of(party), accept_infinite=recipe.mode == "as-published"
            )
    return {
        party: _paid_by(gates[party], cost.wishes_of(party), recipe, under) if old is None else old
        for party, old in paid.items()
    }


def _paid_by(gate: Gate, wishes: dict[str, Wish], recipe: Recipe, under: str) -> dict[str, Passage]:
    """All of it or, where the recipe says stop, what fits (L4)."""
    first, (mechanism, count) = next(iter(wishes.items()))
    published = recipe.mode == "as-published"
    while True:
        try:
            return gate.reserve_all(
                {**wishes, first: (mechanism, count)}, recipe=under, accept_infinite=published
            )
        except BudgetExhausted:
            if recipe.privacy.on_exhausted == "refuse" or count == 1:
                raise
            count = max(1, count * 7 // 8)


def _evaluate(
    recipe: Recipe,
    test: Sealed[Dataset] | Dataset,
    result: Result,
    plan: Plan,
    passage: Passage | None,
    positive: str | None,
) -> tuple[Evaluation | None, tuple[Control, ...]]:
    """How good the model and its controls are on the test part, as K1 allows."""
    model = ModelGuesses(result.model, alone=isinstance(test, Sealed))
    measured: dict[str, Measured] = {"model": model}
    measured |= {control.name: result.controls[control.name] for control in plan.controls}
    classes = result.model.outputs
    if isinstance(test, Dataset):
        tables = [_counted(test, model.guesses(test)) for model in measured.values() if len(test)]
        sigma = None
    else:
        assert passage is not None
        unit, most = Unit(recipe.data.unit), recipe.privacy.evaluation_records_per_person
        sigma, tables = recipe.privacy.evaluation_sigma, []
        for name, rival in measured.items():
            # What was lost is not drawn again (L2), so the last ones may be missing. An empty test
            # part is drawn for all the same: how much is drawn must not tell of it (K10).
            if not passage.ahead(1):
                break

            def counts(rival: Measured = rival) -> Bounded:
                return confusion(test, rival.guesses, unit=unit, records=most)

            told = passage.answer(f"confusion of {name}".encode(), counts)
            tables.append(told.value.reshape(classes, classes))
    if not tables:
        return None, ()
    controls = tuple(
        replace(control, accuracy=accuracy_of(table.tolist(), sigma))
        for control, table in zip(plan.controls, tables[1:], strict=False)
    )
    own = tuple(tuple(int(count) for count in row) for row in tables[0])
    return Evaluation(own, protected=sigma is not None, positive=positive), controls


def _counted(test: Dataset, guesses: Integers) -> Integers:
    """Exact counts, of records that anyone may see."""
    table = np.zeros((len(test.classes), len(test.classes)), dtype=np.int64)
    np.add.at(table, (test.y, guesses), 1)
    return table
