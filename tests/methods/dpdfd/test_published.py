"""DPDFD as published: what Algorithm 1 asks, what it learns, and where it leaks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from methods.dpdfd.published_worlds import (
    CLASSES,
    OPEN,
    SEVERAL,
    SHAPE,
    SINGLE,
    Told,
    generator_of,
    network,
    plan_of,
)
from stillroom.errors import BadInput, NotSanitised
from stillroom.gate import Unprotected
from stillroom.gate.ledger import verify
from stillroom.methods.dpdfd import published
from stillroom.methods.dpdfd.published import Taught
from stillroom.methods.dpdfd.published_plan import DERIVATIVES, GRADIENTS, STEPS
from stillroom.private.output_gradients import PlainTeachers, TermBound
from stillroom.private.plain import PlainTeacher
from stillroom.randomness import normals
from stillroom.vocabulary import Unit


@pytest.mark.parametrize(("plan", "draws"), [(SINGLE, 6), (OPEN, 12), (SEVERAL, 6)])
def test_each_iteration_is_a_row_of_the_ledger(world, plan, draws):
    run, steps = world(plan), []
    run.run(steps.append)
    assert run.taught == Taught(6, finished=True)
    assert steps == [1, 2, 3, 4, 5, 6]
    assert run.draws == draws
    assert all(passage.left == 0 for passage in run.passages.values())
    widths = {np.shape(said) for said in run.said(GRADIENTS)}
    assert widths == {(4 if plan is SEVERAL else 1, CLASSES)}
    verify(run.ledger)


def test_a_price_of_one_picture_for_a_batch_is_refused_by_the_gate(world, monkeypatch):
    """The broken twin of the plan: what moves as far as a batch does not pass."""
    for reading in ("batch", "per-sample"):
        with monkeypatch.context() as patch:
            patch.setattr(published.PublishedPlan, "squared_distance", 4 * STEPS**2)
            run = world(plan_of(reading=reading))
        with pytest.raises(NotSanitised):
            run.run()
        assert run.draws == 0


def test_what_is_paid_for():
    for reading, squared in {"per-sample": 8**2, "batch": 8}.items():
        (request,) = plan_of(reading=reading).requests(SHAPE, CLASSES, Unit.RECORD)
        assert request.count == 6
        assert request.at(1).squared_distance == 4 * squared * STEPS**2
    for sharing, squared in {"shared": 3**2, "disjoint": 1}.items():
        plan = plan_of(teachers=3, reading="per-sample", sharing=sharing)
        (request,) = plan.requests(SHAPE, CLASSES, Unit.RECORD)
        assert request.count == 6 * 8
        assert request.at(1).squared_distance == 4 * squared * STEPS**2
    _, derivatives = OPEN.requests(SHAPE, CLASSES, Unit.RECORD)
    assert isinstance(derivatives.at(1), Unprotected)
    assert derivatives.at(1).width == 8 * (16 + CLASSES)


def test_noise_that_is_sought_grows_with_what_is_asked():
    few, many = (
        next(iter(plan.requests(SHAPE, CLASSES, Unit.RECORD))).at(3)
        for plan in (
            published.PublishedPlan(plan_of(iterations=n).part, SINGLE.generator, sought=True)
            for n in (10, 40)
        )
    )
    assert float(many.sigma / few.sigma) == pytest.approx(2, rel=1e-6)
    # Ten answers cost as much as one Gaussian of three times its distance.
    assert few.sigma**2 >= 9 * 10 * few.squared_distance + 4


def test_a_gradient_is_that_of_eq_4(world):
    """One iteration without noise, by hand."""
    plan = plan_of(reading="batch", bound=0.5, stability=0.1)
    run = world(plan)
    teacher, student = run.networks[0], network("student")
    pictures = torch.from_numpy(normals(1, "pictures", size=(8, *SHAPE))).float()
    said = student(pictures).detach().requires_grad_()
    own = published._Algorithm(student, generator_of(plan), run.teachers, plan, {GRADIENTS: Told()})
    own._loss(said, teacher(pictures).detach()).mul(8).backward()
    wanted = 0.5 * said.grad.sum(0) / (said.grad.norm() + 0.1) / 8
    found = own.noisy_gradient(0, pictures, said)
    assert torch.allclose(found[0], wanted, atol=1e-5)
    clipped = plan_of(reading="per-sample", operation="clip", bound=0.5)
    own = published._Algorithm(
        student, generator_of(plan), run.teachers, clipped, {GRADIENTS: Told()}
    )
    norms = said.grad.norm(dim=1, keepdim=True)
    wanted = (said.grad * (0.5 / norms).clamp(max=1)).mean(0)
    assert torch.allclose(own.noisy_gradient(0, pictures, said)[0], wanted, atol=1e-5)


def test_several_teachers_are_averaged_picture_by_picture(world):
    run = world(SEVERAL)
    student = network("student")
    pictures = torch.from_numpy(normals(1, "pictures", size=(4, *SHAPE))).float()
    said = student(pictures).detach()
    own = published._Algorithm(
        student, generator_of(SEVERAL), run.teachers, SEVERAL, {GRADIENTS: Told()}
    )
    wanted = torch.zeros(4, CLASSES)
    for teacher in run.networks:
        each = said.clone().requires_grad_()
        own._loss(each, teacher(pictures).detach()).mul(4).backward()
        wanted += 1e-3 * each.grad / (each.grad.norm(dim=1, keepdim=True) + 1e-8) / 3
    found = own.noisy_gradient(0, pictures, said)
    assert torch.allclose(found, wanted, atol=1e-8)


# -- whose knowledge reaches student and generator ----------------------------------------------


@pytest.mark.parametrize("plan", [SINGLE, SEVERAL, plan_of(reading="per-sample", operation="clip")])
def test_two_teachers_cannot_be_told_apart_once_their_noisy_gradients_are_equal(world, plan):
    """Bit for bit: student and generator are a function of g~."""
    first = world(plan)
    weights = first.run()
    other = world(plan, teacher="another teacher")
    other.passages = {GRADIENTS: Told([np.array(said) for said in first.said(GRADIENTS)])}
    assert other.run() == weights


def test_without_detaching_the_generator_knows_the_teacher(world):
    """The broken twin: the same noisy gradients, and another generator for another teacher."""
    first = world(OPEN)
    weights = first.run()
    tape = [np.array(said) for said in first.said(GRADIENTS)]
    for teacher, same in (("teacher", True), ("another teacher", False)):
        other = world(OPEN, teacher=teacher)
        other.passages = {**other.passages, GRADIENTS: Told(tape)}
        assert (other.run() == weights) is same


def test_the_open_block_is_infinite(world):
    (block,) = world(OPEN).ledger.store.rows("kind = 'block'")
    assert not block.body["epsilon"]
    (block,) = world(SINGLE).ledger.store.rows("kind = 'block'")
    assert "record/add-or-remove" in block.body["epsilon"]


class Row(nn.Module):
    """A generator of one number, the sum of its two weights."""

    latent = 1

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([0.2, -0.1], dtype=torch.float64))

    def forward(self, z):
        return self.weights.sum().reshape(1, 1)


class Lines(nn.Module):
    """Logits that are lines of one number."""

    def __init__(self, slopes, at):
        super().__init__()
        self.slopes = nn.Parameter(torch.tensor([slopes], dtype=torch.float64))
        self.at = torch.tensor([at], dtype=torch.float64)

    def forward(self, x):
        return x * self.slopes + self.at


def to_soft_labels(said, taught):
    return nn.functional.cross_entropy(said, taught.softmax(1))


@pytest.mark.parametrize(
    ("detached", "steep", "gradient"),
    [
        (True, 0.5, 0.268096),
        (True, 3.0, 0.268096),
        (False, 0.5, 0.265979),
        (False, 3.0, 0.262990),
    ],
)
@pytest.mark.parametrize("reading", ["batch", "per-sample"])
def test_the_generators_gradient_for_one_released_gradient(detached, steep, gradient, reading):
    """Two teachers of soft labels and one g~ = (3, -1): the toy of theory.md#dpdfd."""
    plan = plan_of(
        detached=detached, reading=reading, gamma=0.5, bound=1.0, stability=0.01, batch=1
    )
    teachers = PlainTeachers([PlainTeacher(Lines([steep, -steep], [0.0, 0.3 * steep]))])
    student, generator = Lines([0.5, -0.2], [0.0, 0.0]), Row()
    own = published._Algorithm(student, generator, teachers, plan, {DERIVATIVES: Told()})
    own._loss = to_soft_labels
    pictures = generator(None)
    released = torch.tensor([[3.0, -1.0]], dtype=torch.float64, requires_grad=True)
    (found,) = own.generator_gradient(0, pictures, student(pictures), released, 0.0)
    assert found.tolist() == pytest.approx([gradient] * 2, abs=5e-7)
    assert own.passages[DERIVATIVES].asked == (not detached)


