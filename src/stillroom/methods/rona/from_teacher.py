"""RONA with source dp-trained: a teacher trained through the gate, then asked without limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.gate import Passage
from stillroom.methods.direct_road import has_learnt
from stillroom.methods.learners import LinearLearner
from stillroom.methods.outcome import Outcome
from stillroom.methods.rona.public_side import PublicSide, blocks_of
from stillroom.methods.rona.road import Progress, RonaWay, Tell
from stillroom.methods.sketched import SketchToDraw, raw_samples, shown, to_fit_on
from stillroom.public import Mixture
from stillroom.public.composites import composites
from stillroom.release.compression import report


class FromTeacher(RonaWay):
    """A student of a linear layer over public features, trained with noise."""

    @property
    def needs_auxiliary(self) -> bool:
        """For features, or for hints."""
        return self.recipe.features.name == "auxiliary" or self.part.hint_epochs > 0

    @cached_property
    def _learner(self) -> LinearLearner:
        trunk = None
        if self.recipe.features.name == "auxiliary":
            trunk = blocks_of(self.auxiliary, "rona.auxiliary")[:-1]
        return LinearLearner(self.recipe, self.split, self.folder, trunk, self.public.labelled)

    @property
    def width(self) -> int:
        """Of the teacher's gradient."""
        return self._learner.width

    def prepare(self, tell: Tell, on_step: Progress) -> None:
        """Public networks, and a look at the sensitive records."""
        super().prepare(tell, on_step)
        tell("features")
        self._learner.look(on_step)
        self._sketch = SketchToDraw(self.recipe, self.split.sensitive)

    def follow(self, ways: Sequence[Passage], tell: Tell, on_step: Progress) -> Outcome:
        """Sketch, teacher, Algorithm 1."""
        learner, (training, *others) = self._learner, ways
        if others:
            tell("sketch")
        mixture = self._sketch.draw(others)
        learner.prepare(to_fit_on(self.recipe, mixture))
        tell("teacher")
        learner.train(training, lambda step: on_step(step, training.count))
        teacher, untaught = learner.model(), learner.public_only()
        tell("asking the teacher")
        source = FreeAnswers(learner.scores, self.public, self._extras(mixture))
        if self.part.hint_epochs:
            source.hinting = (self.auxiliary, self.guide[1])
        model = self.taught(source, tell, on_step)
        tell("compression")
        return Outcome(
            model=model,
            guesses=self.guesses(model),
            facts={"learnt": has_learnt(learner, training.mechanism)},
            rivals=self.rivals(**{"teacher on public data": untaught, "teacher": teacher}),
            compression=report(teacher, model, self.split.public.classes),
            samples=shown(mixture),
        )

    def _extras(self, mixture: Mixture | None) -> npt.NDArray[Any]:
        """Pictures nobody took: composites of public ones, and samples of the sketch."""
        x, part = np.array(self.public.x), self.part
        made = [x[:0]]
        if part.composites:
            made.append(composites(x, part.composites, seed=part.start_seed))
        if part.samples and mixture is not None:
            drawn = raw_samples(self.recipe, mixture, part.start_seed + 2, part.samples)
            whole = np.issubdtype(x.dtype, np.integer)
            made.append((np.rint(drawn) if whole else drawn).astype(x.dtype))
        return np.concatenate(made)


class FreeAnswers:
    """What a sanitised teacher says of public pictures, in as many views as needed, and of more.

    Args:
        scores: the logits of a sanitised teacher.
        public: its pictures are asked about.
        extras: further pictures that anyone may see.
    """

    hinting: tuple[nn.Module, tuple[int, ...]] | None = None
    """The public network that gives hints, and their shape."""

    def __init__(
        self,
        scores: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
        public: PublicSide,
        extras: npt.NDArray[Any],
    ) -> None:
        self.rounds = public.part.rounds
        self._ask, self._public, self._seen = scores, public, public.seen()
        self._extras = torch.from_numpy(extras)
        self._on_extras = torch.zeros(0, public.classes)
        if len(extras):
            self._on_extras = torch.from_numpy(scores(extras))
        self._scores: dict[int, Tensor] = {}

    def hints(self, epoch: int) -> tuple[Tensor, Tensor]:
        """A view of the public pictures, and what the hint layer says of it."""
        assert self.hinting is not None
        x = self._seen[epoch % len(self._seen)]
        return x, self._public.hints(*self.hinting, x)

    def answers(self, number: int, epoch: int, student: nn.Module) -> tuple[Tensor, Tensor]:
        """A view of the public pictures, and all extras, with the teacher's logits."""
        view = (number * self._public.part.distillation_epochs + epoch) % len(self._seen)
        if view not in self._scores:
            self._scores[view] = torch.from_numpy(self._ask(self._seen[view].numpy()))
        scores = torch.cat([self._scores[view], self._on_extras])
        return torch.cat([self._seen[view], self._extras]), scores
