"""Votes of entities from a recipe to a student: every way of answering, resumed, and by command."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.cli import run as command
from stillroom.data import Split, digits
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import Budget, Ledger
from stillroom.methods.registry import parse
from stillroom.methods.votes import sessions
from stillroom.pipeline.holders import holders
from stillroom.pipeline.run import run
from stillroom.sources import Party

RECIPE = """
method = "votes"
mode = "{mode}"
purpose = "benchmark"
ledger = "ledgers"
[data]
source = "digits"
test = "1/4"
test_is_public = true
public = "1/2"
declared_size = 670
[features]
name = "edges"
full_scale = 16
[entities]
count = 9
largest = 120
{entities}
[votes]
queries = 60
{votes}
[student]
model = "mlp"
rounds = 1
epochs = 12
batch = 32
neighbours = 8
{more}
[privacy]
epsilon = {epsilon}
"""


def text(entities="", votes="", more="", mode="certified", epsilon=20.0):
    return RECIPE.format(entities=entities, votes=votes, more=more, mode=mode, epsilon=epsilon)


def parts_of(recipe):
    split = Split.by_fraction(digits(), recipe.data.key, public="1/2", test="1/4")
    return split.sealed(test_is_public=True)


def parties_of(recipe_text, budget=100.0):
    recipe, parties = parse(recipe_text), []
    for name, own in holders(recipe, parts_of(recipe).sensitive).items():
        ledger = Ledger.in_memory(own, purpose="benchmark")
        ledger.set_budget(Budget(epsilon=budget, delta=1e-5), reason="a test")
        parties.append(Party(name, own, ledger))
    return parties


def finished(recipe_text, budget=100.0, under=None, parties=None):
    recipe = parse(recipe_text)
    parts, parties = parts_of(recipe), parties or parties_of(recipe_text, budget)
    return run(recipe, parties, parts.public, parts.test, under=under), parties


def drawn(party):
    return [row.body["count"] for row in party.ledger.store.rows("kind = 'draw'")]


def test_a_secure_sum_teaches_and_every_entity_pays_once():
    done, parties = finished(text("dropouts = 2\ncolluding = 1", "smoothing = 1"))
    assert done.accuracy > 0.6
    assert [drawn(party) for party in parties] == [[60]] * 9  # one row per session and entity


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("votes", "least"),
    [
        ('report = "summed-response"', 0.4),
        pytest.param('report = "response"', 0.4, marks=slow),
        ('report = "unary"\nabstain = 0.3', 0.4),
        # Classes are no numbers: noise that takes them for some hides most of what is told.
        pytest.param('report = "geometric"', 0.2, marks=slow),
        pytest.param('selection = "groups"', 0.4, marks=slow),
        pytest.param('selection = "k-centre"\nabstain = 0.2', 0.4, marks=slow),
        ('teacher = "mlp"\nepochs = 3', 0.4),
    ],
)
def test_every_way_of_answering(votes, least):
    """With hardly any noise: what is tested is that answers find their places."""
    done, parties = finished(text(votes=votes, epsilon=100.0), budget=200.0)
    assert done.accuracy > least
    assert all(sum(drawn(party)) == 60 for party in parties)


def test_tests_of_a_threshold_ask_only_where_entities_agree():
    done, parties = finished(text(votes='threshold = "2/5"\ntested = 100\nthreshold_noise = 2'))
    assert done.accuracy > 0.5
    counts = [drawn(party) for party in parties]
    assert {row[0] for row in counts} == {100}
    assert 0 < counts[0][1] <= 60


@pytest.mark.slow
def test_small_budgets_end_first_and_go_on_with_noise_alone():
    done, parties = finished(text("epsilons = [2.0, 6.0, 20.0]"))
    spent = [party.ledger.standing()[0].epsilon for party in parties[:3]]
    for own, most in zip(spent, (2, 6, 20), strict=True):
        assert own <= most
    rows = [drawn(party) for party in parties[:3]]
    assert rows[0][0] < rows[1][0] < rows[2][0] == 60
    assert [sum(own) for own in rows] == [60, 60, 60]  # silence fills up what votes leave
    assert done.accuracy > 0.3


def test_a_run_that_goes_on_asks_nobody_again(monkeypatch):
    """The same votes are replayed, the same sum is opened, and nothing more is drawn."""
    sums = []
    honest = sessions.Entities.summed

    def told(self, kind, queries):
        sums.append(honest(self, kind, queries))
        return sums[-1]

    monkeypatch.setattr(sessions.Entities, "summed", told)
    first, parties = finished(text(), under="a run")
    before = [drawn(party) for party in parties]
    second, _ = finished(text(), under="a run", parties=parties)
    assert np.array_equal(*sums)
    assert [drawn(party) for party in parties] == before
    assert first.accuracy == second.accuracy


@pytest.mark.parametrize(("dropouts", "goes_on"), [(1, True), (0, False)])
def test_an_answer_that_was_lost_is_an_entity_that_vanished(monkeypatch, dropouts, goes_on):
    """Cut off between draw and commit: the draw stays charged and is never made again (L2)."""
    recipe = text(f"dropouts = {dropouts}")
    honest, left = Ledger.commit_draw, [4]

    def cut_off(self, *given):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return honest(self, *given)

    monkeypatch.setattr(Ledger, "commit_draw", cut_off)
    parties = parties_of(recipe)
    with pytest.raises(KeyboardInterrupt):
        finished(recipe, under="a run", parties=parties)
    monkeypatch.setattr(Ledger, "commit_draw", honest)
    if not goes_on:
        with pytest.raises(BadInput, match="8 entities are left"):
            finished(recipe, under="a run", parties=parties)
        return
    done, _ = finished(recipe, under="a run", parties=parties)
    assert done.accuracy > 0.5
    assert [drawn(party) for party in parties] == [[60]] * 9


def test_an_opened_sum_is_the_sum_of_all_rows(monkeypatch):
    kept = {}
    honest = sessions.Entities._opened

    def opened(self, rows, largest):
        kept["rows"], kept["sum"] = rows, honest(self, rows, largest)
        return kept["sum"]

    monkeypatch.setattr(sessions.Entities, "_opened", opened)
    finished(text("dropouts = 1"))
    assert np.array_equal(kept["sum"], np.sum(list(kept["rows"].values()), axis=0))
    # Everybody's noise is in it: nine shares, of which eight were counted on.
    assert len(kept["rows"]) == 9


def test_the_papers_scheme_is_told_with_its_claim():
    more = '[published]\nepsilon = "1/2"'
    done, _ = finished(
        text(votes='report = "geometric"', more=more, mode="as-published"), budget=1000.0
    )
    assert done.plan.claim.epsilon == pytest.approx(30)


def test_too_few_public_records_are_refused_before_anything_is_paid():
    with pytest.raises(BadInput, match="fewer public records"):
        finished(text().replace("queries = 60", "queries = 5000"))


def test_a_lottery_that_leaves_a_question_to_nobody_is_refused_before_anything_is_paid():
    with pytest.raises(BadInput, match="nobody is drawn"):
        finished(text('participation = "1/20"'))


def test_an_entity_that_is_drawn_for_nothing_is_refused_before_anything_is_paid():
    few = text('participation = "3/5"\ndeal_seed = 1', 'report = "unary"')
    few = few.replace("queries = 60", "queries = 1")
    with pytest.raises(BadInput, match="none of the questions"):
        finished(few)


def test_wide_sums_have_wider_words(monkeypatch):
    """Everybody has paid when the sum is made: it must not be refused for its size."""
    plans = []
    honest = sessions.Plan

    def planned(*given, **more):
        plans.append(honest(*given, **more))
        return plans[-1]

    monkeypatch.setattr(sessions, "Plan", planned)
    monkeypatch.setattr(sessions, "REACH", 10**7)
    done, _ = finished(text())
    assert [plan.bits for plan in plans] == [64]
    assert done.accuracy > 0.4


@slow
def test_a_lottery_is_accounted_for_in_the_shares():
    """Where fewer entities answer a question, the vote of each counts more."""
    done, parties = finished(text('participation = "4/5"'))
    assert done.accuracy > 0.4
    assert all(sum(drawn(party)) == 60 for party in parties)  # votes and silence together


def test_nobody_is_charged_for_what_one_entity_cannot_afford():
    _, parties = finished(text(), budget=21.0, under="first")
    for party in parties[:-1]:
        party.ledger.set_budget(Budget(epsilon=500.0, delta=1e-5), reason="more")
    with pytest.raises(BudgetExhausted):
        finished(text(), under="second", parties=parties)
    assert [len(list(one.ledger.store.rows("kind = 'block'"))) for one in parties] == [1] * 9


def test_by_command(tmp_path, monkeypatch, capsys):
    """A folder of ledgers: made, given budgets, paid from, shown; the card has a line for each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    (tmp_path / "r.toml").write_text(text().replace("count = 9", "count = 3"))
    assert command(["release", "r.toml", "-o", "out"]) == 2
    assert "3 of 3 entities" in capsys.readouterr().err
    assert command(["ledger", "show", "r.toml.run"]) == 2
    budget = ["ledger", "budget", "set", "ledgers", "--epsilon", "21", "--reason", "a test"]
    assert command(budget) == 0
    assert "of 3 ledgers" in capsys.readouterr().out
    assert command(["release", "r.toml", "-o", "out"]) == 0
    assert command(["verify", "out", "--json"]) == 0
    assert '"entity-2"' in capsys.readouterr().out
    assert command(["ledger", "show", "ledgers"]) == 0
    assert "entity-3" in capsys.readouterr().out
    assert "entity-1" in (tmp_path / "out" / "card.html").read_text()
    assert command(["release", "r.toml", "-o", "second"]) == 3
