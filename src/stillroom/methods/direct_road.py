"""Method direct on its way from a split to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from stillroom.data import Split
from stillroom.gate import GaussianSum, Mechanism, Passage
from stillroom.methods.costs import sketch_of
from stillroom.methods.learners import Learner, learner_of
from stillroom.methods.outcome import Outcome
from stillroom.methods.recipe import Recipe
from stillroom.methods.sketched import SketchToDraw, shown, to_fit_on

NOISE_ALONE = 1e-4
"""A model that learnt from noise alone goes without its warning once in 10,000 runs, at most."""


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
            from stillroom.methods.student import refuse_unfit_student

            refuse_unfit_student(recipe, self._data.shape, self._data.classes)
        self.width = self._learner.width

    def prepare(self, tell: Callable[[str], None], on_step: Callable[[int, int], None]) -> None:
        """Look at the sensitive records: their features, and what a sketch needs of them."""
        tell("features")
        self._learner.look(on_step)
        self._sketch = SketchToDraw(self._recipe, self._data)

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
        mixture = self._sketch.draw(others)
        learner.prepare(to_fit_on(recipe, mixture))
        tell("training")
        learner.train(training, lambda step: on_step(step, training.count))
        model, guesses = learner.model(), learner.guesses
        if recipe.student is not None and mixture is not None:
            from stillroom.methods.student import Student

            tell("student")
            student = Student.taught(recipe, mixture, model, on_step)
            model, guesses = student.model(), student.guesses
        facts = {"learnt": has_learnt(learner, training.mechanism)}
        return Outcome(model, guesses, facts, samples=shown(mixture))


def has_learnt(learner: Learner, mechanism: Mechanism) -> bool:
    """Whether the noisy sums can be told from noise alone."""
    assert isinstance(mechanism, GaussianSum)
    return learner.noise_alone(float(mechanism.sigma)) <= NOISE_ALONE
