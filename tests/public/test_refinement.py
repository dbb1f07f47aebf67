"""Refined queries: more disagreement, no longer than allowed, smooth, within range."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from stillroom.features.basis import Basis
from stillroom.public.refinement import Refinement, centred
from stillroom.randomness import normals, seeded_torch, uniforms

SCALE = 16.0


def network(name, pixels):
    with seeded_torch(1, name):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(pixels, 24), nn.Tanh(), nn.Linear(24, 4)
        ).eval()


def apart(teacher, student, x):
    with torch.no_grad():
        return (centred(teacher(x)) - centred(student(x))).abs().sum(1)


def queries(*shape, count=40):
    """In the middle of the range, so that nothing is clipped."""
    return torch.from_numpy(uniforms(2, "x", size=(count, *shape))).float() * 2 + SCALE / 2


@pytest.mark.parametrize("shape", [(8, 8), (6, 9), (8, 8, 3)])
@pytest.mark.parametrize("steps", [1, 3])
def test_moved_to_disagreement(shape, steps):
    pixels = int(torch.tensor(shape).prod())
    teacher, student = network("teacher", pixels), network("student", pixels)
    x = queries(*shape)
    length = torch.full((len(x),), 0.02)
    made = Refinement(teacher, student, shape, SCALE, 20).moved(x, length, steps)
    grown = apart(teacher, student, made) - apart(teacher, student, x)
    assert (grown > 0).float().mean() > 0.9
    way = (made - x).square().flatten(1).mean(1).sqrt() / SCALE
    assert (way <= 0.02 * (1 + 1e-4)).all()
    assert way.mean() > 0.01


def test_one_step_has_the_length_it_is_given():
    teacher, student = network("teacher", 64), network("student", 64)
    x, length = queries(8, 8), torch.linspace(0, 0.05, 40)
    made = Refinement(teacher, student, (8, 8), SCALE, 64).moved(x, length, 1)
    way = (made - x).square().flatten(1).mean(1).sqrt() / SCALE
    assert torch.allclose(way, length, atol=1e-5)


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 3)])
def test_only_low_frequencies_move(shape):
    pixels = int(torch.tensor(shape).prod())
    x = queries(*shape)
    move = Refinement(network("teacher", pixels), network("student", pixels), shape, SCALE, 10)
    way = (move.moved(x, torch.full((40,), 0.05), 1) - x).reshape(40, 64, -1)
    low = torch.from_numpy(Basis(8, 8, 10).matrix.copy()).float()
    kept = torch.einsum("kp,nkc->npc", low, torch.einsum("kp,npc->nkc", low, way))
    assert torch.allclose(kept, way, atol=1e-3)
    assert way.abs().max() > 0.1


def test_within_the_range_of_the_records():
    x = torch.from_numpy(uniforms(2, "x", size=(30, 8, 8))).float() * SCALE
    move = Refinement(network("teacher", 64), network("student", 64), (8, 8), SCALE, 64)
    made = move.moved(x, torch.full((30,), 1.0), 2)
    assert made.min() >= 0
    assert made.max() <= SCALE


def test_agreement_moves_nothing_and_gives_numbers():
    same = network("teacher", 64)
    x = queries(8, 8)
    assert torch.equal(Refinement(same, same, (8, 8), SCALE, 64).moved(x, torch.ones(40), 1), x)


def test_nobody_learns_from_it():
    teacher, student = network("teacher", 64), network("student", 64)
    Refinement(teacher, student, (8, 8), SCALE, 64).moved(queries(8, 8), torch.ones(40), 1)
    assert all(weight.grad is None for weight in (*teacher.parameters(), *student.parameters()))


def test_centred_logits_sum_to_nothing():
    logits = torch.from_numpy(normals(1, "logits", size=(5, 4)))
    assert torch.allclose(centred(logits).sum(1), torch.zeros(5, dtype=logits.dtype), atol=1e-12)
