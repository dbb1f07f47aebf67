"""RONA-E: every answer is paid for, the same one is free, and teachers may vanish afterwards."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from stillroom.data import Split, digits
from stillroom.data.public import PublicPictures
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.gate import Budget, Gate, GaussianAnswers, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.gate.ledger import verify
from stillroom.methods.rona.answers import Confident, EnsembleAnswers
from stillroom.methods.rona.bound import public_bound
from stillroom.methods.rona.ensemble import EnsembleSource
from stillroom.private import Ensemble, EnsemblePlan, Hints
from stillroom.private.hints import hint_residual
from stillroom.public.bounds import PublicBound, adaptive_bound
from stillroom.vocabulary import RECORD, Receipt, Sanitised, Unit

EPSILON, DELTA = 20.0, 1e-5
NOISE = Fraction(4)
"""About epsilon 0.9 for the whole block: enough where only the counting matters."""
LITTLE = Fraction(1, 3)
"""About epsilon 17: generous, with few teachers."""
TEACHERS = EnsemblePlan(count=30, key="rona", shard_cap=60)
PLAN = EnsembleAnswers(
    TEACHERS,
    classes=10,
    hints=0,
    hint_width=0,
    votes=60,
    hint_share=Fraction(0),
    temperature=0.1,
    chunk=25,
)
HINTED = replace(PLAN, hints=40, hint_width=10, hint_share=Fraction(1, 4))
GATED = replace(PLAN, confident=Confident(Fraction(9, 10), Fraction(3), most=55))
SERIAL = Engine("serial")


@pytest.fixture(scope="module")
def split():
    return Split.by_fraction(digits(), key="rona", public="1/4", test=0)


@pytest.fixture(scope="module")
def ensemble(split):
    return Ensemble.train(split.sensitive, None, TEACHERS, engine=SERIAL)


@pytest.fixture
def x(split):
    return split.public.x[:60]


def lines(wishes):
    return [line for mechanism, count in wishes for line in mechanism.lines(count)]


def cost(wishes):
    return price(lines(wishes), RECORD).epsilon(DELTA)


def multiplier(plan, epsilon):
    return smallest_sigma(lambda noise: lines(plan.wishes(noise)), epsilon, DELTA, RECORD)


@pytest.fixture
def ledger(split, tmp_path):
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=split.sensitive.ids, purpose="benchmark")
    ledger.set_budget(Budget(EPSILON, DELTA), reason="a test")
    return ledger


def paid(ledger, split, wishes):
    return Gate(ledger, ids=split.sensitive.ids).reserve_all(wishes, recipe="this run")


def again(ledger, split):
    """A continued run: the ledger is opened anew and the block taken up."""
    ledger.close()
    return Gate(Ledger.open(ledger.path), ids=split.sensitive.ids).reopen("this run")


def drawn(ledger, place=0):
    """Rows that the ledger recorded as drawn for a wish."""
    rows = ledger.store.rows("kind = 'draw'")
    return sum(row.body["count"] for row in rows if row.body["wish"] == place)


class NoNoise:
    """A way that adds nothing, to see what is released."""

    def __init__(self, mechanism, count):
        self.mechanism, self.count, self.left, self.block = mechanism, count, count, 1

    def earlier(self):
        return []

    def ask(self, question, answer):
        value = answer().open_bounded()
        self.left -= len(value)
        return Sanitised(value, (Receipt("none", self.block, self.left),))


def noise_free(plan, ensemble):
    ways = [NoNoise(mechanism, count) for mechanism, count in plan.wishes(Fraction(1, 1000))]
    return EnsembleSource(plan, ensemble, ways)


# -- the price ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "epsilon"),
    [
        (HINTED, 1.0),
        pytest.param(PLAN, 8.0, marks=pytest.mark.slow),
        pytest.param(HINTED, 8.0, marks=pytest.mark.slow),
        pytest.param(GATED, 1.0, marks=pytest.mark.slow),
        pytest.param(GATED, 8.0, marks=pytest.mark.slow),
    ],
)
def test_the_price_fits_and_is_used(plan, epsilon):
    noise = multiplier(plan, epsilon)
    assert 0.9 * epsilon <= cost(plan.wishes(noise)) <= epsilon


def test_the_price_is_that_of_the_mathematics():
    """privacy.md 1d: Q_h 200, sigma_h 60, Q_d 1800, sigma_d 60 cost epsilon 4.92."""
    teachers = EnsemblePlan(count=250, key="k", shard_cap=10)
    squares = Fraction(4 * 200, 60**2), Fraction(2 * 1800, 60**2)
    share = squares[0] / sum(squares)
    plan = EnsembleAnswers(teachers, 10, 200, 8, 1800, share)
    noise = Fraction(float(sum(squares)) ** -0.5)
    (votes, _), (hints, _) = plan.wishes(noise)
    assert float(votes.sigma) == pytest.approx(60 * 1024, rel=1e-6)
    assert float(hints.sigma) == pytest.approx(60 * 1024, rel=1e-6)
    assert cost(plan.wishes(noise)) == pytest.approx(4.92, abs=0.005)


@pytest.mark.parametrize("plan", [HINTED, GATED])
def test_half_the_noise_is_caught(plan):
    """Epsilon 1 is what noise of 3.731 sensitivities costs (privacy.md 0.2)."""
    noise = Fraction(374, 100)
    assert 0.95 < cost(plan.wishes(noise)) <= 1
    halves = [(replace(m, sigma=m.sigma / 2), n) for m, n in plan.wishes(noise)]
    assert cost(halves) > 1.5


@pytest.mark.parametrize("noise", [Fraction(1, 3), Fraction(3731, 1000), Fraction(40)])
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(2, 7)])
def test_mu_squared_is_split_exactly_and_noise_only_rounded_up(noise, share):
    plan = replace(HINTED, hint_share=share)
    for_votes, for_hints = plan.squared_mus(noise)
    assert for_hints / for_votes == share / (1 - share)
    assert for_votes + for_hints == 1 / noise**2
    for (mechanism, count), planned in zip(plan.wishes(noise), (for_votes, for_hints), strict=True):
        told = count * mechanism.squared_distance / (mechanism.sigma**2 - 4)
        assert planned * Fraction(99999, 100000) <= told <= planned
    assert [m.width for m, _ in plan.wishes(noise)] == [10, 10]
    assert [m.squared_distance for m, _ in plan.wishes(noise)] == [2 * 1024**2, 4 * 1024**2]


def test_gating_pays_for_every_test_and_the_most_answers():
    noise = Fraction(2)
    ((mechanism, count),) = GATED.wishes(noise)
    assert (count, mechanism.most_answers, mechanism.threshold) == (60, 55, 27)
    assert mechanism.threshold_sigma == 3 * mechanism.sigma
    told = 60 / mechanism.threshold_sigma**2 + 55 * 2 / mechanism.sigma**2
    assert Fraction(999, 1000) / noise**2 <= told <= 1 / noise**2


# -- votes ----------------------------------------------------------------------------------


def test_soft_labels_are_right_and_every_one_is_recorded(split, ensemble, ledger, x):
    ways = paid(ledger, split, PLAN.wishes(LITTLE))
    source = EnsembleSource(PLAN, ensemble, ways)
    positions, labels = source.soft_labels(x[:50])
    assert positions.tolist() == list(range(50))
    assert labels.sum(axis=1) == pytest.approx(np.ones(50))
    right = labels.argmax(axis=1) == split.public.y[:50]
    sure = labels.max(axis=1) > 0.9
    # Twenty simulations gave 44 sure labels or more, of which 92 % or more were right.
    assert sure.sum() > 25
    assert right[sure].mean() > 0.7
    assert (source.asked, source.left, source.exhausted) == ((50, 0), (10, 0), False)
    assert drawn(ledger) == 50
    # The same question again is free, also in a continued run.
    assert np.array_equal(source.soft_labels(x[:50])[1], labels)
    source = EnsembleSource(PLAN, ensemble, again(ledger, split))
    assert (source.asked, source.left) == ((0, 0), (10, 0))
    assert np.array_equal(source.soft_labels(x[:50])[1], labels)
    assert (source.asked, source.left, drawn(ledger)) == ((50, 0), (10, 0), 50)
    verify(ledger)


def ask_all(source, warm, x):
    """Questions that all differ in one thing."""
    source.soft_labels(x[:5])
    source.soft_labels(x[4::-1])
    source.group_labels(x[:5], [0, 0, 1, 1, 1])
    source.group_labels(x[:5], [0, 1, 1, 1, 1])
    source.group_labels(x[:5], [0, 1, 2, 3, 4])
    warm.soft_labels(x[:5])


def test_what_an_answer_depends_on_is_in_the_question(split, ensemble, ledger, x, monkeypatch):
    (way,) = paid(ledger, split, PLAN.wishes(NOISE))
    source = EnsembleSource(PLAN, ensemble, [way])
    warm = EnsembleSource(replace(PLAN, temperature=3.0), ensemble, [way])
    ask_all(source, warm, x)
    assert drawn(ledger) == 5 + 5 + 2 + 2 + 5 + 5
    # The broken twin forgets groups and numbers, and takes one answer for another.
    whole = EnsembleSource._question
    monkeypatch.setattr(
        EnsembleSource, "_question", lambda self, kind, _, x, *rest: whole(self, kind, {}, x)
    )
    ask_all(EnsembleSource(PLAN, ensemble, [way]), warm, x)
    assert drawn(ledger) < 2 * 24


@pytest.mark.parametrize("short", [50, 30, 10])
def test_a_block_with_fewer_answers_stops_cleanly(split, ensemble, ledger, x, short):
    ((mechanism, _),) = PLAN.wishes(NOISE)
    source = EnsembleSource(PLAN, ensemble, paid(ledger, split, [(mechanism, short)]))
    positions, labels = source.soft_labels(x)
    assert positions.tolist() == list(range(short))
    assert (source.asked, source.left, source.exhausted) == ((short, 0), (0, 0), True)
    assert drawn(ledger) == short
    assert np.array_equal(source.soft_labels(x)[1], labels)
    nothing, none = source.soft_labels(split.public.x[60:70])
    assert (len(nothing), none.shape, drawn(ledger)) == (0, (0, 10), short)
    assert source.group_labels(x[:4], [0, 0, 1, 1]).shape == (0, 10)
    # A continued run is cut at the same place and finds all its answers.
    source = EnsembleSource(PLAN, ensemble, again(ledger, split))
    assert np.array_equal(source.soft_labels(x)[1], labels)
    assert (source.exhausted, drawn(ledger)) == (True, short)


def test_a_lost_answer_stays_lost(split, ensemble, ledger, x):
    (way,) = paid(ledger, split, PLAN.wishes(NOISE))
    source = EnsembleSource(PLAN, ensemble, [way])
    first = source.soft_labels(x[:25])[1]
    way._begin(25)  # a crash between the row and the answer
    for left in (10, 0):
        source = EnsembleSource(PLAN, ensemble, again(ledger, split))
        assert source.left == (left, 0)
        positions, labels = source.soft_labels(x)
        assert (len(positions), source.exhausted, source.left) == (35, True, (0, 0))
        assert drawn(ledger) == 60
    assert np.array_equal(labels[:25].argmax(axis=1), first.argmax(axis=1))


def test_a_continued_run_that_asks_otherwise_stops_cleanly(split, ensemble, ledger, x):
    """Answers that it does not ask for again are spent; it goes on with what is left."""
    source = EnsembleSource(PLAN, ensemble, paid(ledger, split, PLAN.wishes(NOISE)))
    source.soft_labels(x[:40])
    for _ in range(2):
        source = EnsembleSource(PLAN, ensemble, again(ledger, split))
        positions, _ = source.soft_labels(x[::-1])
        assert (len(positions), source.exhausted, drawn(ledger)) == (20, True, 60)
        assert len(source.soft_labels(x[:40])[0]) == 40, "they are still there"


def test_groups_cost_one_answer_each(split, ensemble, ledger, x):
    y = split.public.y[:60]
    groups = np.where(np.arange(60) % 7 == 0, -1, y)
    plan = replace(PLAN, chunk=4)
    source = EnsembleSource(plan, ensemble, paid(ledger, split, plan.wishes(LITTLE)))
    labels = source.group_labels(x, groups)
    assert labels.shape == (10, 10)
    assert (source.asked, drawn(ledger)) == ((10, 0), 10)
    assert (labels.argmax(axis=1) == np.arange(10)).mean() >= 0.6
    assert np.array_equal(source.group_labels(x, groups), labels)
    assert drawn(ledger) == 10


def test_group_means_without_noise(ensemble, x):
    groups = np.arange(60) // 6
    source = noise_free(replace(PLAN, chunk=4), ensemble)
    found = source.group_labels(x, groups)
    whole = ensemble.group_means(x, groups, 1024, 0.1).open_bounded()
    assert found.argmax(axis=1).tolist() == whole.argmax(axis=1).tolist()


def test_gating_leaves_some_unanswered_and_keeps_its_cap(split, ensemble, ledger, x):
    source = EnsembleSource(GATED, ensemble, paid(ledger, split, GATED.wishes(LITTLE)))
    positions, labels = source.soft_labels(x)
    # 24 on average, with a deviation of 4.
    assert 3 <= len(positions) < 55
    assert (np.diff(positions) > 0).all()
    assert set(np.unique(labels)) == {0.0, 1.0}
    assert (labels.argmax(axis=1) == split.public.y[positions]).mean() > 0.6
    answered = [row.body["answered"] for row in ledger.store.rows("kind = 'commit'")]
    assert sum(answered) == len(positions)
    assert (drawn(ledger), source.asked, source.exhausted) == (60, (60, 0), False)
    with pytest.raises(BadInput, match="gated"):
        source.group_labels(x, np.zeros(60, dtype=int))


def test_gating_stops_at_its_cap(ensemble, split, ledger, x):
    """A threshold that all reach: the cap is used up, and nothing is drawn beyond."""
    plan = replace(GATED, confident=Confident(Fraction(1, 30), Fraction(3), most=10))
    source = EnsembleSource(plan, ensemble, paid(ledger, split, plan.wishes(LITTLE)))
    positions, _ = source.soft_labels(x)
    assert len(positions) == 10
    assert (source.exhausted, source.left, source.asked) == (True, (0, 0), (25, 0))
    assert drawn(ledger) == 25
    source = EnsembleSource(plan, ensemble, again(ledger, split))
    assert source.left == (0, 0)
    assert np.array_equal(source.soft_labels(x)[0], positions)
    assert (source.exhausted, drawn(ledger)) == (True, 25)


# -- hints ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hinted(split, ensemble):
    """An auxiliary teacher that knows few records, its hints, and the bound from stand-ins."""
    public = split.public
    rows = np.hstack([public.x.reshape(len(public), -1) / 16.0, np.ones((len(public), 1))])
    few = rows[:80]
    targets = np.eye(10)[public.y[:80]]
    aux = np.linalg.solve(few.T @ few + 0.1 * np.eye(few.shape[1]), few.T @ targets)
    values = rows @ aux
    hints = Hints(public.x[80:300], values[80:300])
    x, centre = public.x[300:340], values[300:340]
    vouched = PublicPictures(public.x, "a quarter of the digits")
    bound = public_bound(HINTED, vouched, public.y, x, centre, hints, engine=SERIAL)
    return x, centre, hints, bound


def aligned(teachers, x, hints):
    """Each teacher's hints, mapped to the auxiliary ones without clip or grid."""
    centre = np.zeros((len(x), hints.values.shape[1]))
    grid = 1 << 20
    return [
        hint_residual(hidden, known, hints, centre, 16 * grid, grid) / grid
        for hidden, known in zip(teachers._hidden(x), teachers._hidden(hints.x), strict=True)
    ]


