"""Source plain: one ordinary teacher, whose scores leave unprotected, all in one call."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stillroom.data import Split, digits
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import Budget, Gate, Ledger
from stillroom.gate.ledger import verify
from stillroom.methods.registry import parse
from stillroom.sources import SOURCES, Ask, Facts, Party, Places, Progress, PublicSide, Setting
from stillroom.sources.plain import OUTPUTS

RECIPE = """method = "rona"
mode = "as-published"
source = "plain"
purpose = "benchmark"
[data]
source = "digits"
public = "1/4"
declared_size = 1300
[features]
full_scale = 16
[engine]
kind = "serial"
[plain]
teacher = "mlp"
epochs = 3
[privacy]
epsilon = 8
"""
RECORDS = 40


@pytest.fixture(scope="module")
def split():
    return Split.by_fraction(digits(), key="plain", public="1/4", test=0)


class World:
    """A recipe of a method that asks about 40 public records, and its ledger."""

    def __init__(self, folder, split):
        self.recipe, self.folder = parse(RECIPE), folder
        self.parts = split.sealed(test_is_public=True)
        self.ledger = Ledger.create(
            folder / "ledger.sqlite", self.parts.sensitive, purpose="benchmark"
        )
        self.ledger.set_budget(Budget(8.0, 1e-5), reason="a test")
        public = self.parts.public
        self.facts = Facts(public.shape, public.classes, len(public))
        requests = self.source.requests(self.recipe, self.facts, Ask(scores=RECORDS))
        self.wishes = {r.name: (r.at(1), r.count) for r in requests}

    @property
    def source(self):
        return SOURCES["plain"]

    def prepared(self, parties=1):
        public, folder = self.parts.public, self.folder
        setting = Setting(
            self.recipe,
            self.facts,
            [Party("data", self.parts.sensitive, self.ledger)] * parties,
            PublicSide(public, public),
            Places(folder / "work", folder / "private", folder / "run", folder),
            Progress(),
        )
        return self.source.prepare(setting, Ask(scores=RECORDS))

    def gate(self, ledger=None):
        return Gate.of(ledger or self.ledger, self.parts.sensitive)

    def opened(self):
        own = self.gate().reserve_all(self.wishes, recipe="run", accept_infinite=True)
        return self.prepared().open({"data": own})

    def reopened(self):
        self.ledger.close()
        own = self.gate(Ledger.open(self.ledger.path)).reopen("run")
        return self.prepared().open({"data": own})

    @property
    def draws(self):
        return len(list(self.ledger.store.rows("kind = 'draw'")))


@pytest.fixture
def world(tmp_path, split):
    return World(tmp_path, split)


def exact(answers, x):
    """The teacher's own logits, seen as only a test may."""
    network, pictures = answers.teacher._network, answers._pictures
    with torch.no_grad():
        return network(pictures(torch.from_numpy(np.array(x)))).double().numpy()


def test_all_scores_come_in_one_recorded_call(world, split):
    answers, x = world.opened(), split.public.x[:RECORDS]
    wanted = exact(answers, x)
    assert answers.left == RECORDS
    told = answers.scores(x)
    assert told.values == pytest.approx(wanted, abs=2**-16)
    assert told.answered.tolist() == list(range(RECORDS))
    assert told.noise == 0
    assert (told.values.argmax(axis=1) == split.public.y[:RECORDS]).mean() > 0.7
    assert (answers.left, world.draws) == (0, 1)
    verify(world.ledger)


def test_the_price_is_infinite_and_must_be_accepted(world):
    with pytest.raises(BudgetExhausted):
        world.gate().reserve_all(world.wishes)
    world.opened()
    (block,) = world.ledger.store.rows("kind = 'block'")
    assert not block.body["epsilon"]


def test_fewer_records_are_told_the_same_and_more_are_refused(world, split):
    answers, x = world.opened(), split.public.x[:RECORDS]
    with pytest.raises(BadInput, match="40 records may be asked about, got 41"):
        answers.scores(split.public.x[: RECORDS + 1])
    assert world.draws == 0
    few = answers.scores(x[:7])
    assert few.values == pytest.approx(exact(answers, x[:7]), abs=2**-16)
    assert few.answered.tolist() == list(range(7))
    assert world.draws == 1


def test_the_same_question_again_is_free_and_another_is_not_paid_for(world, split):
    answers, x = world.opened(), split.public.x[:RECORDS]
    told = answers.scores(x).values
    assert np.array_equal(answers.scores(x).values, told)
    with pytest.raises(BudgetExhausted):
        answers.scores(x[::-1])
    again = world.reopened()
    with pytest.raises(BadInput, match="another question than it did before"):
        again.scores(x[::-1])
    # A teacher that says something else now is not asked.
    with torch.no_grad():
        for weight in again.teacher._network.parameters():
            weight.fill_(float("nan"))
    assert np.array_equal(again.scores(x).values, told)
    assert world.draws == 1


def test_a_closed_source_reads_its_answer_again_and_asks_nothing(world, split):
    answers, x = world.opened(), split.public.x[:RECORDS]
    told = answers.scores(x[:9]).values
    answers.close()
    assert np.array_equal(answers.scores(x[:9]).values, told)
    with pytest.raises(BadInput, match="a teacher that is gone"):
        answers.scores(x)
    assert world.draws == 1


def test_it_makes_no_samples_and_leaves_hints_as_they_are(world, split):
    answers, x = world.opened(), split.public.x[:RECORDS]
    assert answers.samples(5, 1) is None
    assert answers.network is None
    centre = np.ones((RECORDS, 3))
    assert answers.hints(x, centre, x, centre) is centre
    assert world.draws == 0


def test_its_work_is_for_its_owner_alone_and_it_joins_no_parties(world, tmp_path):
    world.prepared()
    kept = tmp_path / "private" / "trained-in-the-clear"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "work").exists()
    with pytest.raises(BadInput, match="one party, got 2"):
        world.prepared(parties=2)


def test_what_is_asked_is_what_is_paid_for(world):
    ((mechanism, count),) = world.wishes.values()
    assert list(world.wishes) == [OUTPUTS]
    assert (count, mechanism.coordinates) == (1, RECORDS * 10)
    assert mechanism.name == "unprotected"
