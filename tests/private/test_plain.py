"""One plain teacher: what it says unprotected has no bound, a residual stays in its ball."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from drawing import drawn
from stillroom.data import Dataset, digits
from stillroom.engine import Engine
from stillroom.errors import BadInput, NotSanitised
from stillroom.gate import Budget, Gate, GaussianAnswers, Ledger
from stillroom.models.augmentation import Views
from stillroom.models.supervised import SupervisedTraining
from stillroom.private.plain import PlainTeacher, bounded_loss, loss_steps, train_in_the_clear
from stillroom.private.quantise import clip_to_ball, squared_norms
from stillroom.private.unprotected import GRID, LARGEST
from stillroom.vocabulary import Pair, Relation, Sealed, Unit

STEPS = 1 << 12


def squared_norm(vector):
    return squared_norms(vector[None])[0]


def fixed(outputs, width=3):
    """A teacher that says the same of every query."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, width))
    with torch.no_grad():
        network[1].weight.zero_()
        network[1].bias.copy_(torch.as_tensor(outputs))
    return PlainTeacher(network)


QUERIES = torch.zeros(5, 1, 2, 2)


def linear(data, model="linear"):
    return SupervisedTraining(
        model, np.array(data.x), np.array(data.y), 10, 16.0, Views(), 8, 128, 0.01, 3
    )


def in_the_clear(sensitive, public, folder, training=linear):
    return train_in_the_clear(
        Sealed(sensitive), public, training, engine=Engine("serial"), folder=folder
    )


def test_it_learns_the_digits_and_the_same_again(tmp_path):
    data = digits()
    public, sensitive = data.select(np.arange(300)), data.select(np.arange(300, len(data)))
    x, logits = torch.tensor(data.x)[:, None] / 16.0, []
    for folder in (tmp_path / "work" / "one", tmp_path / "other"):
        teacher = in_the_clear(sensitive, public, folder)
        assert folder.stat().st_mode & 0o777 == 0o700
        logits.append(teacher.outputs(x).open_bounded())
    assert np.array_equal(*logits)
    guesses = logits[0].reshape(len(data), 10).argmax(axis=1)
    assert np.array_equal(teacher.guesses(data), guesses)
    assert (guesses == data.y).mean() > 0.9
    assert len(teacher.guesses(data.select([]))) == 0


def test_it_sees_public_records_first_and_every_record_once(tmp_path):
    data = digits()
    public, sensitive = data.select(np.arange(300)), data.select(np.arange(300, len(data)))
    seen = []

    def noted(given):
        seen.append(given)
        return linear(given)

    in_the_clear(sensitive, public, tmp_path, noted)
    assert seen[0].ids == data.ids
    assert np.array_equal(seen[0].x, data.x)
    assert np.array_equal(seen[0].y, data.y)


def test_a_folder_that_others_may_read_is_closed(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir(mode=0o755)
    data = digits()
    in_the_clear(data.select([0, 1]), data.select([2]), folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_unprotected_answers_are_the_layers_on_a_grid():
    teacher = PlainTeacher(nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU(), nn.Flatten()))
    queries = torch.linspace(-1, 1, 5 * 16).reshape(5, 1, 4, 4)
    with torch.no_grad():
        hidden = teacher._network[:2](queries)
        pooled = nn.functional.adaptive_avg_pool2d(hidden, 2)
    for shape, wanted in (((2, 4, 4), hidden), ((2, 2, 2), pooled), ((32,), hidden)):
        hints = teacher.hints(queries, 2, shape)
        assert hints.sensitivity.bounds == {}
        assert hints.shape == (1, wanted.numel())
        error = hints.open_bounded()[0] / GRID - wanted.numpy().ravel()
        assert np.abs(error).max() <= 0.5 / GRID
    outputs = teacher.outputs(queries)
    assert outputs.sensitivity.bounds == {}
    assert np.array_equal(outputs.open_bounded(), teacher.hints(queries, 3, (32,)).open_bounded())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e6, 1e200, 1e307]))
def test_a_residual_stays_in_its_ball(seed, scale):
    vector = np.random.default_rng(seed).normal(size=700) * scale
    with np.errstate(over="ignore"):
        found = clip_to_ball(vector[None] * (STEPS / 0.5), STEPS)[0]
    assert sum(int(v) ** 2 for v in found) <= STEPS**2
    if scale in (1.0, 1e6):
        assert np.sqrt((found**2).sum()) > 0.99 * STEPS, "the clip is used, not undershot"


def test_a_residual_that_is_rounded_up_would_leave_its_ball():
    """The broken twin: rounded to the nearest, not checked."""
    found = []
    for seed in range(20):
        vector = np.random.default_rng(seed).normal(size=700)
        twin = np.rint(vector / np.linalg.norm(vector) * 200).astype(np.int64)
        found.append(squared_norm(twin) > 200**2)
        assert squared_norm(clip_to_ball(vector[None] * 200, 200)[0]) <= 200**2
    assert any(found)


