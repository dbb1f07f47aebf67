"""Query selection against naive references, pick for pick, and twins that pick otherwise."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.special import rel_entr

from stillroom.errors import BadInput
from stillroom.public import selection
from stillroom.public.selection import FLOOR, SELECTORS, select
from stillroom.randomness import integers


def outputs(samples, classes=4, seed=0, spread=3.0):
    logits = spread * np.random.default_rng(seed).standard_normal((samples, classes))
    exact = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exact / exact.sum(axis=1, keepdims=True)


def settled(probabilities):
    floored = np.maximum(probabilities, FLOOR)
    return floored / floored.sum(axis=1, keepdims=True)


def divergence(p, q):
    """KL(p || q), term by term."""
    negative_entropy = cross = 0.0
    for share, own, other in zip(p, np.log(p), np.log(q), strict=True):
        negative_entropy += share * own
        cross += share * other
    return negative_entropy - cross


def naive(probabilities, count, seed, round=0, distance=divergence, over=lambda picked: picked):
    """Algorithm 3 as written: every distance anew for every pick."""
    rows = settled(probabilities)
    picked = [int(integers(seed, "query select", round, size=1, below=len(rows))[0])]
    while len(picked) < count:
        rest = [i for i in range(len(rows)) if i not in picked]
        far = [min(distance(rows[i], rows[j]) for j in over(picked)) for i in rest]
        picked.append(rest[far.index(max(far))])
    return picked


CERTAIN = np.eye(5)[[0, 1, 2, 2, 4, 0, 1, 3, 4, 4]]
"""Rows with zeros, and twins: all distances tie."""

CASES = {
    "three classes": outputs(60, 3, seed=1),
    "ten classes": outputs(80, 10, seed=2),
    "two classes": outputs(40, 2, seed=3),
    "nearly certain": outputs(50, 6, seed=4, spread=40.0),
    "twins": np.tile(outputs(20, 4, seed=5), (3, 1)),
    "certain": CERTAIN,
    "all the same": np.full((12, 3), 1 / 3),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_k_centre_is_the_naive_algorithm_pick_for_pick(name, seed):
    rows = CASES[name]
    count = min(len(rows), 30)
    assert select("k-centre", rows, count, seed=seed).tolist() == naive(rows, count, seed)


def test_every_pick_is_the_farthest_by_another_formula():
    rows = outputs(300, 10, seed=6)
    picked = select("k-centre", rows, 60, seed=1)
    apart = rel_entr(rows[:, None], rows[None]).sum(axis=2)
    for done in range(1, len(picked)):
        nearest = apart[:, picked[:done]].min(axis=1)
        nearest[picked[:done]] = -1
        assert nearest[picked[done]] == pytest.approx(nearest.max(), rel=1e-9)


@pytest.mark.parametrize("more", [-1, 0, 1, selection.BLOCK + 5])
def test_blocks_end_anywhere(more):
    rows = np.pad(outputs(selection.BLOCK + more, 2, seed=12), ((0, 0), (0, 1)))
    rows[-1] = [0.0, 0.0, 1.0]  # nobody else's class: the farthest at once
    logs, picked = np.log(settled(rows)), select("k-centre", rows, 40, seed=1)
    assert picked[1] == len(rows) - 1
    apart = (settled(rows) * logs).sum(axis=1)[:, None] - settled(rows) @ logs[picked].T
    for done in range(1, len(picked)):
        nearest = apart[:, :done].min(axis=1)
        nearest[picked[:done]] = -1
        assert picked[done] == nearest.argmax()


def the_other_way_round(p, q):
    return divergence(q, p)


@pytest.mark.parametrize(
    "broken",
    [
        {"distance": the_other_way_round},
        {"over": lambda picked: picked[-1:]},
        {"over": lambda picked: picked[:1]},
        {"distance": lambda p, q: -divergence(p, q)},
    ],
)
def test_broken_twins_pick_otherwise(broken):
    rows = CASES["ten classes"]
    assert naive(rows, 30, 1, **broken) != naive(rows, 30, 1)


def test_a_kernel_that_forgets_the_minimum_would_be_found(monkeypatch):
    def forgetful(least, start, columns, weights):
        kept = least.copy()
        place = selection._lower_and_find(least, start, columns, weights)
        least[:] = np.where(np.isneginf(kept), kept, np.inf)
        return place

    monkeypatch.setattr(selection, "_kernel", lambda: forgetful)
    rows = CASES["ten classes"]
    assert select("k-centre", rows, 30, seed=1).tolist() != naive(rows, 30, 1)


def test_a_kernel_that_takes_the_last_of_equals_would_be_found(monkeypatch):
    def last(least, start, columns, weights):
        selection._lower_and_find(least, start, columns, weights)
        return len(least) - 1 - int(least[::-1].argmax())

    monkeypatch.setattr(selection, "_kernel", lambda: last)
    assert select("k-centre", CERTAIN, 8, seed=1).tolist() != naive(CERTAIN, 8, 1)


def test_twins_are_exactly_nowhere_apart():
    rows = np.repeat(outputs(30, 10, seed=7), 2, axis=0)
    picked = select("k-centre", rows, 40, seed=1)
    assert len(set((picked[:30] // 2).tolist())) == 30
    rest = [i for i in range(60) if i not in set(picked[:30].tolist())]
    assert picked[30:].tolist() == rest[:10]


def naive_diverse(probabilities, count):
    rows = settled(probabilities)
    features = np.sqrt(rows)
    picked = []
    for done in range(count):
        lacking = (done + 1) * features.mean(axis=0) - features[picked].sum(axis=0)
        score = -(rows * np.log(rows)).sum(axis=1) / np.log(rows.shape[1]) + features @ lacking
        score[picked] = -np.inf
        picked.append(int(score.argmax()))
    return picked


def test_diverse_is_what_it_says():
    rows = outputs(200, 10, seed=8)
    assert select("diverse", rows, 50, seed=1).tolist() == naive_diverse(rows, 50)


def test_diverse_is_more_like_the_whole_than_the_uncertain_alone():
    rows = np.concatenate([outputs(150, 5, seed=9), np.tile([0.3, 0.3, 0.2, 0.1, 0.1], (50, 1))])

    def discrepancy(picked):
        features = np.sqrt(rows)
        return np.linalg.norm(features[picked].mean(axis=0) - features.mean(axis=0))

    entropy = -(rows * np.log(rows)).sum(axis=1)
    picked = select("diverse", rows, 40, seed=1)
    assert discrepancy(picked) < discrepancy(np.argsort(-entropy)[:40]) / 4
    assert entropy[picked].mean() > entropy.mean()


def test_margin_takes_the_undecided_first_and_ties_by_position():
    rows = [[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.9, 0.1, 0.0], [0.35, 0.3, 0.35], [0.45, 0.4, 0.15]]
    assert select("margin", rows, 5, seed=1).tolist() == [1, 3, 4, 0, 2]


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("count", [1, 7, 40])
def test_all_pick_different_samples_and_the_same_again(name, count):
    rows = outputs(40, 5, seed=10)
    picked = select(name, rows, count, seed=1, round=2)
    assert picked.dtype == np.int64
    assert len(set(picked.tolist())) == len(picked) == count
    assert set(picked.tolist()) <= set(range(40))
    assert np.array_equal(picked, select(name, rows, count, seed=1, round=2))
    assert np.array_equal(picked, select(name, np.asfortranarray(rows), count, seed=1, round=2))


@pytest.mark.parametrize("name", ["k-centre", "random"])
def test_another_round_or_seed_starts_elsewhere(name):
    rows = outputs(500, 3)
    first = {int(select(name, rows, 1, seed=1, round=r)[0]) for r in range(5)}
    assert len(first) > 1
    assert len({int(select(name, rows, 1, seed=s)[0]) for s in range(5)}) > 1


def test_single_precision_is_taken():
    rows = outputs(50, 10, seed=11)
    assert len(select("k-centre", rows.astype(np.float32), 10, seed=1)) == 10


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize(
    "rows",
    [
        [[0.5, np.nan], [0.5, 0.5]],
        [[np.inf, 0.5], [0.5, 0.5]],
        [[1.5, -0.5], [0.5, 0.5]],
        [[3.0, -2.0], [0.1, 0.4]],
        [[0.4, 0.4], [0.5, 0.5]],
        [[1.0], [1.0]],
        [0.5, 0.5],
    ],
)
def test_what_is_no_probability_is_refused(name, rows):
    with pytest.raises(BadInput, match="rows of probabilities"):
        select(name, rows, 1, seed=1)


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("count", [0, -1, 4])
def test_a_count_that_does_not_fit_is_refused(name, count):
    with pytest.raises(BadInput, match="cannot be picked"):
        select(name, outputs(3), count, seed=1)


def test_an_unknown_name_is_refused():
    with pytest.raises(BadInput, match="k-centre, random, margin, diverse"):
        select("k-center", outputs(3), 1, seed=1)


def test_only_a_selection_loads_the_compiler_and_none_loads_torch():
    code = (
        "import sys; from stillroom.public.selection import select;"
        "select('margin', [[0.5, 0.5]], 1, seed=1);"
        "sys.exit(bool({'numba', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
