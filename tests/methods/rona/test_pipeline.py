"""Method rona from recipe to bundle: every answer is paid for, and controls are measured alike."""

from __future__ import annotations

import pytest

from methods.pictures import charged
from methods.rona.recipes import BUDGET, Phase, drawn, recipe_in
from sources.ensemble.ensembles import Noting
from stillroom.cli import run
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import Budget, Ledger, accounting
from stillroom.gate.ledger import verify
from stillroom.methods.registry import read
from stillroom.pipeline import run as in_memory
from stillroom.pipeline.pricing import price
from stillroom.pipeline.release import load_parts_of, release
from stillroom.release import verify_bundle
from stillroom.sources import ensemble_answers as ensemble_source
from stillroom.vocabulary import RECORD

RIVALS = {
    "trained": ["Base", "teacher on public data", "teacher"],
    "ensemble": ["Base", "auxiliary teacher"],
    "hinted": ["Base", "auxiliary teacher"],
    "plain": ["Base", "auxiliary teacher"],
}
TOO_OPEN = {"teacher", "ceiling"}
GATED = "[teachers]\ncount = 20\nshard_cap = 80\nvotes = 40\nasked = 60\nthreshold = '1/2'\n"
GROUPED = "[teachers]\ncount = 20\nshard_cap = 80\nvotes = 40\ngrouped = true\n"


def names(certificate):
    return [control["name"] for control in certificate["sections"]["controls"]["models"]]


@pytest.fixture
def sources(monkeypatch):
    """The ensembles that were asked."""
    made = []

    class Noted(Noting):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            made.append(self)

    monkeypatch.setattr(ensemble_source, "PaidEnsemble", Noted)
    return made


# -- what is drawn is what is asked ---------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "part", "at_most"),
    [
        ("hinted", None, (60, 30)),
        ("ensemble", GATED, (60, 0)),
        ("ensemble", GROUPED, (40, 0)),
        # Nobody agrees with everybody: rounds without an answer are rounds of self learning.
        ("ensemble", GATED.replace("1/2", "1").replace("20", "400"), (60, 0)),
    ],
    ids=["hints", "gated", "grouped", "unanswered"],
)
def test_every_query_is_a_recorded_draw(tmp_path, small, sources, kind, part, at_most):
    recipe = recipe_in(tmp_path, kind, part=part)
    recipe.write_text(recipe.read_text().replace('loss = "softened"', 'loss = "logits"'))
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    (source,) = sources
    wishes = made["parties"][0]["blocks"][0]["wishes"]
    asked = tuple(wish["drawn"] for wish in wishes)
    assert source.asked == (*asked, 0)[:2]
    assert asked == tuple(drawn(tmp_path, place) for place in range(len(wishes)))
    assert all(0 < count <= most for count, most in zip(asked, at_most, strict=False))
    assert not made["warnings"]
    verify(Ledger.open(tmp_path / "ledger.sqlite"))
    verify_bundle(tmp_path / "out")


