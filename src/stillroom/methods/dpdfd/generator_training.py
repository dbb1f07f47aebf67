"""A generator that draws what the student shall learn next (Eq. 5 of Liu et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.methods.dpdfd.generator_section import GeneratorSection
from stillroom.models import AsPictures
from stillroom.models.training import by_logits, fitting_temperature
from stillroom.public.data_free_losses import generator_loss, logits_and_features
from stillroom.public.generators import Generator, latents
from stillroom.randomness import integers
from stillroom.release.torch_generator import NetworkGenerator

BATCH = 64
STUDENT_RATE = 1e-3


class GeneratorTraining:
    """Student and generator take turns, as in Algorithm 1; the teacher is sanitised, or not asked.

    The generator follows Eq. 5 with the student as a fixed judge. A sanitised teacher is a second
    judge: one may differentiate through it, so that the generator also looks for pictures on which
    both disagree, and the student learns from its answers.

    Guarantee: sees sanitised things and public numbers only, so it costs nothing.

    Args:
        generator: trained in place.
        student: trained in place where there is a teacher, else only a judge.
        teacher: from stored records to logits; None where every answer is charged.
        pictures: from stored records to what the student reads.
        part: the numbers.
        seed: of latent numbers and classes.
    """

    def __init__(
        self,
        generator: Generator,
        student: nn.Module,
        teacher: nn.Module | None,
        pictures: AsPictures,
        part: GeneratorSection,
        seed: int,
    ) -> None:
        self.generator, self._student, self._teacher = generator, student, teacher
        self._pictures, self._part, self._seed, self._done = pictures, part, seed, 0
        self._optimiser = torch.optim.Adam(generator.parameters(), lr=part.learning_rate)
        self._students = torch.optim.Adam(student.parameters(), lr=STUDENT_RATE)

    def train(
        self, steps: int, on_step: Callable[[int, int], None] = lambda done, total: None
    ) -> None:
        """Take turns.

        Raises:
            BadInput: a loss is not a number; student and generator are as they were before it.
        """
        self.generator.train()
        self._student.eval()  # the judge is fixed; its norms over a batch too
        for step in range(steps):
            self._turn()
            on_step(step + 1, steps)
        self.generator.eval()

    @property
    def done(self) -> int:
        """Turns that are behind it."""
        return self._done

    def state(self) -> dict[str, Any]:
        """Everything the next turn depends on; for `restore`."""
        parts = self._parts()
        return {**{name: part.state_dict() for name, part in parts.items()}, "done": self._done}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of the same training."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self._done = state["done"]

    def _parts(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            "student": self._student,
            "turns of generator": self._optimiser,
            "turns of student": self._students,
        }

    def _turn(self) -> None:
        self._done += 1
        z, labels = self._latents("turn", self._done, count=BATCH)
        drawn = self.generator(z, labels)
        said, features = logits_and_features(self._student, drawn)
        part = self._part
        aim = generator_loss(said, features, part.alpha, part.beta, one_hot=part.one_hot)
        if labels is not None:
            aim = aim + F.cross_entropy(said, labels)
        if self._teacher is not None:
            told = self._teacher(self._stored(drawn))
            apart = by_logits(fitting_temperature(told.detach()))
            judged = F.cross_entropy(told, told.argmax(1) if labels is None else labels)
            aim = aim + judged - apart(said, told)
        self._step(self._optimiser, aim)
        if self._teacher is not None:
            said = self._student(drawn.detach())
            self._step(self._students, apart(said, told.detach()))

    def _step(self, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
        if not torch.isfinite(loss):
            raise BadInput(
                "a loss is not a number",
                where=f"generator, step {self._done}",
                why="student and generator would learn nothing more; they are as before this step",
                remedy="lower generator.learning_rate, generator.alpha or generator.beta",
            )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    def released(self) -> NetworkGenerator:
        """The generator as it is now, to draw from."""
        pictures = self._pictures
        return NetworkGenerator(
            self.generator, pictures.shape, pictures.full_scale, self._part.model
        )

    def _latents(self, *names: str | int, count: int) -> tuple[Tensor, Tensor | None]:
        z = latents(self._seed, "generator", *names, count=count, size=self.generator.latent)
        if not self.generator.conditional:
            return z, None
        below = self.generator.classes
        return z, torch.from_numpy(integers(self._seed, "classes", *names, size=count, below=below))

    def _stored(self, drawn: Tensor) -> Tensor:
        """From what networks read to stored records, with the gradient."""
        shape, scaled = self._pictures.shape, drawn * self._pictures.full_scale
        return scaled.permute(0, 2, 3, 1) if len(shape) == 3 else scaled.reshape(-1, *shape)