def test_the_norm_is_exact_where_64_bits_would_end():
    vector = np.full(3 << 14, 1 << 24, dtype=np.int64)
    assert squared_norm(vector) == (3 << 14) * (1 << 48) > 2**63


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_a_teacher_gone_wrong_says_a_public_default(bad):
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3).double())
    with torch.no_grad():
        network[1].bias.fill_(bad)
    teacher, queries = PlainTeacher(network), QUERIES.double()
    student = np.full((5, 3), 1 / 3)
    for layer in (2, None):
        answer = teacher.residual(queries, student, bound=1.0, steps=STEPS, layer=layer)
        assert squared_norm(answer.open_bounded()[0]) <= STEPS**2
        if not np.isfinite(bad):
            assert not answer.open_bounded().any()
    assert np.abs(teacher.outputs(queries).open_bounded()).max() <= LARGEST


def test_a_residual_in_bounds_is_student_minus_teacher():
    teacher = fixed([0.25, -0.5, 1.0])
    student = np.arange(15, dtype=np.float32).reshape(5, 3) / 16
    answer = teacher.residual(QUERIES, student, bound=10.0, steps=STEPS, layer=2)
    wanted = student - np.array([0.25, -0.5, 1.0])
    found = answer.open_bounded().reshape(5, 3) * 10.0 / STEPS
    assert np.abs(found - wanted).max() <= 10.0 / STEPS


def test_the_residual_of_probabilities_is_the_gradient_of_the_softened_loss():
    teacher, temperature = fixed([2.0, 0.0, -1.0]), 3.0
    logits = torch.linspace(-1, 1, 15).reshape(5, 3).requires_grad_()
    loss = nn.functional.cross_entropy(
        logits / temperature,
        torch.softmax(torch.tensor([[2.0, 0.0, -1.0]]) / temperature, 1).expand(5, 3),
        reduction="sum",
    )
    loss.backward()
    said = torch.softmax(logits.detach() / temperature, 1).numpy()
    answer = teacher.residual(
        QUERIES, said, bound=4.0, steps=1 << 20, temperature=temperature
    ).open_bounded()
    found = answer.reshape(5, 3) * 4.0 / (1 << 20) / temperature
    assert np.abs(found - logits.grad.numpy()).max() < 1e-5


def test_opposite_teachers_are_as_far_apart_as_is_paid_for(tmp_path):
    """D = 2B is attained: the price of D = B would be a false one, and the gate refuses it."""
    student, ends = np.zeros((5, 3)), []
    for sign in (1, -1):
        answer = fixed([sign * 100.0, 0.0, 0.0]).residual(
            QUERIES, student, bound=1.0, steps=STEPS, layer=2
        )
        ends.append(answer.open_bounded()[0])
    distance = squared_norm(ends[0] - ends[1])
    # Truncation to whole units takes at most one a row.
    assert (2 * (STEPS - 3)) ** 2 <= distance <= answer.sensitivity.bounds[RECORD_CHANGE]
    assert distance > STEPS**2
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=["a"], purpose="audit")
    ledger.set_budget(Budget(5.0, 1e-5), reason="a test")
    gate = Gate(ledger, ids=["a"])
    drawn(gate.reserve(GaussianAnswers(10 * STEPS, 15, 4 * STEPS**2), 1), answer)
    with pytest.raises(NotSanitised):
        drawn(gate.reserve(GaussianAnswers(10 * STEPS, 15, STEPS**2), 1), answer)


RECORD_CHANGE = Pair(Unit.RECORD, Relation.CHANGE)


def test_every_unit_is_covered():
    answer = fixed([0.0] * 3).residual(QUERIES, np.zeros((5, 3)), bound=1.0, steps=10, layer=2)
    assert answer.sensitivity.bounds == {
        Pair(unit, relation): Fraction(400)
        for unit in (Unit.RECORD, Unit.PERSON, Unit.ENTITY)
        for relation in Relation
    }


@pytest.mark.parametrize(
    ("loss", "units"), [(0.0, 0), (1.0, 50), (2.0, 100), (1e300, 100), (np.inf, 100), (np.nan, 0)]
)
def test_a_loss_is_clipped_to_its_bound(loss, units):
    assert loss_steps(loss, 2.0, 100) == units
    assert bounded_loss(loss, 2.0, 100).open_bounded().tolist() == [[units]]
    assert bounded_loss(loss, 2.0, 100).sensitivity.bounds[RECORD_CHANGE] == 100**2


def test_it_shows_nothing_of_itself():
    teacher = fixed([123.456, 0.0, 0.0])
    assert repr(teacher) == str(teacher) == "PlainTeacher(<hidden>)"
    with pytest.raises(BadInput) as raised:
        pickle.dumps(teacher)
    assert "123" not in str(raised.value)
    with pytest.raises(BadInput) as raised:
        Dataset(np.zeros((2, 2, 2)), [0, 77], 10)
    assert "77" not in str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bound": 0.0},
        {"bound": np.nan},
        {"bound": np.inf},
        {"steps": 0},
        {"steps": 1 << 25},
        {"temperature": 0.0},
        {"layer": 3},
        {"layer": 0},
    ],
)
def test_bad_numbers_are_refused(wrong):
    given = {"bound": 1.0, "steps": 100, "layer": 2, **wrong}
    with pytest.raises(BadInput):
        fixed([0.0] * 3).residual(QUERIES, np.zeros((5, 3)), **given)


def test_a_student_of_another_shape_is_refused():
    with pytest.raises(BadInput):
        fixed([0.0] * 3).residual(QUERIES, np.zeros((5, 4)), bound=1.0, steps=9, layer=2)
    with pytest.raises(BadInput, match="no block 1"):
        PlainTeacher(nn.Linear(4, 2)).hints(torch.zeros(2, 4), 1, (2,))