def test_without_noise_the_targets_are_the_mean_of_clipped_differences(ensemble, hinted):
    x, centre, hints, bound = hinted
    found = noise_free(HINTED, ensemble).hint_targets(x, centre, hints, bound)
    clip, expected = float(bound.value), np.zeros(centre.shape)
    for own in aligned(ensemble, x, hints):
        away = own - centre
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        expected += away * np.minimum(1, clip / lengths) / TEACHERS.count
    assert found == pytest.approx(centre + expected, abs=2 / bound.units)


def test_targets_are_nearer_to_the_pooled_teacher(split, ensemble, hinted, ledger):
    x, centre, hints, bound = hinted
    plan = replace(HINTED, hint_share=Fraction(9, 10))
    source = EnsembleSource(plan, ensemble, paid(ledger, split, plan.wishes(LITTLE)))
    found = source.hint_targets(x, centre, hints, bound)
    one = replace(TEACHERS, count=1, shard_cap=2000)
    pooled = Ensemble.train(split.sensitive, None, one, engine=SERIAL)
    (goal,) = aligned(pooled, x, hints)
    assert np.linalg.norm(found - goal) < 0.9 * np.linalg.norm(centre - goal)
    assert (source.asked, source.left, drawn(ledger, 1)) == ((0, 40), (60, 0), 40)
    assert np.array_equal(source.hint_targets(x, centre, hints, bound), found)
    # Another centre, bound or map is another question, and nothing is left to answer it.
    for other in (
        (x, centre + 0.1, hints, bound),
        (x, centre, hints, replace(bound, units=bound.units + 1)),
        (x, centre, replace(hints, ridge=0.5), bound),
        (x, centre, replace(hints, values=hints.values * 2), bound),
    ):
        assert source.hint_targets(*other).shape == (0, 10)
    assert source.exhausted
    assert drawn(ledger, 1) == 40
    # The votes have an allowance of their own.
    assert len(source.soft_labels(x)[0]) == 40


