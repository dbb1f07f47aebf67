"""Turns of student and generator: what is cut off goes on as if nothing had been."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from stillroom.methods.dpdfd.generator_section import GeneratorSection
from stillroom.methods.dpdfd.generator_training import GeneratorTraining
from stillroom.models import AsPictures, build
from stillroom.public.generators import build_generator

SHAPE = (8, 8)
PART = GeneratorSection.of(model="mlp", latent=6, width=8, conditional=True, steps=4)


def turns(*, with_teacher):
    pictures = AsPictures(SHAPE, 16.0)
    student, teacher = (build("mlp", pictures.given, 3, seed=seed) for seed in (0, 1))
    generator = build_generator(
        "mlp", pictures.given, 3, latent=6, width=8, conditional=True, seed=0
    )
    told = nn.Sequential(pictures, teacher.eval()) if with_teacher else None
    return GeneratorTraining(generator, student, told, pictures, PART, 0)


def weights(made):
    parts = made.state()
    return [*parts["generator"].values(), *parts["student"].values()]


@pytest.mark.parametrize("with_teacher", [True, False])
def test_turns_go_on_from_a_state_to_the_same_bytes(with_teacher):
    whole, first = turns(with_teacher=with_teacher), turns(with_teacher=with_teacher)
    before = [part.clone() for part in weights(whole)]
    whole.train(4)
    first.train(1)
    again = turns(with_teacher=with_teacher)
    again.restore(first.state())
    assert again.done == 1
    again.train(3)
    assert all(map(torch.equal, weights(again), weights(whole)))
    assert not all(map(torch.equal, before, weights(whole)))
