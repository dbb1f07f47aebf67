"""RONA as published: the literal reading leaks whatever the noise, the residual one pays."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from methods.rona.published_plans import capped, plan_of
from stillroom.data import digits
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import Budget, Gate, Ledger, Unprotected
from stillroom.gate.ledger import draws, verify
from stillroom.methods.rona import published as rona_published
from stillroom.methods.rona import published_stage as rona_published_stage
from stillroom.methods.rona.published import Taught, hint_width, train
from stillroom.models.flat_weights import flatten
from stillroom.models.training import NetworkTraining
from stillroom.private.plain import PlainTeacher
from stillroom.randomness import seeded_torch

PUBLIC = 150
SMALL = {
    "hint_epochs": 2,
    "rounds": 2,
    "distillation_epochs": 1,
    "self_epochs": 1,
    "batch": 16,
    "self_batch": 50,
    "queries": "1/3",
    "hint_layer": 2,
    "guided_layer": 2,
    "learning_rate": 0.01,
    "selection": "random",
}
LITERAL, RESIDUAL = plan_of(**SMALL), plan_of(**SMALL, reading="residual")
CALLS = 16  # 50 queries are 3 batches of 16 and the extra one; 2 + 2 epochs


def network(name, hidden):
    with seeded_torch(1, name):
        return nn.Sequential(
            nn.Flatten(), nn.Sequential(nn.Linear(64, hidden), nn.ReLU()), nn.Linear(hidden, 10)
        )


@pytest.fixture(scope="module")
def records():
    data = digits()
    return torch.tensor(data.x)[:, None] / 16.0, torch.tensor(data.y)


@pytest.fixture(scope="module")
def networks(records):
    """The teacher, which saw everything, and its auxiliary double, which saw public digits."""
    made = []
    for name, seen in (("teacher", 800), ("auxiliary", PUBLIC)):
        made.append(network(name, 12))
        stages = NetworkTraining(made[-1], nn.Identity(), epochs=25, learning_rate=0.01, seed=1)
        for _ in range(25):
            stages.learn(*(r[:seen] for r in records), 128)
    return made


class World:
    """One run in its own ledger."""

    def __init__(self, folder, records, networks, plan, most=None):
        self.x, self.y = (part[:PUBLIC] for part in records)
        self.teacher_network, self.auxiliary = map(copy.deepcopy, networks)
        self.teacher = PlainTeacher(self.teacher_network)
        self.plan = plan
        self.ledger = Ledger.create(
            folder / f"{len(list(folder.glob('*.sqlite')))}.sqlite", ids=["a"], purpose="benchmark"
        )
        self.ledger.set_budget(Budget(500.0, 1e-5), reason="a test")
        width = hint_width(network("student", 8), self.auxiliary, plan, (1, 8, 8))
        self.wishes = capped(plan, PUBLIC, width, 10, most=most)
        self.passages = Gate(self.ledger, ids=["a"]).reserve_all(
            self.wishes, recipe="run", accept_infinite=plan.literal
        )

    def run(self, on_step=lambda call: None):
        student = network("student", 8)
        self.taught = train(
            student,
            self.teacher,
            self.auxiliary,
            self.x,
            self.y,
            self.plan,
            self.passages,
            on_step,
        )
        return flatten(student)

    def reopened(self):
        self.passages = Gate(Ledger.open(self.ledger.path), ids=["a"]).reopen("run")
        assert list(self.passages) == list(self.wishes)
        return self

    def poison(self):
        with torch.no_grad():
            for weight in self.teacher_network.parameters():
                weight.fill_(math.nan)

    def said(self, name):
        """What the gate said for a wish, in order."""
        block, place = self.passages[name].block, list(self.wishes).index(name)
        kept = draws.committed(self.ledger.store, block, place)
        return [draws.answers(self.ledger.store, stored.draw).tolist() for stored in kept]

    @property
    def draws(self):
        return len(list(self.ledger.store.rows("kind = 'draw'")))


@pytest.fixture
def world(tmp_path, records, networks):
    return lambda plan, **more: World(tmp_path, records, networks, plan, **more)


def test_the_demonstrations_calls():
    """Inner loops from 0 to |x_q| / S, inclusive: one batch more an epoch than the formula has."""
    plan = plan_of()
    assert plan.asked(40_000) == 20_000
    assert plan.calls(40_000) == 3200
    assert plan.claimed_calls(40_000) == 3125


@pytest.mark.parametrize(("plan", "each"), [(LITERAL, 2), (RESIDUAL, 1)])
def test_executed_calls_are_recorded_draws(world, plan, each, monkeypatch):
    executed = []
    real = rona_published_stage.Stage.call
    monkeypatch.setattr(
        rona_published_stage.Stage,
        "call",
        lambda stage, batch: (executed.append(len(batch)), real(stage, batch)),
    )
    run = world(plan)
    steps = []
    run.run(steps.append)
    assert run.taught == Taught(CALLS, finished=True)
    assert executed == [16] * CALLS == [16] * plan.calls(PUBLIC)
    assert steps == list(range(1, CALLS + 1))
    assert run.draws == each * CALLS == sum(count for _, count in run.wishes.values())
    assert all(passage.left == 0 for passage in run.passages.values())
    verify(run.ledger)


def test_noise_on_a_loss_never_reaches_the_student(world):
    """Two draws of noise, one student, bit for bit: it is a function of the teacher, for free."""
    runs = [world(LITERAL) for _ in range(2)]
    first, second = (run.run() for run in runs)
    noise = [run.said("losses") for run in runs]
    assert noise[0] != noise[1]
    assert np.array_equal(first, second)
    # The broken twin of that claim: noise on the residual does reach the student.
    first, second = (world(RESIDUAL).run() for _ in range(2))
    assert not np.array_equal(first, second)


def test_the_literal_block_is_infinite_and_must_be_accepted(world):
    run = world(LITERAL)
    assert isinstance(run.wishes["hints"][0], Unprotected)
    assert isinstance(run.wishes["outputs"][0], Unprotected)
    (block,) = run.ledger.store.rows("kind = 'block'")
    assert not block.body["epsilon"]
    fresh = Ledger.create(run.ledger.path.parent / "fresh.sqlite", ids=["a"], purpose="benchmark")
    fresh.set_budget(Budget(500.0, 1e-5), reason="a test")
    with pytest.raises(BudgetExhausted):
        Gate(fresh, ids=["a"]).reserve_all(run.wishes)


def test_the_student_learns_what_the_teacher_knows(world, records):
    """No labels at all: what the student knows came through the noisy loss, unharmed."""
    plan = plan_of(**{**SMALL, "self_epochs": 0, "distillation_epochs": 8, "learning_rate": 0.05})
    run, student = world(plan), network("student", 8)
    train(student, run.teacher, run.auxiliary, run.x, run.y, plan, run.passages)
    guesses = student(records[0][800:]).argmax(dim=1)
    assert (guesses == records[1][800:]).float().mean() > 0.5


def test_a_loss_above_its_bound_teaches_nothing_unless_detached(world):
    plan = {**SMALL, "self_epochs": 0, "bound": 1e-3}
    start = flatten(network("student", 8))
    moved = [
        np.abs(world(plan_of(**plan, detached=detached)).run() - start).max()
        for detached in (False, True)
    ]
    # Not quite 0: Adam makes something of gradients that are rounding errors.
    assert moved[0] < 1e-3
    assert moved[1] > 0.05


@pytest.mark.parametrize("plan", [LITERAL, RESIDUAL])
def test_the_adaptive_bound_is_the_average_auxiliary_loss(world, plan, monkeypatch):
    shown, bounds = [], []
    real = rona_published_stage.Stage._bound

    def watched(stage, loss):
        shown.append(loss)
        bounds.append(real(stage, loss))
        return bounds[-1]

    monkeypatch.setattr(rona_published_stage.Stage, "_bound", watched)
    run = world(plan)
    run.run()
    for stage in (slice(0, 8), slice(8, 16)):
        seen = np.array(shown[stage])
        assert np.allclose(bounds[stage], np.cumsum(seen) / np.arange(1, 9))
    # Another teacher, the same first bound: it has no part in it.
    first = bounds[0]
    bounds.clear()
    other = world(plan)
    other.poison()
    other.run()
    assert bounds[0] == first


@pytest.mark.parametrize("plan", [LITERAL, RESIDUAL])
def test_after_the_last_draw_the_teacher_is_not_needed(world, plan):
    run = world(plan, most=11)

    def poison_at_the_end(call):
        if call == 11:
            run.poison()

    student = run.run(poison_at_the_end)
    assert run.taught == Taught(11, finished=False)
    assert np.isfinite(student).all()
    verify(run.ledger)
    # All of it again, from what was paid for, with a teacher that says nothing any more.
    draws = run.draws
    assert np.array_equal(run.reopened().run(), student)
    assert run.draws == draws


def test_a_poisoned_teacher_would_be_noticed(world):
    """The twin of the poison test: poisoned one draw too early, the literal student shows it."""
    run = world(LITERAL)
    healthy = run.run()
    sick = world(LITERAL)
    assert not np.array_equal(sick.run(lambda call: call == 15 and sick.poison()), healthy)


@pytest.mark.parametrize(("most", "calls"), [(3, 3), (8, 8), (10, 10)])
def test_training_stops_at_the_last_paid_answer(world, most, calls):
    run = world(RESIDUAL, most=most)
    assert ("outputs" in run.passages) == (most > 8)
    student = run.run()
    assert run.taught == Taught(calls, finished=False)
    assert run.draws == calls
    assert np.isfinite(student).all()


@pytest.mark.parametrize("plan", [LITERAL, RESIDUAL])
@pytest.mark.parametrize("at", [5, 11])
def test_a_cut_off_run_goes_on(world, plan, at):
    run = world(plan)

    def cut(call):
        if call == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.run(cut)
    before = run.draws
    assert before == at * (2 if plan is LITERAL else 1)
    student = run.reopened().run()
    assert run.taught == Taught(CALLS, finished=True)
    assert run.draws == sum(count for _, count in run.wishes.values())
    # The replay of the whole is the same student, so the first part was replayed in order.
    assert np.array_equal(run.reopened().run(), student)
    if plan is LITERAL:
        assert np.array_equal(world(LITERAL).run(), student)
    verify(run.ledger)


def test_a_lost_answer_stays_lost(world):
    run = world(RESIDUAL)
    run.passages["outputs"]._begin(1)
    run.run()
    assert run.taught == Taught(CALLS - 1, finished=False)
    assert run.draws == CALLS


def test_queries_are_selected_by_the_student_each_epoch(world, monkeypatch):
    asked = []

    def watched(name, probabilities, count, *, seed, round):
        asked.append((name, probabilities.shape, count, round))
        assert np.allclose(probabilities.sum(axis=1), 1)
        return np.arange(count)

    monkeypatch.setattr(rona_published, "select", watched)
    world(LITERAL).run()
    assert asked == [("random", (PUBLIC, 10), 50, 0), ("random", (PUBLIC, 10), 50, 1)]


def test_algorithm_3_is_called_by_name(world):
    assert plan_of().rona.selection == "k-centre"
    world(plan_of(**{**SMALL, "selection": "k-centre"})).run()


def test_without_hints_no_hint_layer_is_needed(world):
    plan = plan_of(**{**SMALL, "hint_epochs": 0, "hint_layer": 2})
    run = world(plan)
    run.plan = plan_of(**{**SMALL, "hint_epochs": 0, "hint_layer": 4, "guided_layer": 7})
    assert list(run.passages) == ["outputs", "losses"]
    run.run()
    assert run.taught == Taught(8, finished=True)


def test_what_does_not_fit_is_refused(world):
    run = world(LITERAL)
    for wrong in ({"guided_layer": 4}, {"hint_layer": 9}, {"batch": 51}):
        run.plan = plan_of(**{**SMALL, **wrong})
        with pytest.raises(BadInput):
            run.run()
    assert run.draws == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"hint_epochs": -1},
        {"batch": 0},
        {"queries": 0},
        {"queries": 2},
        {"sigma": 0},
        {"temperature": 0.0},
        {"learning_rate": math.nan},
        {"bound": 0.0},
        {"reading": "hopeful"},
    ],
)
def test_a_plan_out_of_range_is_refused(wrong):
    with pytest.raises(BadInput):
        plan_of(**wrong)
