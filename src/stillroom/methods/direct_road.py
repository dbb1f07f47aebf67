"""Method direct on its way from a split to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from stillroom.data import Split
from stillroom.gate import GaussianSum, Mechanism, Passage
from stillroom.methods.costs import plan_of, sketch_of
from stillroom.methods.learners import Learner, learner_of
from stillroom.methods.outcome import Outcome
from stillroom.methods.recipe import Recipe
from stillroom.methods.sketched import draw_sketch, shown, to_fit_on

LEAST_SIGNAL = 3.0
"""Noise alone exceeds it once in some hundred runs; the demo's models have 6 to 8."""


class DirectWay:
    """A model trained on the sensitive records through the gate, and perhaps a student of it.

    Args:
        recipe: a recipe of method direct.
        split: its sensitive part is trained on.
        recipe_folder: files the recipe names lie there.
        run_folder: keeps what a run needs to go on.

    Raises:
        BadInput: something does not fit the records; nothing is paid for yet.
    """

    def __init__(self, recipe: Recipe, split: Split, recipe_folder: Path, run_folder: Path) -> None:
        self._recipe, self._data = recipe, split.sensitive
        self._learner = learner_of(recipe, split, recipe_folder, run_folder)
        sketch_of(recipe, self._data.shape)
        if recipe.student is not None:
            from stillroom.methods.student import student_network

            # A student that does not fit is found before anything is paid for.
            student_network(recipe, self._data.shape, len(self._data.classes))
        self.width = self._learner.width

    def prepare(self, tell: Callable[[str], None], on_step: Callable[[int, int], None]) -> None:
        """Nothing is trained on public records beforehand."""

    def follow(
        self,
        ways: Sequence[Passage],
        tell: Callable[[str], None],
        on_step: Callable[[int, int], None],
    ) -> Outcome:
        """Sketch, features, training, and the student where there is one."""
        recipe, learner, (training, *others) = self._recipe, self._learner, ways
        if others:
            tell("sketch")
        mixture = draw_sketch(recipe, self._data, others)
        tell("features")
        learner.prepare(to_fit_on(recipe, mixture), on_step)
        tell("training")
        learner.train(training, lambda step: on_step(step, training.count))
        model, guesses, knowledge = learner.model(), learner.guesses, learner.knowledge
        if recipe.student is not None and mixture is not None:
            from stillroom.methods.student import Student

            tell("student")
            student = Student.taught(recipe, mixture, model, on_step)
            model, guesses = student.model(), student.guesses
            knowledge = (*knowledge, student.knowledge)
        return Outcome(
            model=model,
            guesses=guesses,
            assumptions=learner.assumptions,
            knowledge=knowledge,
            warnings=training_warnings(recipe, learner, training),
            samples=shown(mixture),
        )


def training_warnings(recipe: Recipe, learner: Learner, way: Passage) -> tuple[str, ...]:
    """A word where the budget ended early, and where the model has not learnt."""
    told = []
    planned = plan_of(recipe).steps
    if way.count < planned:
        told.append(
            f"The budget ended early: {way.count} of {planned} planned steps were paid for and "
            "taken, none after them."
        )
    if not _learnt(learner, way.mechanism):
        told.append(
            "The noisy gradients cannot be told from noise alone: the model has hardly learnt. "
            "More records, a larger clip, fewer steps or a larger epsilon may help."
        )
    return tuple(told)


def _learnt(learner: Learner, mechanism: Mechanism) -> bool:
    assert isinstance(mechanism, GaussianSum)
    return learner.signal(float(mechanism.sigma)) > LEAST_SIGNAL
