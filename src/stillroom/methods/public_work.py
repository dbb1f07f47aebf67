"""Trainings on labels alone; they live in `models.supervised`."""

from stillroom.models.supervised import SupervisedTraining, train_all

PublicTraining = SupervisedTraining

__all__ = ["PublicTraining", "train_all"]
