"""Lessons: a student learns its teacher from pictures nobody took, and can be cut off anywhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from stillroom.data import digits
from stillroom.errors import BadInput
from stillroom.methods.dpdfd.lessons import Lessons, teach
from stillroom.methods.dpdfd.queries import Queries
from stillroom.methods.dpdfd.section import DpdfdSection
from stillroom.models import AsPictures, build
from stillroom.public.structured_queries import structured_queries
from stillroom.randomness import seeded_torch
from stillroom.sources.base import Answers, Scores

SHAPE, SCALE = (8, 8), 16.0
PLAN = DpdfdSection.of(
    rounds=3,
    samples=200,
    structured=200,
    mixed=200,
    refined=0.3,
    frequencies=30,
    bank=1200,
    epochs=2,
    batch=50,
    learning_rate=5e-3,
)


class Known(Answers):
    """A small network, and other random pictures in place of samples of a sketch."""

    def __init__(self, *, sketch=True, network=True, shape=SHAPE):
        with seeded_torch(3, "teacher"):
            layers = [nn.Flatten(), nn.Linear(int(np.prod(shape)), 16), nn.Tanh(), nn.Linear(16, 4)]
        self.layers = nn.Sequential(*layers).requires_grad_(False)
        self.layers[1].weight *= 0.5
        self.network = self.layers if network else None
        self._sketch, self._shape, self.asked = sketch, shape, []

    def scores(self, x, groups=None):
        self.asked.append(np.array(x))
        return Scores(self.layers(torch.from_numpy(x)).double().numpy(), np.arange(len(x)))

    def samples(self, count, seed):
        if not self._sketch:
            return None
        return structured_queries(count, self._shape, seed=seed + 500) * np.float32(SCALE)


def untaught(shape=SHAPE, model="mlp"):
    pictures = AsPictures(shape, SCALE)
    return build(model, pictures.given, 4, seed=1), pictures


def changed(**numbers):
    return PLAN.model_copy(update=numbers)


def lessons_of(student, pictures, answers, plan=PLAN):
    queries = Queries(answers, plan, pictures.shape, SCALE)
    return Lessons(student, pictures, answers, queries, plan)


def taught(answers, plan=PLAN, *, shape=SHAPE, model="mlp", **more):
    student, pictures = untaught(shape, model)
    queries = Queries(answers, plan, shape, SCALE)
    teach(student, pictures, answers, queries, plan, **more)
    return student


def weights(student):
    return torch.cat([values.flatten().double() for values in student.state_dict().values()])


def agreement(student, answers):
    """On real pictures, which the student never saw."""
    x = torch.tensor(digits().x[:600]).float()
    with torch.no_grad():
        guess = student(AsPictures(SHAPE, SCALE)(x)).argmax(1)
        return float((guess == answers.layers(x).argmax(1)).float().mean())


def test_a_student_learns_what_it_never_saw():
    answers = Known()
    before = agreement(untaught()[0].eval(), answers)
    student = taught(answers, changed(rounds=5, epochs=6))
    assert not student.training
    assert agreement(student, answers) > max(0.8, before + 0.2)


@pytest.mark.parametrize("sketch", [True, False])
@pytest.mark.parametrize("network", [True, False])
def test_with_and_without_sketch_and_gradients(sketch, network):
    answers = Known(sketch=sketch, network=network)
    taught(answers)
    per_round = 600 if sketch else 200
    assert [len(x) for x in answers.asked] == [per_round] * 3
    every = np.concatenate(answers.asked)
    assert every.min() >= 0
    assert every.max() <= SCALE


@pytest.mark.parametrize("kind", ["samples", "structured", "mixed"])
def test_a_kind_of_query_may_be_left_out(kind):
    answers = Known()
    taught(answers, changed(**{kind: 0}, rounds=2))
    assert [len(x) for x in answers.asked] == [400, 400]


@pytest.mark.parametrize("shape", [(16, 16), (8, 8, 3)])
def test_other_pictures(shape):
    answers = Known(shape=shape)
    student = taught(answers, changed(rounds=2), shape=shape, model="wavelet-70k")
    assert torch.isfinite(weights(student)).all()


def test_reproducible_from_the_seed():
    one, again = taught(Known()), taught(Known())
    other = taught(Known(), changed(start_seed=1))
    assert torch.equal(weights(one), weights(again))
    assert not torch.equal(weights(one), weights(other))


def test_every_round_asks_something_new():
    answers = Known()
    taught(answers)
    rows = {row.tobytes() for x in answers.asked for row in x if row.any()}
    alive = sum(bool(row.any()) for x in answers.asked for row in x)
    assert len(rows) > 0.99 * alive


def test_refinement_begins_in_the_second_round_and_raises_disagreement():
    plain, moved = Known(), Known()
    taught(plain, changed(refined=0.0))
    taught(moved)
    same = [
        (a == b).reshape(len(a), -1).all(axis=1).mean()
        for a, b in zip(plain.asked, moved.asked, strict=True)
    ]
    assert same[0] == 1
    assert same[1] == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize("after", [1, 2])
def test_a_run_that_was_cut_off_ends_the_same(after, tmp_path):
    states = {}

    def keep(done, lessons):
        torch.save(lessons.state(), tmp_path / f"{done}.pt")
        states[done] = True

    whole = taught(Known(), on_round=keep)
    assert list(states) == [1, 2, 3]
    state = torch.load(tmp_path / f"{after}.pt", weights_only=True)
    answers = Known()
    resumed = taught(answers, state=state)
    assert len(answers.asked) == PLAN.rounds - after
    assert torch.equal(weights(whole), weights(resumed))


def test_the_bank_is_bounded():
    sizes = []
    plan = changed(rounds=4, epochs=1)
    taught(Known(), plan, on_round=lambda done, lessons: sizes.append(len(lessons.state()["bank"])))
    assert sizes == [600, 1200, 1200, 1200]


def test_progress_is_told():
    told = []
    taught(Known(), on_step=lambda done, total: told.append((done, total)))
    assert told == [(step, 6) for step in range(1, 7)]


class Broken(nn.Module):
    """A teacher whose gradient is no number, from some call on."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + (x.flatten(1)[:, :1] * 0).sqrt() * float("nan")


