"""The road from a recipe to a bundle: records, ledger, gate, a method's way, certificate."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from stillroom.data import Dataset, Split
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import Budget, Gate, Ledger, Passage
from stillroom.methods.costs import cost_of, plan_of
from stillroom.methods.outcome import Outcome
from stillroom.methods.recipe import Recipe, read
from stillroom.methods.run import Run, begin_or_continue
from stillroom.methods.terms import OF_ALL, Terms, stated_by, terms_of, unproven_by
from stillroom.methods.verify import verify
from stillroom.private import Clip, LinearRecords, cap_records, confusion
from stillroom.release import Control, Evaluation, classifier_record, write_bundle
from stillroom.release.keys import read_private
from stillroom.release.sections.evaluation import accuracy_of, better_than_guessing
from stillroom.vocabulary import Integers, Unit

Tell = Callable[[str], None]
Progress = Callable[[int, int], None]
MOST_TRIED = 1 << 24
"""Numbers in the blank records on which the length of a step is tried."""


def seconds_a_step(recipe: Recipe) -> float | None:
    """How long a step takes here, tried on blank records and scaled to the declared size.

    None for a network: it depends on pictures that are not looked at before the release.
    """
    clip = plan_of(recipe).clip
    if not isinstance(clip, Clip):
        return None
    width = recipe.features.components or 256
    size = max(1, min(recipe.data.public_size, MOST_TRIED // width))
    blank = LinearRecords(
        np.zeros((size, width), dtype=np.float32), np.zeros(size, dtype=np.int64), 10
    )
    weights = np.zeros((10, width), dtype=np.float32)
    blank.clipped_sum(weights, clip, None)  # the first one loads its kernels
    start = time.perf_counter()
    blank.clipped_sum(weights, clip, None)
    every = (time.perf_counter() - start) * recipe.data.public_size / size
    return every * float(recipe.training.rate)


def release(
    recipe_file: Path,
    output: Path,
    *,
    sign_with: Path | None = None,
    budget: Budget | None = None,
    accept_infinite: bool = False,
    tell: Tell = lambda line: None,
    on_step: Progress = lambda step, steps: None,
) -> dict[str, Any]:
    """Follow a recipe to a bundle in `output`; the same call goes on where it was cut off.

    Guarantee: one record of the sensitive part, at the epsilon on the certificate.

    Args:
        recipe_file: the recipe.
        output: the folder for the bundle; must not exist, or be empty.
        sign_with: a private key for the manifest.
        budget: set where the ledger has none yet; None leaves that to its owner.
        accept_infinite: let a paper's algorithm leave a ledger for release at infinity (L5).
        tell: told what is being done.
        on_step: told after each training step.

    Returns:
        The certificate.

    Raises:
        BadInput: the recipe, the data or the output folder cannot be used.
        BudgetExhausted: the release does not fit the budget; nothing was drawn.
    """
    recipe, text = read(recipe_file)
    key = None if sign_with is None else read_private(sign_with)
    run_folder = output.with_name(output.name + ".run")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        return _finished(output, run_folder, text, signed=key is not None)
    if recipe.mode == "as-published" and recipe.purpose == "release" and not accept_infinite:
        raise BadInput(
            "a paper's algorithm on a ledger for release",
            where="mode, purpose",
            why="what it draws may have no finite price, and the ledger stays at infinity",
            remedy='use purpose = "benchmark", or say --accept-infinite',
        )
    with begin_or_continue(run_folder, text) as run, _in_silence():
        split = _capped(recipe, recipe.split(recipe_file.parent))
        tell(f"looking at {split.sensitive}")
        way = _way_of(recipe, split, recipe_file.parent, run.folder)
        with closing(_ledger(recipe, recipe_file.parent, split, run, budget)) as ledger:
            _refuse_opened(recipe, ledger, split)
            gate = Gate(ledger, *_protected(recipe, split))
            # What follows may take hours, and whatever can be found wrong with a record must be
            # found by then: once something is paid for, no refusal may depend on one (K10).
            ledger.refuse_without_budget(recipe.privacy.epsilon)
            way.prepare(tell, on_step)
            ledger.on_new_head(run.keep)
            with run.paying():
                ways = _pay(gate, recipe, split, way, run.block_recipe(text), tell)
            run.remember(ledger.head())
            charged = 0 if recipe.data.test_is_public else 1
            outcome = way.follow(ways[: len(ways) - charged], tell, on_step)
            tell("measuring")
            facts = {"persons": split.sensitive.persons is not None, **outcome.facts}
            terms = terms_of(recipe, facts, ways[0].count)
            evaluation, controls = _evaluate(
                recipe, split, outcome, terms, ways[len(ways) - charged :]
            )
            if "learnt" in facts and evaluation is not None:
                # Sums that are too faint to be told from noise may still add up to a model.
                facts["learnt"] = facts["learnt"] or better_than_guessing(evaluation.confusion)
                terms = terms_of(recipe, facts, ways[0].count)
            record = classifier_record(
                **stated_by(recipe),
                model=outcome.model,
                classes=split.sensitive.classes,
                recipe=text,
                ledger=ledger,
                blocks=(ways[0].block,),
                assumptions={**terms.assumptions, **OF_ALL},
                warnings=terms.warnings,
                public_knowledge=terms.knowledge,
                evaluation=evaluation,
                facts=facts,
                samples=outcome.samples,
                compression=outcome.compression,
                controls=controls,
                claim=terms.claim,
                unproven=unproven_by(recipe),
                columns=split.sensitive.columns,
            )
            run.remember(ledger.head())
            tell("writing the bundle")
            return write_bundle(record, output, key, verify)


@contextmanager
def _in_silence() -> Iterator[None]:
    """Whatever a library has to say of a record stays unsaid: a warning would tell of it (K10)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


