"""DPDFD as published: cut off, short of budget, out of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from methods.dpdfd.published_worlds import (
    OPEN,
    SEVERAL,
    SINGLE,
    Told,
    generator_of,
    network,
    plan_of,
)
from stillroom.gate.ledger import verify
from stillroom.methods.dpdfd import published
from stillroom.methods.dpdfd.published import Taught
from stillroom.methods.dpdfd.published_plan import GRADIENTS
from stillroom.models.flat_weights import flatten


@pytest.mark.parametrize("plan", [SINGLE, OPEN, SEVERAL])
@pytest.mark.parametrize("at", [1, 4])
def test_a_cut_off_run_goes_on(world, plan, at):
    run = world(plan)

    def cut(iteration):
        if iteration == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.run(cut)
    weights = run.reopened().run()
    assert run.taught == Taught(6, finished=True)
    assert run.draws == 6 * len(run.wishes)
    # The replay of the whole is the same, so the first part was replayed in order.
    assert run.reopened().run() == weights
    verify(run.ledger)


@pytest.mark.parametrize("plan", [SINGLE, OPEN, SEVERAL])
def test_after_the_last_draw_the_teacher_is_not_needed(world, plan):
    run = world(plan)
    weights = run.run(lambda iteration: iteration == 6 and run.poison())
    draws = run.draws
    assert run.reopened().run() == weights
    assert run.draws == draws


@pytest.mark.parametrize(("plan", "most", "done"), [(SINGLE, 4, 4), (SEVERAL, 11, 2)])
def test_training_stops_at_the_last_paid_answer(world, plan, most, done):
    run = world(plan, most=most)
    run.run()
    assert run.taught == Taught(done, finished=False)
    assert run.draws == done


def test_a_lost_answer_stays_lost(world):
    run = world(SINGLE)
    run.passages[GRADIENTS]._begin(1)
    run.run()
    assert run.taught == Taught(5, finished=False)


@pytest.mark.parametrize("at", [1, 3, 6])
def test_a_broken_generator_is_told_with_its_iteration(world, monkeypatch, at):
    """A weight turns NaN in a step: what was before it is kept, and nothing more is drawn."""
    plan = plan_of()
    usual = world(plan)
    kept = []
    usual.run(lambda iteration: kept.append(usual.weights))
    tape = [np.array(said) for said in usual.said(GRADIENTS)]
    run = world(plan)
    run.passages = {GRADIENTS: Told(tape)}
    honest, seen = torch.optim.Adam.step, []

    def breaking(optimiser, *given):
        honest(optimiser, *given)
        seen.append(optimiser)
        if len(seen) == 2 * at:
            with torch.no_grad():
                optimiser.param_groups[0]["params"][0][0, 0] = math.nan

    monkeypatch.setattr(torch.optim.Adam, "step", breaking)
    weights = run.run()
    assert run.taught == Taught(at - 1, finished=False, broken_at=at)
    assert run.passages[GRADIENTS].asked == at
    untaught = flatten(network("student")).tolist(), flatten(generator_of(plan)).tolist()
    assert weights == (kept[at - 2] if at > 1 else untaught)


def test_a_loss_that_is_no_number_takes_no_step(world, monkeypatch):
    run, honest, asked = world(SINGLE), published.generator_loss, []

    def breaking(*given, **more):
        asked.append(given)
        return honest(*given, **more) * (math.nan if len(asked) == 3 else 1)

    monkeypatch.setattr(published, "generator_loss", breaking)
    kept = []
    weights = run.run(lambda iteration: kept.append(run.weights))
    assert run.taught == Taught(2, finished=False, broken_at=3)
    assert run.draws == 3
    assert weights == kept[-1]


class Overflowing(nn.Module):
    """Says infinity from its third step on, with weights that are numbers."""

    def __init__(self):
        super().__init__()
        self.inner, self.start = network("student"), flatten(network("student"))
        self.looks = 0

    def forward(self, x):
        self.looks += 1
        return self.inner(x) * (math.inf if self.looks > 3 else 1)


def test_a_student_that_overflows_is_set_back(world):
    run, kept = world(SINGLE), []
    student = Overflowing()
    run.run(lambda iteration: kept.append(flatten(student).tolist()), student=student)
    assert run.taught == Taught(2, finished=False, broken_at=3)
    assert run.draws == 3
    assert flatten(student).tolist() == kept[1]


def test_a_teacher_of_nan_says_nothing(world):
    run = world(SINGLE)
    run.poison()
    run.run()
    assert run.taught == Taught(6, finished=True)
