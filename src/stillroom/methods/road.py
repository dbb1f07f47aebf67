"""The road from a recipe to a bundle: records, features, ledger, gate, training, certificate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from stillroom.data import Dataset, Split
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.features import FEATURES
from stillroom.gate import Budget, Gate, GaussianSum, Ledger, Mechanism, NoisyCounts, Passage
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.methods.direct import Direct, train
from stillroom.methods.recipe import Recipe, person_warnings, read
from stillroom.methods.run import Run, begin_or_continue
from stillroom.private import Clip, LinearPersons, LinearRecords, cap_records, confusion
from stillroom.public import Descent
from stillroom.release import Evaluation, Made, verify_bundle, write_bundle
from stillroom.release.keys import read_private
from stillroom.vocabulary import Pair, Relation, Unit

LEAST_SIGNAL = 3.0
"""Noise alone exceeds it once in some hundred runs; the demo's models have 6 to 8."""

NOMINAL_WIDTH = 10**6
"""Weights assumed where the data have not been looked at; only the table error depends on it."""


ASSUMPTIONS = {
    "integer sums": "checked: every term's norm is compared with the clip in whole numbers",
    "features of one record": "checked: fixed features, no statistic over several records",
    "unique ids": "checked: by the data set",
    "noise": "checked: operating-system randomness, recorded with the block",
    "public size": "assumed: declared in the recipe, not counted in the data",
}


@dataclass(frozen=True)
class Cost:
    """What a recipe will draw and what that costs.

    Args:
        multiplier: noise over clip.
        epsilon: certified, for the whole release.
        wishes: the mechanisms and their counts.
    """

    multiplier: Fraction
    epsilon: float
    wishes: tuple[tuple[Mechanism, int], ...]


def plan_of(recipe: Recipe) -> Direct:
    """The recipe's numbers for the method."""
    training = recipe.training
    return Direct(
        steps=training.steps,
        rate=training.rate,
        clip=Clip(training.clip, training.normalise),
        public_size=recipe.data.public_size,
        learning_rate=training.learning_rate,
        momentum=training.momentum,
        average_from=training.average_from,
        unit=Unit(recipe.data.unit),
    )


def headline(recipe: Recipe) -> Pair:
    """The pair the recipe's epsilon is for: one record, or one person, more or less."""
    return Pair(Unit(recipe.data.unit), Relation.ADD_OR_REMOVE)


def cost_of(recipe: Recipe, classes: int, width: int = NOMINAL_WIDTH) -> Cost:
    """The least noise with which the whole release, its evaluation included, fits the recipe."""
    plan, privacy, pair = plan_of(recipe), recipe.privacy, headline(recipe)
    most = recipe.data.max_records_per_person if pair.unit is Unit.PERSON else 1
    counts = NoisyCounts(privacy.evaluation_sigma, classes**2, most, pair.unit)
    extra = [] if recipe.data.test_is_public else [(counts, 1)]
    measured = [line for mechanism, count in extra for line in mechanism.lines(count)]
    if measured and price(measured, pair).epsilon(privacy.delta) >= privacy.epsilon:
        raise BadInput(
            "the charged evaluation alone costs more than the recipe's epsilon",
            where="privacy.evaluation_sigma",
            why="nothing would be left for the training",
            remedy="raise evaluation_sigma, or declare the test part public",
        )
    multiplier = smallest_sigma(
        lambda noise: [*plan.mechanism(width, noise).lines(plan.steps), *measured],
        privacy.epsilon,
        privacy.delta,
        pair,
    )
    sums = plan.mechanism(width, multiplier)
    spent = price([*sums.lines(plan.steps), *measured], pair).epsilon(privacy.delta)
    return Cost(multiplier, spent, ((sums, plan.steps), *extra))


def seconds_a_step(recipe: Recipe) -> float:
    """How long a step takes here, tried on as many blank records as the recipe declares."""
    size = recipe.data.public_size
    blank = LinearRecords(
        np.zeros((size, 256), dtype=np.float32), np.zeros(size, dtype=np.int64), 10
    )
    weights = np.zeros((10, 256), dtype=np.float32)
    blank.clipped_sum(weights, plan_of(recipe).clip, None)  # the first one loads its kernels
    start = time.perf_counter()
    blank.clipped_sum(weights, plan_of(recipe).clip, None)
    return (time.perf_counter() - start) * float(recipe.training.rate)