def test_a_refined_query_that_is_no_number_is_found():
    answers = Known()
    answers.network = Broken(answers.layers)
    student, pictures = untaught()
    lessons = lessons_of(student, pictures, answers)
    lessons.round()
    good = weights(student)
    with pytest.raises(BadInput, match=r"query is not a number \[round 2, queries\]"):
        lessons.round()
    assert torch.equal(weights(student), good)
    assert lessons.done == 1


def test_a_loss_that_is_no_number_is_found():
    answers = Known()
    student, pictures = untaught()
    lessons = lessons_of(student, pictures, answers)
    lessons.round()
    good = weights(student)
    answers.layers[3].bias[0] = float("nan")
    answers.network = None
    with pytest.raises(BadInput, match=r"not a number \[round 2, epoch 3, step \d+\]"):
        lessons.round()
    assert torch.equal(weights(student), good)


def test_rows_of_features_are_refused():
    student, pictures = untaught((64,))
    lessons = lessons_of(student, pictures, Known(shape=(64,)))
    with pytest.raises(BadInput, match="random pictures"):
        lessons.round()


class KnowsItsSamples(Known):
    """Says of its samples, unasked, that they are all of class 2."""

    def sample_scores(self, count, seed):
        return np.tile([0.0, 0.0, 9.0, 0.0], (count, 1))


def test_known_samples_are_not_asked_about_and_not_moved():
    answers, asked = KnowsItsSamples(), Known()
    student, pictures = untaught()
    lessons = lessons_of(student, pictures, answers, changed(refined=1.0, rounds=2))
    lessons.round()
    lessons.round()
    assert [len(x) for x in answers.asked] == [400, 400]
    scores = lessons.state()["scores"]
    for start in (0, 600):
        assert (scores[start : start + 200].argmax(1) == 2).all()
        assert not (scores[start + 200 : start + 600].argmax(1) == 2).all()
    unmoved = lessons_of(*untaught(), asked, changed(refined=0.0, rounds=2))
    unmoved.round()
    unmoved.round()
    bank, plain = lessons.state()["bank"], unmoved.state()["bank"]
    assert torch.equal(bank[600:800], plain[600:800])
    assert not torch.equal(bank[800:], plain[800:])


def test_the_sketch_judges_its_samples_as_they_were_drawn(tmp_path):
    """Warped pictures are no longer where the mixture is; the class they were drawn for stays."""
    from release.generators import mixture
    from stillroom.sources.sketch import DrawnSketch, SketchAnswers
    from stillroom.sources.sketch_section import SketchSection

    drawn = object.__new__(DrawnSketch)
    drawn.section = SketchSection.of(mu="1/2", directions=3, sharpen=1.0, warp=1.0)
    drawn.full_scale, drawn.mixture = SCALE, mixture()
    answers = SketchAnswers(drawn)
    x, classes = drawn.labelled_samples(300, 5)
    known, asked = answers.sample_scores(300, 5), answers.scores(x).values
    assert known.shape == asked.shape == (300, 3)
    assert (known.argmax(axis=1) == classes).mean() > 0.95
    assert (known.argmax(axis=1) == classes).mean() > (asked.argmax(axis=1) == classes).mean()
