"""The road from a recipe to a bundle: records, features, ledger, gate, training, certificate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset, PublicPictures, Split
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import Budget, Gate, GaussianSum, Ledger, Mechanism, Passage
from stillroom.methods.costs import cost_of, plan_of, sketch_of
from stillroom.methods.learners import Learner, learner_of
from stillroom.methods.recipe import Recipe, person_warnings, read
from stillroom.methods.run import Run, begin_or_continue
from stillroom.private import Clip, LinearRecords, cap_records, confusion
from stillroom.public import Mixture
from stillroom.release import Evaluation, Made, verify_bundle, write_bundle
from stillroom.release.keys import read_private
from stillroom.vocabulary import Integers, Unit

LEAST_SIGNAL = 3.0
"""Noise alone exceeds it once in some hundred runs; the demo's models have 6 to 8."""

ASSUMPTIONS = {
    "unique ids": "checked: by the data set",
    "noise": "checked: operating-system randomness, recorded with the block",
    "public size": "assumed: declared in the recipe, not counted in the data",
}
SHOWN_SAMPLES = 100


def seconds_a_step(recipe: Recipe) -> float | None:
    """How long a step takes here, tried on as many blank records as the recipe declares.

    None for a network: it depends on pictures that are not looked at before the release.
    """
    clip = plan_of(recipe).clip
    if not isinstance(clip, Clip):
        return None
    size, width = recipe.data.public_size, recipe.features.components or 256
    blank = LinearRecords(
        np.zeros((size, width), dtype=np.float32), np.zeros(size, dtype=np.int64), 10
    )
    weights = np.zeros((10, width), dtype=np.float32)
    blank.clipped_sum(weights, clip, None)  # the first one loads its kernels
    start = time.perf_counter()
    blank.clipped_sum(weights, clip, None)
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
        data = split.sensitive
        tell(f"looking at {data}")
        learner = learner_of(recipe, split, recipe_file.parent, run.folder)
        sketch = sketch_of(recipe, data.shape)
        if recipe.student is not None:
            from stillroom.methods.student import student_network

            # A student that does not fit is found before anything is paid for.
            student_network(recipe, data.shape, len(data.classes))
        with closing(_ledger(recipe, recipe_file.parent, split, run, budget)) as ledger:
            gate = Gate(ledger, *_protected(recipe, split))
            under = run.block_recipe(text)
            ways = gate.reopen(under)
            if ways is None:
                tell("finding the least noise")
                cost = cost_of(recipe, len(data.classes), learner.width, data.shape)
                ways = _reserve(gate, cost.wishes, under, recipe.privacy.on_exhausted == "stop")
            run.remember(ledger.head())
            training, *others = ways
            mixture = None
            if sketch is not None:
                tell("sketch")
                count = len(sketch.wishes(len(data.classes)))
                own, others = others[:count], others[count:]
                mixture = sketch.draw(own, sketch.records(data.x, data.y, len(data.classes)))
            tell("features")
            learner.prepare(_sampled(recipe, mixture), on_step)
            tell("training")
            learner.train(training, lambda step: on_step(step, training.count))
            if recipe.student is None or mixture is None:
                model, guesses, knowledge = learner.model(), learner.guesses, learner.knowledge
            else:
                from stillroom.methods.student import Student

                tell("student")
                student = Student.taught(recipe, mixture, learner.model(), on_step)
                model, guesses = student.model(), student.guesses
                knowledge = (*learner.knowledge, student.knowledge)
            made = Made(
                method=recipe.method,
                mode=recipe.mode,
                model=model,
                classes=data.classes,
                recipe=text,
                ledger=ledger,
                blocks=(training.block,),
                unit=Unit(recipe.data.unit),
                delta=recipe.privacy.delta,
                assumptions={**learner.assumptions, **ASSUMPTIONS},
                warnings=(
                    *person_warnings(recipe, data),
                    *_learning_warnings(learner, training.mechanism),
                ),
                tuning=recipe.privacy.tuning,
                public_knowledge=knowledge,
                evaluation=_evaluate(recipe, split, guesses, others),
                samples=None if mixture is None else _shown(mixture),
            )
            run.remember(ledger.head())
            tell("writing the bundle")
            return write_bundle(made, output, key)


def _shown(mixture: Mixture) -> npt.NDArray[np.float32]:
    """Some samples for the card, class by class."""
    pictures, classes = mixture.sample(0, SHOWN_SAMPLES)
    return pictures[np.argsort(classes, kind="stable")]


def _sampled(recipe: Recipe, mixture: Mixture | None) -> PublicPictures | None:
    """Pictures drawn from the sketch, to fit features on."""
    if mixture is None or recipe.sketch is None:
        return None
    part = recipe.sketch
    pictures, _ = mixture.sample(1, part.samples, sharpen=part.sharpen, warp=part.warp)
    scaled = pictures * np.float32(recipe.features.full_scale)
    return PublicPictures(scaled, "samples of the sketch, which came through the gate")


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


def _learning_warnings(learner: Learner, mechanism: Mechanism) -> tuple[str, ...]:
    """A word where the noisy sums cannot be told from noise alone: the model has not learnt."""
    assert isinstance(mechanism, GaussianSum)
    if learner.signal(float(mechanism.sigma)) > LEAST_SIGNAL:
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
    recipe: Recipe,
    split: Split,
    guess: Callable[[Dataset], Integers],
    ways: Sequence[Passage],
) -> Evaluation | None:
    """How good the model is on the test part, as K1 allows."""
    if not len(split.test):
        return None
    classes = len(split.test.classes)
    guesses = guess(split.test)
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