def release(
    recipe_file: Path,
    output: Path,
    *,
    sign_with: Path | None = None,
    budget: Budget | None = None,
    tell: Callable[[str], None] = lambda line: None,
    on_step: Callable[[int, int], None] = lambda step, steps: None,
) -> dict[str, Any]:
    """Follow a recipe to a bundle in `output`; the same call goes on where it was cut off.

    Guarantee: one record of the sensitive part, at the epsilon on the certificate.

    Args:
        recipe_file: the recipe.
        output: the folder for the bundle; must not exist, or be empty.
        sign_with: a private key for the manifest.
        budget: set where the ledger has none yet; None leaves that to its owner.
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
    with begin_or_continue(run_folder, text) as run:
        split = _capped(recipe, recipe.split(recipe_file.parent))
        tell(f"features `{recipe.training.features}` of {split.sensitive}")
        records = _records(recipe, split.sensitive)
        with closing(_ledger(recipe, recipe_file.parent, split, run, budget)) as ledger:
            gate = Gate(ledger, *_protected(recipe, split))
            under = run.block_recipe(text)
            ways = gate.reopen(under)
            if ways is None:
                tell("finding the least noise")
                cost = cost_of(recipe, records.classes, records.width)
                ways = _reserve(gate, cost.wishes, under, recipe.privacy.on_exhausted == "stop")
            run.remember(ledger.head())
            tell("training")
            layer = train(
                ways[0], records, plan_of(recipe), lambda step: on_step(step, ways[0].count)
            )
            weights = layer.result()
            made = Made(
                method=recipe.method,
                mode=recipe.mode,
                weights=weights,
                features=recipe.training.features,
                shape=split.sensitive.shape,
                classes=split.sensitive.classes,
                recipe=text,
                ledger=ledger,
                blocks=(ways[0].block,),
                unit=Unit(recipe.data.unit),
                delta=recipe.privacy.delta,
                assumptions=ASSUMPTIONS,
                warnings=(
                    *person_warnings(recipe, split.sensitive),
                    *_learning_warnings(layer, ways[0].mechanism),
                ),
                tuning=recipe.privacy.tuning,
                public_knowledge=(
                    f"fixed features `{recipe.training.features}`, fitted on nothing",
                ),
                evaluation=_evaluate(recipe, split, weights, ways[1:]),
            )
            run.remember(ledger.head())
            tell("writing the bundle")
            return write_bundle(made, output, key)


def _reserve(
    gate: Gate, wishes: Sequence[tuple[Mechanism, int]], under: str, stop: bool
) -> list[Passage]:
    """Pay for the whole release, or, where the recipe says stop, for the steps that fit (L4)."""
    (sums, steps), *rest = wishes
    while True:
        try:
            return gate.reserve_all([(sums, steps), *rest], recipe=under)
        except BudgetExhausted:
            if not stop or steps == 1:
                raise
            steps = max(1, steps * 7 // 8)


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
    report = verify_bundle(output)
    if signed and report["signature"].startswith("none"):
        raise BadInput(
            "the finished bundle is not signed",
            where=str(output),
            why="the command asks for a signature, and a bundle is never changed",
            remedy="delete the bundle and give the command again: nothing more is drawn for it",
        )
    certificate: dict[str, Any] = json.loads((output / "certificate.json").read_text())
    return certificate


def _learning_warnings(layer: Descent, mechanism: Mechanism) -> tuple[str, ...]:
    """A word where the noisy sums cannot be told from noise alone: the model has not learnt."""
    assert isinstance(mechanism, GaussianSum)
    if layer.signal(float(mechanism.sigma)) > LEAST_SIGNAL:
        return ()
    return (
        "The noisy gradients cannot be told from noise alone: the model has hardly learnt. "
        "More records, a larger clip, fewer steps or a larger epsilon may help.",
    )


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


def _records(recipe: Recipe, data: Dataset) -> LinearRecords:
    rows, classes = FEATURES[recipe.training.features](data.x), len(data.classes)
    if recipe.data.unit == "record" or data.persons is None:
        return LinearRecords(rows, data.y, classes)
    most = recipe.data.max_records_per_person
    return LinearPersons(rows, data.y, classes, data.persons, most)


def _ledger(recipe: Recipe, folder: Path, split: Split, run: Run, budget: Budget | None) -> Ledger:
    path = folder / recipe.ledger
    if path.exists():
        ledger = Ledger.open(path, head=run.head)
    else:
        ids, persons = _protected(recipe, split)
        ledger = Ledger.create(path, ids=ids, persons=persons, purpose=recipe.purpose)
    if budget is not None and not ledger.budgets():
        ledger.set_budget(budget, reason="set with the first release")
    return ledger


def _protected(recipe: Recipe, split: Split) -> tuple[list[str], list[str] | None]:
    """The ids, and persons where known, of everything the ledger must answer for."""
    parts = [split.sensitive] if recipe.data.test_is_public else [split.sensitive, split.test]
    ids = [i for part in parts for i in part.ids]
    known = split.sensitive.persons is not None
    return ids, [p for part in parts for p in part.persons or ()] if known else None


def _evaluate(
    recipe: Recipe, split: Split, weights: np.ndarray, ways: Sequence[Passage]
) -> Evaluation | None:
    """How good the model is on the test part, as K1 allows."""
    if not len(split.test):
        return None
    classes = len(split.test.classes)
    rows = FEATURES[recipe.training.features](split.test.x)
    guesses = LinearRecords(rows, split.test.y, classes).guesses(weights)
    if recipe.data.test_is_public:
        table = np.zeros((classes, classes), dtype=np.int64)
        np.add.at(table, (split.test.y, guesses), 1)
        return _evaluation(table, "test part, declared public: exact", protected=False)
    (way,) = ways
    unit, most = Unit(recipe.data.unit), 1
    if unit is Unit.PERSON:
        most = recipe.data.max_records_per_person
    bounded = confusion(split.test.y, guesses, classes, unit=unit, records=most)
    answers = way.earlier() or ([way.release(bounded)] if way.left else [])
    if not answers:
        return None  # the one charged answer was lost, and is not drawn again (L2)
    table = answers[0].value.reshape(classes, classes)
    return _evaluation(table, "test part, sensitive: noisy counts", protected=True)


def _evaluation(table: np.ndarray, records: str, *, protected: bool) -> Evaluation:
    accuracy = float(np.trace(table) / max(1, table.sum()))
    rows = tuple(tuple(int(count) for count in row) for row in table)
    return Evaluation(min(1.0, max(0.0, accuracy)), rows, records, protected)