def test_more_questions_than_public_records_are_refused_before_payment(tmp_path, small):
    recipe = recipe_in(tmp_path, "ensemble", part=GATED.replace("60", "2000").replace("40", "1900"))
    with pytest.raises(BadInput, match="fewer public records"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_the_papers_calls_are_recorded_draws(tmp_path, small):
    phase = Phase()
    recipe = recipe_in(tmp_path, "plain")
    made = release(recipe, tmp_path / "out", budget=BUDGET, progress=phase.progress)
    outputs, losses = made["parties"][0]["blocks"][0]["wishes"]
    assert outputs["drawn"] == losses["drawn"] == len(phase.epochs) == phase.epochs[-1][1]
    assert made["headline"]["epsilon"] == "infinite"
    assert made["sections"]["published"]["epsilon"] > 0
    assert "does not hold" in made["sections"]["published"]["status"]
    assert names(made) == ["Base", "auxiliary teacher", "teacher", "ceiling"]
    verify_bundle(tmp_path / "out")


# -- where the budget is short --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "planned", "word"),
    [("trained", 6, "steps"), ("hinted", 60, "answers")],
)
def test_training_stops_at_the_last_paid_answer(tmp_path, small, sources, kind, planned, word):
    recipe = recipe_in(tmp_path, kind, privacy="on_exhausted = 'stop'")
    whole = price(read(recipe)[0]).epsilon
    phase = Phase()
    made = release(
        recipe,
        tmp_path / "out",
        budget=Budget(0.7 * whole, 1e-5),
        progress=phase.progress,
    )
    first = made["parties"][0]["blocks"][0]["wishes"][0]
    assert 1 <= first["reserved"] == first["drawn"] == drawn(tmp_path) < planned
    early = f"The budget ended early: {first['drawn']} of {planned} planned {word}"
    assert any(warning.startswith(early) for warning in made["warnings"])
    assert (
        made["headline"]["epsilon"] <= made["parties"][0]["data_set"]["totals"][0]["budget"] < whole
    )
    if kind == "hinted":
        (source,) = sources
        assert source.asked == (first["drawn"], 30)
        assert (source.left, source.hints_left) == (0, 0)
        # 30 votes a round: without votes for a second round there is none.
        rounds = 1 if first["drawn"] <= 30 else 2
        assert phase.epochs[-1] == (1 + 3 * rounds, 1 + 3 * rounds)
    verify_bundle(tmp_path / "out")
    verify(Ledger.open(tmp_path / "ledger.sqlite"))


@pytest.mark.parametrize("kind", ["trained", "ensemble"])
def test_a_release_that_does_not_fit_draws_nothing(tmp_path, small, capsys, kind):
    recipe = recipe_in(tmp_path, kind)
    with pytest.raises(BudgetExhausted):
        release(recipe, tmp_path / "out", budget=Budget(0.1, 1e-5))
    assert charged(tmp_path) == (0, 0)
    assert run(["release", str(recipe), "-o", str(tmp_path / "out")]) == 3
    assert "does not fit" in capsys.readouterr().err
    assert charged(tmp_path) == (0, 0)
    assert not (tmp_path / "out").exists()


# -- a paper's algorithm on a ledger for release --------------------------------------------


def test_infinity_must_be_accepted(tmp_path, small, capsys):
    recipe = recipe_in(tmp_path, "plain", purpose="release")
    command = ["release", str(recipe), "-o", str(tmp_path / "out")]
    assert run(command) == 2
    assert "--accept-infinite" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"recipe.toml"}
    with pytest.raises(BadInput, match="on a ledger for release"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert {path.name for path in tmp_path.iterdir()} == {"recipe.toml"}
    made = release(recipe, tmp_path / "out", budget=BUDGET, accept_infinite=True)
    assert made["headline"]["epsilon"] == "infinite"
    assert made["purpose"] == "release"
    assert not TOO_OPEN & set(names(made))
    assert made["parties"][0]["data_set"]["totals"][0]["spent"] == "infinite"
    assert run([*command, "--accept-infinite"]) == 0
    said = capsys.readouterr().out
    assert "infinite" in said
    verify_bundle(tmp_path / "out")
    # The ledger stays there: nothing certified fits it any more.
    with pytest.raises(BudgetExhausted):
        release(recipe_in(tmp_path, purpose="release"), tmp_path / "certified")


# -- controls on sensitive test records -----------------------------------------------------


@pytest.mark.parametrize("kind", ["trained", "ensemble", "plain"])
def test_controls_of_a_sensitive_test_are_charged(tmp_path, small, kind):
    recipe = recipe_in(tmp_path, kind, public="false")
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    evaluation = made["parties"][0]["blocks"][0]["wishes"][-1]
    assert evaluation["mechanism"]["mechanism"] == "noisy-counts"
    assert evaluation["reserved"] == evaluation["drawn"] == 1 + len(RIVALS[kind])
    assert names(made) == RIVALS[kind]
    if kind == "plain":
        assert not TOO_OPEN & set(names(made))
    else:
        assert made["headline"]["epsilon"] <= 3
        # What the dry run told is what was paid.
        planned = price(read(recipe)[0])
        charge, count = planned.wishes.pop("evaluation")
        assert count == evaluation["reserved"]
        assert made["headline"]["epsilon"] == pytest.approx(planned.epsilon, abs=1e-6)
        learning = [line for wish, n in planned.wishes.values() for line in wish.lines(n)]
        # The twin that measures its controls for nothing shows in the price.
        cheap, whole = (
            accounting.price([*learning, *charge.lines(n)], RECORD).epsilon(1e-5)
            for n in (1, count)
        )
        assert cheap < whole - 1e-3
    assert made["sections"]["evaluation"]["protected"]
    assert not any("accuracy" in told for told in made["unprotected"])
    assert not any(control["private"] for control in made["sections"]["controls"]["models"])
    verify_bundle(tmp_path / "out")


def test_tables_that_were_drawn_are_not_drawn_again(tmp_path, small, monkeypatch):
    recipe = recipe_in(tmp_path, "ensemble", public="false")
    honest, seen = in_memory.confusion, []

    def cut(*given, **named):
        seen.append(1)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return honest(*given, **named)

    monkeypatch.setattr(in_memory, "confusion", cut)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET)
    made = release(recipe, tmp_path / "out")
    assert made["parties"][0]["blocks"][0]["wishes"][-1]["drawn"] == 3
    assert len(seen) == 4
    assert names(made) == RIVALS["ensemble"]


