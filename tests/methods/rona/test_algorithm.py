"""Algorithm 1: its stages in order, its loss, and what a sanitised teacher is asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from methods.pictures import SKETCH, charged
from methods.rona.recipes import BUDGET, recipe_in, weights_of
from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.methods.base import ModelGuesses
from stillroom.methods.registry import read
from stillroom.methods.rona import algorithm as rona
from stillroom.methods.rona import lessons
from stillroom.methods.rona.algorithm import Guide, probabilities, teach
from stillroom.methods.rona.lessons import FreeLessons
from stillroom.methods.rona.public_part import PublicPart
from stillroom.methods.rona.section import RonaSection
from stillroom.pipeline.release import load_parts_of, release
from stillroom.pipeline.run import _labelled
from stillroom.randomness import normals
from stillroom.release import verify_bundle
from stillroom.sources import Scores

X = torch.from_numpy(normals(1, "x", size=(30, 4))).float()
NUMBERS = RonaSection(
    hint_epochs=2, rounds=3, self_epochs=2, distillation_epochs=2, batch=10, self_batch=10
)


class Noted:
    """A source, and labelled records, that note what they are asked."""

    def __init__(self, rounds=3):
        self.rounds, self.asked, self.modes = rounds, [], []

    def hints(self, epoch):
        self.asked.append(("hint", epoch))
        return X, torch.zeros(30, 5)

    def answers(self, number, epoch, student):
        self.modes.append(student.training)
        self.asked.append(("distil", number, epoch))
        return X, torch.zeros(30, 3)

    def lesson(self, epoch):
        self.asked.append(("learn", epoch))
        return X, torch.zeros(30, dtype=torch.int64)


def student():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))


def test_stages_come_in_the_papers_order():
    made, source, told = student(), Noted(), []
    guide = Guide(made[:2], nn.Linear(6, 5))
    teach(made, nn.Identity(), source, source, NUMBERS, guide, lambda *given: told.append(given))
    wanted = [("hint", 0), ("hint", 1)]
    for number in range(3):
        wanted += [("learn", 2 * number), ("learn", 2 * number + 1)]
        wanted += [("distil", number, 0), ("distil", number, 1)]
    assert source.asked == wanted
    assert told == [(done, 14) for done in range(1, 15)]
    assert not made.training


def test_a_source_that_ends_early_ends_the_training():
    made, source, told = student(), Noted(rounds=1), []
    teach(made, nn.Identity(), source, source, NUMBERS, None, lambda *given: told.append(given))
    assert source.asked == [("learn", 0), ("learn", 1), ("distil", 0, 0), ("distil", 0, 1)]
    assert told[-1] == (4, 4)


def test_a_student_is_asked_as_it_will_be_released():
    """Before its first epoch too: a norm over the batch must not follow the queries."""
    made, source = student(), Noted()
    numbers = NUMBERS.model_copy(update={"self_epochs": 0, "hint_epochs": 0})
    before = made[1].running_mean.clone()
    answers = source.answers

    def asked(number, epoch, student):
        if not source.modes:
            probabilities(student, nn.Identity(), X)
            assert torch.equal(student[1].running_mean, before)
        return answers(number, epoch, student)

    source.answers = asked
    teach(made, nn.Identity(), source, source, numbers)
    assert source.modes == [False] * 6


def test_scores_are_divided_by_half_their_spread():
    scores, guess = X[:, :3] * 40 + 7, X[:, 1:]
    centred = scores - scores.mean(1, keepdim=True)
    wanted = rona.by_logits(float(centred.std()) / 2)(guess, scores)
    assert torch.allclose(rona._loss(RonaSection(), scores)(guess, scores), wanted)
    given = rona._loss(RonaSection(temperature=3.0), scores)(guess, scores)
    assert torch.allclose(given, rona.by_logits(3.0)(guess, scores))
    soft = rona._loss(RonaSection(loss="softened", temperature=3.0), scores)(guess, scores)
    assert torch.allclose(soft, rona.softened(3.0)(guess, scores))


def test_no_scores_have_no_spread():
    """Torch would warn, and every warning is an error here."""
    rona._loss(RonaSection(), torch.zeros(0, 3))


# -- a teacher that may be asked without limit ----------------------------------------------


class Teacher:
    """Logits that tell which picture they are of, and a sketch that may have samples."""

    left = None

    def __init__(self, drawn=None):
        self.calls, self.drawn, self.wanted = [], drawn, []

    def logits(self, x):
        self.calls.append(len(x))
        return x.reshape(len(x), -1)[:, :10].astype(np.float32)

    def scores(self, x, groups=None):
        return Scores(self.logits(x).astype(np.float64), np.arange(len(x)))

    def samples(self, count, seed):
        self.wanted.append(count)
        return self.drawn


def public_of(recipe, public):
    return PublicPart(recipe, public, _labelled(recipe, public))


def part_of(folder, **parts):
    recipe = read(recipe_in(folder, **parts))[0]
    return public_of(recipe, load_parts_of(recipe, folder).public)


def test_every_view_is_asked_once_and_extras_are_in_every_epoch(tmp_path, monkeypatch):
    public = part_of(
        tmp_path, rona="views = 3\nshift = 0.2\ndistillation_epochs = 2\ncomposites = 5\n"
    )
    teacher, size = Teacher(), len(public.x)
    extras = np.array(public.x[:5]) + 1
    monkeypatch.setattr(lessons, "composites", lambda x, count, seed: extras[:count])
    answers = FreeLessons(teacher, public, None)
    seen = []
    for number, epoch in ((0, 0), (0, 1), (1, 0), (1, 1)):
        x, scores = answers.answers(number, epoch, None)
        assert len(x) == len(scores) == size + 5
        assert np.array_equal(Teacher().logits(x.numpy()), scores.numpy())
        assert np.array_equal(x[size:].numpy(), extras)
        seen.append(x[:size].numpy())
    assert teacher.calls == [5, size, size, size]
    # The views come in turn, the picture itself first.
    assert np.array_equal(seen[0], public.x)
    assert np.array_equal(seen[3], public.x)
    assert not np.array_equal(seen[1], seen[2])


@pytest.mark.parametrize(("full_scale", "kind"), [(1.0, np.float32), (255, np.uint8)])
def test_samples_are_rounded_for_whole_pictures_only(tmp_path, full_scale, kind):
    file = recipe_in(tmp_path, rona="samples = 4\n")
    file.write_text(file.read_text() + SKETCH)
    recipe = read(file)[0]
    part = load_parts_of(recipe, tmp_path).public
    scaled = (part.x / 16 * full_scale).astype(kind)
    public = public_of(recipe, Dataset(scaled, part.y, part.classes, ids=part.ids))
    drawn = normals(1, "samples", size=(4, 8, 8)).astype(np.float32) % 1 * full_scale
    teacher = Teacher(drawn)
    x, _ = FreeLessons(teacher, public, None).answers(0, 0, None)
    made = x[len(public.x) :].numpy()
    assert teacher.wanted == [4]
    assert len(made) == 4
    assert made.dtype == kind
    assert np.abs(made - drawn.astype(np.float64)).max() <= (0 if kind == np.float32 else 0.5)
    assert len(np.unique(made)) > 20


def test_guesses_on_sensitive_records_are_made_alone(tmp_path):
    data = load_parts_of(read(recipe_in(tmp_path))[0], tmp_path).test
    together, alone = Teacher(), Teacher()
    one = ModelGuesses(together, alone=False).guesses(data)
    other = ModelGuesses(alone, alone=True).guesses(data)
    assert np.array_equal(one, other)
    assert one.dtype == np.int64
    assert together.calls == [len(data)]
    assert alone.calls == [1] * len(data)
    assert len(ModelGuesses(together, alone=False).guesses(data.select([]))) == 0


# -- networks whose norms are over the batch ------------------------------------------------


def test_a_network_that_mixes_records_is_for_students_of_public_pictures(tmp_path, small):
    recipe = recipe_in(tmp_path / "rona", rona="views = 2\nshift = 0.1\n")
    recipe.write_text(recipe.read_text().replace('student = "mlp"', 'student = "mobile-10k"'))
    made = release(recipe, tmp_path / "rona" / "out", budget=BUDGET)
    assert "mobile-10k" in made["artefacts"][0]["about"]
    assert weights_of(tmp_path / "rona" / "out")
    verify_bundle(tmp_path / "rona" / "out")
    folder = tmp_path / "direct"
    folder.mkdir()
    direct = folder / "recipe.toml"
    direct.write_text(
        '[data]\nsource = "digits"\ndeclared_size = 1440\ntest_is_public = true\n'
        '[features]\nfull_scale = 16\n[training]\nmodel = "mobile-10k"\nsteps = 2\nclip = 1\n'
        "[privacy]\nepsilon = 2\n"
    )
    with pytest.raises(BadInput):
        release(direct, folder / "out", budget=BUDGET)
    assert charged(folder) == (0, 0)
