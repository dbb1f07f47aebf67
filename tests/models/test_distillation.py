"""Distillation: a student learns what its teacher says, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.models import training
from stillroom.models.training import (
    NetworkTraining,
    balanced_chances,
    by_logits,
    fitting_temperature,
)
from stillroom.randomness import normals, seeded_torch


def network():
    with seeded_torch(4, "student"):
        return nn.Sequential(nn.Flatten(), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 4))


@pytest.fixture(scope="module")
def pictures():
    return torch.from_numpy(normals(1, "pictures", size=(1500, 1, 6, 6))).float()


@pytest.fixture(scope="module")
def scores(pictures):
    """Of a linear teacher, with an offset that means nothing."""
    weights = torch.from_numpy(normals(2, "teacher", size=(36, 4))).float()
    return (pictures.flatten(1) @ weights + 50).numpy()


NUMBERS = {"epochs": 10, "batch": 50, "learning_rate": 1e-2, "seed": 7}


def distil(
    student, pictures, scores, *, epochs, batch, learning_rate, seed, on_epoch=lambda *_: None
):
    """Balanced epochs by logits, as the student of a sketch is taught."""
    given = torch.from_numpy(scores)
    loop = NetworkTraining(
        student, nn.Identity(), epochs=epochs, learning_rate=learning_rate, seed=seed
    )
    loss = by_logits(fitting_temperature(given))
    for epoch in range(epochs):
        loop.distil(pictures, given, batch, loss, balanced=True)
        on_epoch(epoch + 1, epochs)


def taught(pictures, scores, **numbers):
    student = network()
    distil(student, pictures, scores, **{**NUMBERS, **numbers})
    return student


def agreement(student, pictures, scores):
    with torch.no_grad():
        return float((student(pictures).numpy().argmax(axis=1) == scores.argmax(axis=1)).mean())


def test_a_student_learns_its_teacher(pictures, scores):
    seen, held_out = slice(0, 1200), slice(1200, None)
    student, told = network(), []
    before = agreement(student, pictures[held_out], scores[held_out])
    distil(
        student,
        pictures[seen],
        scores[seen],
        **NUMBERS,
        on_epoch=lambda done, total: told.append((done, total)),
    )
    assert before < 0.6
    assert agreement(student, pictures[held_out], scores[held_out]) > 0.9
    assert told == [(epoch, 10) for epoch in range(1, 11)]
    assert not student.training


def test_the_loss_falls(pictures, scores, monkeypatch):
    losses = []
    honest = training.F.kl_div

    def noted(*given, **named):
        loss = honest(*given, **named)
        losses.append(loss.item())
        return loss

    monkeypatch.setattr(training.F, "kl_div", noted)
    taught(pictures, scores, epochs=4)
    assert len(losses) == 4 * 30
    assert np.mean(losses[-30:]) < np.mean(losses[:30]) / 2


def test_a_twin_taught_by_shuffled_scores_is_seen(pictures, scores):
    student = taught(pictures[:1200], scores[:1200][::-1].copy())
    assert agreement(student, pictures[1200:], scores[1200:]) < 0.6


def weights(student):
    return [weight.detach().numpy() for weight in student.parameters()]


def test_the_same_seed_gives_the_same_student(pictures, scores):
    first, again, other = (
        weights(taught(pictures, scores, epochs=1, seed=seed)) for seed in (7, 7, 8)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_an_offset_of_all_scores_means_nothing(pictures, scores):
    a, b = (weights(taught(pictures, scores + shift, epochs=1)) for shift in (0, 8))
    assert all(np.allclose(x, y, atol=1e-2) for x, y in zip(a, b, strict=True))


def test_a_loss_that_is_no_number_is_named(pictures, scores):
    with pytest.raises(BadInput, match="not a number") as caught:
        taught(pictures, np.where(scores > 60, np.nan, scores).astype(np.float32))
    assert caught.value.where == "epoch 1, step 1"
    with pytest.raises(BadInput, match="not a number") as caught:
        taught(pictures, scores, learning_rate=1e30)
    assert "learning rate" in caught.value.remedy


def test_fewer_pictures_than_a_batch(pictures, scores):
    taught(pictures[:3], scores[:3], epochs=1)
    taught(pictures[:3], scores[:3], epochs=3, batch=2)


def test_rare_classes_are_shown_more_often():
    chances = balanced_chances(np.array([0] * 90 + [1] * 10))
    assert chances.sum() == pytest.approx(1)
    assert chances[:90].sum() == pytest.approx(0.5)
    # But not without end: one picture in ten thousand is not half of what is seen.
    alone = balanced_chances(np.array([0] * 9999 + [1]))
    assert alone[-1] < 0.01


def test_a_training_goes_on_from_its_state(pictures, scores, tmp_path):
    given, loss = torch.from_numpy(scores), by_logits(4.0)

    def trained(student, first, last, state=None):
        loop = NetworkTraining(student, nn.Identity(), epochs=4, learning_rate=1e-2, seed=7)
        if state is not None:
            loop.restore(state)
        for _ in range(first, last):
            loop.distil(pictures, given, 50, loss, balanced=True)
        return loop

    whole, half, other = network(), network(), network()
    trained(whole, 0, 4)
    torch.save(trained(half, 0, 2).state(), tmp_path / "state.pt")
    trained(other, 2, 4, torch.load(tmp_path / "state.pt", weights_only=True))
    assert all(
        torch.equal(a, b) for a, b in zip(whole.parameters(), other.parameters(), strict=True)
    )
    assert not all(
        torch.equal(a, b) for a, b in zip(half.parameters(), other.parameters(), strict=True)
    )
