"""How long networks take here: a step forward and back, an answer, on made-up pictures."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from stillroom.sources.trials import made_up, made_up_classes, seconds_of, seconds_per_row


@dataclass(frozen=True)
class NetworkTrial:
    """A network that is not trained yet, and made-up pictures for it.

    Args:
        model: its name in the zoo, or package.module:callable.
        shape: of a record as it is stored.
        classes: how many there are.
        full_scale: the largest value of a pixel.
        batch: records per step.
        alone: whether it has one core, as a worker has.
    """

    model: str
    shape: tuple[int, ...]
    classes: int
    full_scale: float
    batch: int
    alone: bool = False

    def pictures(self) -> Any:
        """From records to pictures."""
        from stillroom.models import AsPictures

        return AsPictures(self.shape, self.full_scale)

    def network(self) -> Any:
        """The network."""
        from stillroom.models import build

        return build(self.model, self.pictures().given, self.classes, seed=0)

    def x(self) -> Any:
        """A batch of records."""
        import torch

        return torch.from_numpy(made_up(self.batch, self.shape, self.full_scale))


@dataclass(frozen=True)
class NetworkSteps:
    """One record's part of a step of an ordinary training."""

    of: NetworkTrial

    def seconds(self) -> float:
        """One batch, forward and back."""
        import torch

        from stillroom.engine.workers import one_thread
        from stillroom.models.training import NetworkTraining

        trial, x = self.of, self.of.x()
        y = torch.from_numpy(made_up_classes(trial.batch, trial.classes))
        training = NetworkTraining(
            trial.network(), trial.pictures(), epochs=100, learning_rate=1e-4, seed=0
        )
        with one_thread() if trial.alone else nullcontext():
            return seconds_per_row(lambda n: training.learn(x[:n], y[:n], n), trial.batch)


@dataclass(frozen=True)
class NetworkAnswers:
    """What a network says of one record."""

    of: NetworkTrial

    def seconds(self) -> float:
        """One batch forward."""
        import torch

        from stillroom.engine.workers import one_thread

        trial, x = self.of, self.of.x()
        network, pictures = trial.network().eval(), trial.pictures()
        with torch.no_grad(), one_thread() if trial.alone else nullcontext():
            return seconds_per_row(lambda n: network(pictures(x[:n])), trial.batch)


@dataclass(frozen=True)
class ViewsMade:
    """One view of a picture, turned and shifted."""

    shape: tuple[int, ...]

    def seconds(self) -> float:
        """Of a hundred made-up pictures."""
        from stillroom.models.augmentation import Views

        some, views = made_up(100, self.shape), Views(turn=10, shift=0.1)
        return seconds_of(lambda: views.view(some, 0, 1)) / 100