def test_targets_drowned_in_noise_are_the_auxiliary_hints(split, ensemble, hinted, ledger):
    x, centre, hints, bound = hinted
    source = EnsembleSource(HINTED, ensemble, paid(ledger, split, HINTED.wishes(NOISE)))
    found = source.hint_targets(x, centre, hints, bound)
    exact = noise_free(HINTED, ensemble).hint_targets(x, centre, hints, bound)
    (_, (mechanism, _)) = HINTED.wishes(NOISE)
    noise = float(mechanism.sigma) / (bound.units * TEACHERS.count)
    # The noise is 20 deviations long in 400 coordinates; what is left of it is a tenth or so.
    assert np.linalg.norm(found - exact) < 20 * noise / 2


def test_a_centre_that_does_not_fit_is_refused_before_anything_is_drawn(
    split, ensemble, hinted, ledger
):
    x, centre, hints, bound = hinted
    source = EnsembleSource(HINTED, ensemble, paid(ledger, split, HINTED.wishes(NOISE)))
    wide = Hints(hints.x, np.hstack([hints.values, hints.values]))
    for given in ((centre[:30], hints), (centre[:, :9], hints), (centre, wide)):
        with pytest.raises(BadInput, match="the centre is not"):
            source.hint_targets(x, *given, bound)
    assert drawn(ledger, 1) == 0