@pytest.mark.parametrize(
    ("purpose", "public", "shown"),
    [("benchmark", "true", True), ("release", "true", False), ("audit", "false", False)],
)
def test_the_ceiling_is_for_benchmarks_with_a_public_test(tmp_path, small, purpose, public, shown):
    recipe = recipe_in(tmp_path, purpose=purpose, public=public)
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert names(made) == RIVALS["trained"] + ["ceiling"] * shown
    assert any("ceiling" in line for line in made["unprotected"]) == shown
    # Where it may not be shown it is not even trained.
    private = tmp_path / "home" / "private-work"
    kept = private / "trained-in-the-clear"
    assert private.stat().st_mode & 0o777 == 0o700
    assert kept.exists() == shown
    assert not shown or kept.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_the_whole_release_fits_the_recipes_epsilon(tmp_path):
    """With the least noise, found for all its parts: gradient sums and four noisy tables."""
    cost = price(read(recipe_in(tmp_path, public="false"))[0])
    assert 2.97 < cost.epsilon <= 3
    assert [count for _, count in cost.wishes.values()] == [6, 4]


# -- what was sensitive stays so ------------------------------------------------------------


@pytest.mark.parametrize("share", ["1/2", "2/5"], ids=["more", "as before"])
def test_a_record_the_ledger_protects_cannot_become_public(tmp_path, small, share):
    """Else earlier releases would have promised to protect what everyone may see now."""
    recipe = recipe_in(tmp_path, purpose="release")
    release(recipe, tmp_path / "first", budget=BUDGET)
    before = drawn(tmp_path)
    recipe.write_text(recipe.read_text().replace('public = "2/5"', f'public = "{share}"'))
    if share == "2/5":
        release(recipe, tmp_path / "second")
        return
    with pytest.raises(BadInput, match="belongs to a ledger") as caught:
        release(recipe, tmp_path / "second")
    assert "ledger.sqlite" in caught.value.where
    assert not (tmp_path / "second").exists()
    assert drawn(tmp_path) == before


def test_a_record_of_another_ledger_cannot_be_public(tmp_path, small):
    recipe = recipe_in(tmp_path, purpose="release")
    public = load_parts_of(read(recipe)[0], tmp_path).public.ids
    Ledger.create(tmp_path / "other.sqlite", ids=public[:1], purpose="release")
    with pytest.raises(BadInput, match="belongs to a ledger"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert drawn(tmp_path) == 0


def test_a_protected_test_part_cannot_become_public(tmp_path, small):
    recipe = recipe_in(tmp_path, purpose="release", public="false")
    release(recipe, tmp_path / "first", budget=BUDGET)
    recipe.write_text(recipe.read_text().replace("test_is_public = false", "test_is_public = true"))
    with pytest.raises(BadInput, match="belongs to a ledger"):
        release(recipe, tmp_path / "second")
    assert not (tmp_path / "second").exists()