def test_the_derivative_is_that_of_the_bounded_sum():
    """Against central differences, pictures and student's logits together."""
    teacher = network("teacher").double()
    teachers = PlainTeachers([PlainTeacher(teacher)])
    pictures = torch.from_numpy(normals(1, "pictures", size=(2, *SHAPE)))
    said = torch.from_numpy(normals(1, "said", size=(2, CLASSES)))
    direction = torch.tensor([[0.3, -1.0, 0.7]], dtype=torch.float64)
    for together in (True, False):
        for normalised in (True, False):
            rule = TermBound(0.3, STEPS, together, normalised, stability=0.05)

            def along(pictures, said, rule=rule):
                each = said.clone().requires_grad_()
                loss = to_soft_labels(each, teacher(pictures)) * 2
                (terms,) = torch.autograd.grad(loss, each)
                return float((rule.open_sums(terms[None]) * direction).sum())

            row = teachers.open_derivative(pictures, said, to_soft_labels, rule, direction)
            assert row.sensitivity.bounds == {}
            found = row.open_bounded().ravel() / published.FINE_GRID
            for place in (0, 7, 31, 32, 37):
                step = torch.zeros(2 * 16 + 2 * CLASSES, dtype=torch.float64)
                step[place] = 1e-5
                moved = step[:32].reshape(pictures.shape), step[32:].reshape(said.shape)
                more = along(pictures + moved[0], said + moved[1])
                less = along(pictures - moved[0], said - moved[1])
                assert found[place] == pytest.approx((more - less) / 2e-5, abs=1e-6)