@pytest.mark.parametrize("groups", [[0, 0, 2, 2], [0, 1], [0.0, 1.0, 1.0, 0.0]])
def test_groups_that_do_not_fit_are_refused_before_anything_is_drawn(ensemble, x, groups):
    source = noise_free(replace(PLAN, chunk=1), ensemble)
    with pytest.raises(BadInput, match="without gaps"):
        source.group_labels(x[:4], groups)
    assert source.asked == (0, 0)


def test_hints_stop_cleanly_too(split, ensemble, hinted, ledger):
    x, centre, hints, bound = hinted
    votes, (mechanism, _) = HINTED.wishes(NOISE)
    source = EnsembleSource(HINTED, ensemble, paid(ledger, split, [votes, (mechanism, 30)]))
    found = source.hint_targets(x, centre, hints, bound)
    assert (found.shape, source.exhausted, drawn(ledger, 1)) == ((30, 10), True, 30)


def test_a_plan_without_hints_gives_none(ensemble, hinted):
    assert noise_free(PLAN, ensemble).hint_targets(*hinted) is None


def test_the_bound_cannot_come_from_sensitive_records(split, ensemble, hinted):
    """The broken twin, in each form it could take: it is refused by its type."""
    x, centre, hints, bound = hinted
    assert isinstance(bound, PublicBound)
    assert (bound.steps, bound.origin) == (1024, "a quarter of the digits")
    rest = (x, centre, hints)
    for sensitive in (split.sensitive, ensemble, split.sensitive.x):
        with pytest.raises(BadInput, match="not known to be public"):
            public_bound(HINTED, sensitive, split.sensitive.y, *rest, engine=SERIAL)
    # Teachers hand out Bounded sums alone, and no length can be read off one.
    released = ensemble.hint_residuals(x, centre, hints, 1, 1024)
    with pytest.raises(BadInput, match="give no bound"):
        adaptive_bound(released, steps=1024, origin="sensitive")
    source = noise_free(HINTED, ensemble)
    for wrong in (bound.value, 0.5, replace(bound, steps=2048)):
        with pytest.raises(BadInput, match="no public bound"):
            source.hint_targets(*rest, wrong)