class Way(Protocol):
    """How a method goes from a split to a model; made before anything is paid for."""

    @property
    def width(self) -> int:
        """Coordinates of what is drawn; known before anything is drawn."""

    def prepare(self, tell: Tell, on_step: Progress) -> None:
        """Work that costs nothing and may refuse: on public records, and a look at sensitive ones.

        Raises:
            BadInput: something does not fit; nothing is paid for yet, and nothing is stored.
        """

    def follow(self, ways: Sequence[Passage], tell: Tell, on_step: Progress) -> Outcome:
        """From the paid passages, those of the learning first, to a model.

        Whatever is raised from here on depends on public and sanitised things alone (K10).
        """


def _way_of(recipe: Recipe, split: Split, recipe_folder: Path, run_folder: Path) -> Way:
    if recipe.method == "rona":
        from stillroom.methods.rona.road import rona_way

        return rona_way(recipe, split, run_folder)
    from stillroom.methods.direct_road import DirectWay

    return DirectWay(recipe, split, recipe_folder, run_folder)


def _pay(
    gate: Gate, recipe: Recipe, split: Split, way: Way, under: str, tell: Tell
) -> list[Passage]:
    """Pay for the whole release, or, where the recipe says stop, for what fits of it (L4)."""
    paid = gate.reopen(under)
    if paid is not None:
        return paid
    tell("finding the least noise")
    data, public = split.sensitive, len(split.public)
    cost = cost_of(recipe, len(data.classes), way.width, data.shape, public=public)
    (first, count), *rest = cost.wishes
    published = recipe.mode == "as-published"
    while True:
        try:
            return gate.reserve_all(
                [(first, count), *rest], recipe=under, accept_infinite=published
            )
        except BudgetExhausted:
            if recipe.privacy.on_exhausted == "refuse" or count == 1:
                raise
            count = max(1, count * 7 // 8)


def _finished(output: Path, run_folder: Path, text: str, *, signed: bool) -> dict[str, Any]:
    """The certificate of a run that had come to its end, for the command that is given again."""
    recipe = output / "recipe.toml"
    same = recipe.is_file() and recipe.read_bytes() == text.encode()
    if not same or not (run_folder / "run.json").is_file():
        raise BadInput(
            "there is already something at the output",
            where=str(output),
            why="a bundle is never overwritten",
            remedy="choose another folder, or verify the bundle that is there",
        )
    report = verify(output)
    if signed and report["signature"].startswith("none"):
        raise BadInput(
            "the finished bundle is not signed",
            where=str(output),
            why="the command asks for a signature, and a bundle is never changed",
            remedy="delete the bundle and give the command again: nothing more is drawn for it",
        )
    certificate: dict[str, Any] = json.loads((output / "certificate.json").read_text())
    return certificate


def _capped(recipe: Recipe, split: Split) -> Split:
    """The split with at most the recipe's number of records a person, in every part."""
    if recipe.data.unit == "record":
        return split
    parts = []
    for part in (split.public, split.sensitive, split.test):
        if part.persons is None:
            raise BadInput(
                "the records name no persons",
                where="data.unit",
                why="whoever is not named cannot be protected as one",
                remedy='name the column of persons, or use unit = "record"',
            )
        kept = cap_records(part.persons, part.ids, recipe.data.max_records_per_person)
        parts.append(part.select(kept))
    return Split(*parts)


def _ledger(recipe: Recipe, folder: Path, split: Split, run: Run, budget: Budget | None) -> Ledger:
    path = folder / recipe.ledger
    if path.exists() or run.head is not None:
        ledger = Ledger.open(path, head=run.head)
    else:
        ids, persons = _protected(recipe, split)
        try:
            ledger = Ledger.create(
                path,
                ids=ids,
                persons=persons,
                purpose=recipe.purpose,
                ids_from_content=split.sensitive.ids_from_content,
                unit=recipe.data.unit,
            )
        except BadInput:
            if not path.exists():
                raise
            ledger = Ledger.open(path)  # another run has made it meanwhile, and they share it
    ledger.fix_unit(recipe.data.unit)
    if budget is not None and not ledger.budgets():
        ledger.set_budget(budget, reason="set with the first release")
    return ledger


def _refuse_opened(recipe: Recipe, ledger: Ledger, split: Split) -> None:
    """What any ledger answers for cannot be public: its totals would leave the rest out."""
    opened = [*split.public.ids, *(split.test.ids if recipe.data.test_is_public else ())]
    if ledger.protects(opened):
        raise BadInput(
            "a record that is to be public belongs to a ledger, as a sensitive one",
            where=str(ledger.path),
            why="earlier releases promised to protect it, and what is public is not charged",
            remedy="keep the public and test parts as they were, or use other records",
        )


def _protected(recipe: Recipe, split: Split) -> tuple[list[str], list[str] | None]:
    """The ids, and persons where known, of everything the ledger must answer for."""
    parts = [split.sensitive] if recipe.data.test_is_public else [split.sensitive, split.test]
    ids = [i for part in parts for i in part.ids]
    known = split.sensitive.persons is not None
    return ids, [p for part in parts for p in part.persons or ()] if known else None


def _evaluate(
    recipe: Recipe, split: Split, outcome: Outcome, terms: Terms, ways: Sequence[Passage]
) -> tuple[Evaluation | None, tuple[Control, ...]]:
    """How good the model and its rivals are on the test part, as K1 allows."""
    classes, test = len(split.test.classes), split.test
    everyone = [outcome.guesses, *(outcome.rivals[control.name] for control in terms.controls)]
    if recipe.data.test_is_public:
        tables = [_counted(test, guesses(test)) for guesses in everyone if len(test)]
        sigma = None
    else:
        (way,) = ways
        unit, most = Unit(recipe.data.unit), recipe.privacy.evaluation_records_per_person
        # What was lost is not drawn again (L2), so the last ones may be missing. An empty test part
        # is drawn for all the same: how much is drawn must not tell that it is empty (K10).
        known = len(way.earlier())
        for guesses in everyone[known : known + way.left]:
            way.release(confusion(test, guesses(test), unit=unit, records=most))
        tables = [answer.value.reshape(classes, classes) for answer in way.earlier()]
        sigma = recipe.privacy.evaluation_sigma
    if not tables:
        return None, ()
    controls = tuple(
        replace(control, accuracy=accuracy_of(table.tolist(), sigma))
        for control, table in zip(terms.controls, tables[1:], strict=False)
    )
    own = tuple(tuple(int(count) for count in row) for row in tables[0])
    return Evaluation(own, protected=sigma is not None), controls


def _counted(test: Dataset, guesses: Integers) -> Integers:
    """Exact counts, of records that anyone may see."""
    table = np.zeros((len(test.classes), len(test.classes)), dtype=np.int64)
    np.add.at(table, (test.y, guesses), 1)
    return table