def test_a_derivative_that_is_no_number_is_a_public_zero():
    rule = TermBound(1.0, STEPS, together=True)
    teachers = PlainTeachers([PlainTeacher(Lines([math.nan, 0.0], [0.0, 0.0]))])
    one = torch.ones(1, 1, dtype=torch.float64)
    row = teachers.open_derivative(one, one.expand(1, 2), to_soft_labels, rule, one)
    assert not row.open_bounded().any()


# -- what does not fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"iterations": 0},
        {"batch": 0},
        {"sigma": 0},
        {"bound": 0.0},
        {"bound": math.nan},
        {"stability": 0.0},
        {"reading": "hopeful"},
        {"operation": "hope"},
        {"teachers": 0},
    ],
)
def test_a_plan_out_of_range_is_refused(wrong):
    with pytest.raises(BadInput):
        plan_of(**wrong)


@pytest.mark.parametrize(
    ("numbers", "mode", "named"),
    [
        ({"teachers": 2, "sharing": "disjoint"}, "as-published", "reading"),
        ({"sharing": "shared"}, "as-published", "sharing"),
        ({"sigma": 3}, "certified", "sigma"),
        ({"reading": "per-sample"}, "certified", "certified"),
        ({"detached": False}, "certified", "certified"),
        ({"teachers": 2}, "certified", "certified"),
        ({"teachers": 2, "iterations": 10_000, "batch": 64}, "as-published", "iterations"),
    ],
)
def test_numbers_that_make_no_sense_together(numbers, mode, named):
    found = [text for text, holds in plan_of(**numbers).misfits(mode).items() if holds]
    assert len(found) == 1
    assert named in found[0]


def test_teachers_on_shards_are_not_normalised_together():
    teachers = PlainTeachers([PlainTeacher(network(n)) for n in "ab"], Unit.RECORD)
    pictures, said = torch.zeros(2, *SHAPE), torch.zeros(2, CLASSES)
    rule = TermBound(1.0, 100, together=True)
    with pytest.raises(BadInput, match="one by one"):
        teachers.gradients(pictures, said, to_soft_labels, rule)


def test_teachers_show_nothing_of_themselves():
    assert "hidden" in repr(PlainTeachers([PlainTeacher(network("a"))]))
    with pytest.raises(BadInput):
        PlainTeachers([])


def test_the_student_comes_to_say_what_the_teacher_says(world):
    """Next to no noise, and one gradient per picture."""
    plan = plan_of(
        teachers=2, reading="per-sample", sigma="1/1000", iterations=100, batch=16, bound=1.0,
        gamma=1.0,
    )  # fmt: skip
    run = world(plan)
    run.networks[1].load_state_dict(run.networks[0].state_dict())
    run.run()
    with torch.no_grad():
        pictures = run.generator(published.latents(5, "fresh", count=300, size=5))
        taught = run.networks[0](pictures)
        losses = [
            float(published.decoupled_loss(one(pictures), taught))
            for one in (network("student"), run.student)
        ]
    assert losses[1] < losses[0] / 10
