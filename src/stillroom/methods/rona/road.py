"""Method rona on its way from a split to a student: public work, answers, Algorithm 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from torch import nn

from stillroom.data import Split
from stillroom.engine import Engine
from stillroom.gate import Passage
from stillroom.methods.costs import sketch_of
from stillroom.methods.outcome import Guesses, Outcome, guesser
from stillroom.methods.own_network import refuse_unexportable
from stillroom.methods.recipe import Recipe
from stillroom.methods.rona.algorithm import Guide, Source, teach
from stillroom.methods.rona.public_side import PublicSide
from stillroom.methods.rona.terms import shows_ceiling
from stillroom.release.model import ReleasedModel
from stillroom.release.sections.controls import BASE
from stillroom.release.torch_model import TorchModel

Tell = Callable[[str], None]
Progress = Callable[[int, int], None]


class RonaWay(ABC):
    """A student in the open, taught by answers that came through the gate.

    Args:
        recipe: a recipe of method rona.
        split: public, sensitive and test part.
        run_folder: keeps what a run needs to go on.

    Raises:
        BadInput: something does not fit the records; nothing is paid for yet.
    """

    def __init__(self, recipe: Recipe, split: Split, run_folder: Path) -> None:
        assert recipe.rona is not None
        self.recipe, self.part, self.split, self.folder = recipe, recipe.rona, split, run_folder
        self.engine = Engine(**recipe.engine.model_dump())
        self.public = PublicSide(recipe, split)
        self.student = self.public.student()
        sketch_of(recipe, split.sensitive.shape)
        _ = self.guide  # a layer that is not there is found before anything is paid for

    @property
    @abstractmethod
    def width(self) -> int:
        """Of a gradient sum, or of a hint."""

    @abstractmethod
    def follow(self, ways: Sequence[Passage], tell: Tell, on_step: Progress) -> Outcome:
        """From the paid passages to the taught student."""

    def prepare(self, tell: Tell, on_step: Progress) -> None:
        """Train the auxiliary teacher and Base, side by side."""
        layers = nn.Sequential(self.public.pictures, self.student)
        shape, classes = self.split.public.shape, self.split.public.classes
        refuse_unexportable(self.part.student, layers, shape, classes)
        tell("training on public records")
        self._base, self._auxiliary = self.public.train(
            self.engine, auxiliary=self.needs_auxiliary, on_done=on_step
        )
        self._ceiling: nn.Module | None = None
        if shows_ceiling(self.recipe):
            tell("training the ceiling in the clear")
            self._ceiling = self.public.in_the_clear(
                self.part.student, self.public.epochs, self.engine, on_step
            )

    @property
    def needs_auxiliary(self) -> bool:
        """Whether a teacher trained on public labels is used for more than to compare with."""
        return True

    @property
    def auxiliary(self) -> nn.Module:
        """The teacher trained on public labels."""
        assert self._auxiliary is not None
        return self._auxiliary

    @cached_property
    def guide(self) -> tuple[Guide | None, tuple[int, ...]]:
        """How the student follows hints, and their shape; nothing without hint learning."""
        if not self.part.hint_epochs:
            return None, ()
        return self.public.guide(self.student)

    def taught(self, source: Source, tell: Tell, on_step: Progress) -> ReleasedModel:
        """The student, by Algorithm 1."""
        tell("student")
        public, guide = self.public, self.guide[0]
        teach(self.student, public.pictures, public, source, self.part, guide, on_step)
        return self.released(self.student, f"network `{self.part.student}`, a student")

    def released(self, network: nn.Module, about: str) -> ReleasedModel:
        """A network from pictures to logits, for records as they are stored."""
        layers = nn.Sequential(self.public.pictures, network).eval()
        return TorchModel(layers, self.split.public.shape, about)

    def guesses(self, model: ReleasedModel) -> Guesses:
        """Of a model, on the test part."""
        return guesser(model, alone=not self.recipe.data.test_is_public)

    def rivals(self, **more: ReleasedModel) -> dict[str, Guesses]:
        """What the student is compared with, by name: Base, what else there is, the ceiling."""
        found = {BASE: self.released(self._base, "Base"), **more}
        if self._ceiling is not None:
            found["ceiling"] = self.released(self._ceiling, "ceiling")
        return {name: self.guesses(model) for name, model in found.items()}


def rona_way(recipe: Recipe, split: Split, run_folder: Path) -> RonaWay:
    """The way of the recipe's source."""
    assert recipe.rona is not None
    if recipe.rona.source == "ensemble":
        from stillroom.methods.rona.from_ensemble import FromEnsemble

        return FromEnsemble(recipe, split, run_folder)
    if recipe.rona.source == "plain":
        from stillroom.methods.rona.from_plain import FromPlain

        return FromPlain(recipe, split, run_folder)
    from stillroom.methods.rona.from_teacher import FromTeacher

    return FromTeacher(recipe, split, run_folder)