def test_the_bound_is_the_median_of_the_stand_ins(split, hinted):
    """And it does not change when sensitive records do: it never sees them."""
    x, centre, hints, bound = hinted
    public = split.public
    few = replace(TEACHERS, count=4)
    stand_ins = Ensemble.train(public, None, few, engine=SERIAL)
    norms = [np.linalg.norm(own - centre, axis=1) for own in aligned(stand_ins, x, hints)]
    assert float(bound.value) == pytest.approx(np.median(norms), rel=0.2)


# -- the end --------------------------------------------------------------------------------


def test_teachers_may_be_poisoned_after_the_last_answer(split, hinted, ledger, x):
    hint_x, centre, hints, bound = hinted
    teachers = Ensemble.train(split.sensitive, None, TEACHERS, engine=SERIAL)
    source = EnsembleSource(HINTED, teachers, paid(ledger, split, HINTED.wishes(NOISE)))
    labels = source.soft_labels(x)[1]
    targets = source.hint_targets(hint_x, centre, hints, bound)
    source.close()
    for group in teachers._groups:
        group["weights"][:] = np.nan
    gone = weakref.ref(teachers)
    del teachers, group
    gc.collect()
    assert gone() is None, "the source still holds the teachers"
    assert np.array_equal(source.soft_labels(x)[1], labels)
    assert np.array_equal(source.hint_targets(hint_x, centre, hints, bound), targets)
    assert np.isfinite(labels).all()
    assert np.isfinite(targets).all()


