"""Runs of DPDFD as published, small ones, each in a ledger of its own."""

from __future__ import annotations

import math
from fractions import Fraction

import torch
from torch import nn

from stillroom.gate import Budget, Gate, Ledger
from stillroom.gate.ledger import draws
from stillroom.methods.dpdfd.generator_section import GeneratorSection
from stillroom.methods.dpdfd.published import train
from stillroom.methods.dpdfd.published_plan import PublishedPlan
from stillroom.methods.dpdfd.published_section import PublishedSection
from stillroom.models.flat_weights import flatten
from stillroom.private.output_gradients import PlainTeachers
from stillroom.private.plain import PlainTeacher
from stillroom.public.generators import build_generator
from stillroom.randomness import seeded_torch
from stillroom.vocabulary import Unit

SHAPE, CLASSES = (1, 4, 4), 3


def plan_of(start_seed=1, beta=1.0, **numbers):
    """A plan of some iterations; the paper's numbers where none are given."""
    small = {"iterations": 6, "batch": 8, "student_rate": 1e-2}
    generator = GeneratorSection.of(model="mlp", latent=5, width=8, learning_rate=1e-2, beta=beta)
    part = PublishedSection.of(**{**small, **numbers})
    return PublishedPlan(part, generator, start_seed=start_seed)


def network(name, hidden=7):
    with seeded_torch(1, name):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(16, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES)
        )


def generator_of(plan):
    numbers = plan.generator
    return build_generator(
        numbers.model, SHAPE, CLASSES, latent=numbers.latent, width=numbers.width,
        conditional=False, seed=plan.start_seed,
    )  # fmt: skip


class World:
    """One run: a student, a generator, teachers, a ledger."""

    def __init__(self, folder, plan, *, teacher="teacher", most=None, sharded_by=None):
        self.plan = plan
        self.networks = [network(f"{teacher} {i}", 9) for i in range(plan.part.teachers)]
        self.teachers = PlainTeachers([PlainTeacher(n) for n in self.networks], sharded_by)
        path = folder / f"{len(list(folder.glob('*.sqlite')))}.sqlite"
        self.ledger = Ledger.create(path, ids=["a"], purpose="benchmark")
        self.ledger.set_budget(Budget(900.0, 1e-5), reason="a test")
        self.wishes = {
            request.name: (request.at(Fraction(1)), min(most or request.count, request.count))
            for request in plan.requests(SHAPE, CLASSES, Unit.RECORD)
        }
        self.passages = Gate(self.ledger, ids=["a"]).reserve_all(
            self.wishes, recipe="run", accept_infinite=True
        )

    def run(self, on_step=lambda iteration: None, student=None):
        self.generator = generator_of(self.plan)
        self.student = network("student") if student is None else student
        self.taught = train(
            self.student, self.generator, self.teachers, self.plan, self.passages, on_step
        )
        return self.weights

    @property
    def weights(self):
        return flatten(self.student).tolist(), flatten(self.generator).tolist()

    def reopened(self):
        self.passages = Gate(Ledger.open(self.ledger.path), ids=["a"]).reopen("run")
        assert list(self.passages) == list(self.wishes)
        return self

    def poison(self):
        with torch.no_grad():
            for one in self.networks:
                for weight in one.parameters():
                    weight.fill_(math.nan)

    def said(self, name):
        """What the gate said for a wish, in order."""
        block, place = self.passages[name].block, list(self.wishes).index(name)
        kept = draws.committed(self.ledger.store, block, place)
        return [draws.answers(self.ledger.store, stored.draw).tolist() for stored in kept]

    @property
    def draws(self):
        return len(list(self.ledger.store.rows("kind = 'draw'")))


class Told:
    """A passage that says what it is told to say, or, without a word, what it is asked for."""

    def __init__(self, answers=None):
        self.answers, self.asked = answers, 0

    def ahead(self, rows):
        return rows

    def answer(self, question, ask):
        self.asked += 1
        value = ask().open_bounded() if self.answers is None else self.answers[self.asked - 1]
        return type("Answer", (), {"value": value})


SINGLE, OPEN = plan_of(), plan_of(detached=False)
SEVERAL = plan_of(teachers=3, reading="per-sample", batch=4)