def test_closed_teachers_answer_nothing_new(split, ensemble, ledger, x):
    source = EnsembleSource(PLAN, ensemble, paid(ledger, split, PLAN.wishes(NOISE)))
    source.close()
    with pytest.raises(BadInput, match="gone"):
        source.soft_labels(x[:5])
    assert drawn(ledger) == 0


# -- what does not fit ----------------------------------------------------------------------


def test_ways_and_teachers_must_be_those_of_the_plan(split, ensemble, ledger):
    ways = paid(ledger, split, PLAN.wishes(NOISE))
    coarse = GaussianAnswers(100, 10, 2 * 100**2)
    for plan, given in (
        (HINTED, ways),
        (GATED, ways),
        (replace(PLAN, grid=512), ways),
        (replace(PLAN, classes=9), ways),
        (replace(PLAN, teachers=replace(TEACHERS, count=31)), ways),
        (PLAN, [NoNoise(coarse, 60)]),
    ):
        with pytest.raises(BadInput, match="not those of the plan"):
            EnsembleSource(plan, ensemble, given)


def test_persons_are_protected_where_the_plan_says_so():
    ((mechanism, _),) = replace(PLAN, unit=Unit.PERSON).wishes(Fraction(1))
    assert mechanism.unit is Unit.PERSON
    ((mechanism, _),) = replace(GATED, unit=Unit.PERSON).wishes(Fraction(1))
    assert mechanism.unit is Unit.PERSON


@pytest.mark.parametrize(
    "numbers",
    [
        {"classes": 1},
        {"hints": -1},
        {"hint_width": 0},
        {"votes": 0},
        {"hint_share": 0},
        {"hint_share": 1},
        {"temperature": 0.0},
        {"confident": Confident(Fraction(0), Fraction(1), 5)},
        {"confident": Confident(Fraction(1, 2), Fraction(0), 5)},
        {"confident": Confident(Fraction(1, 2), Fraction(1), 61)},
        {"grid": 0},
        {"hint_steps": 2**25},
        {"chunk": 0},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        replace(HINTED, **numbers)
    assert caught.value.where == next(iter(numbers))
    with pytest.raises(BadInput):
        replace(PLAN, hint_share=Fraction(1, 2))
