"""What the aggregator sees: uniform words, and the same law for all rows with the same sum.

Twins that mask badly fail the same checks. False alarms of every check: at most 1e-6, in both
directions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from federation.parties import ByHand, planned
from stillroom.federation import Stage, aggregator, entity, new_session
from stillroom.federation.keys import agreed, derived, words
from stillroom.federation.masks import mask_key, pair_words, self_words
from stillroom.federation.messages import MaskedRows, Shares
from stillroom.federation.shamir import combine

ALARM = 1e-6
GONE = 3
"""The entity that is said to have vanished, although its masked rows arrived."""


def byte_counts(values):
    """How often each byte occurs in words."""
    octets = np.ascontiguousarray(values).ravel().view(np.uint8)
    return np.bincount(octets, minlength=256).astype(float)


def is_uniform(values, alarm=ALARM):
    """Chi-square on the bytes of words; too even is as suspicious as too uneven."""
    counts = byte_counts(values)
    statistic = np.sum((counts - counts.mean()) ** 2) / counts.mean()
    return chi2.ppf(alarm / 2, 255) < statistic < chi2.isf(alarm / 2, 255)


def have_one_law(first, second, alarm=ALARM):
    """Two-sample chi-square on the bytes of equally many words."""
    one, two = byte_counts(first), byte_counts(second)
    both = one + two
    statistic = np.sum((one - two)[both > 0] ** 2 / both[both > 0])
    return chi2.ppf(alarm / 2, 255) < statistic < chi2.isf(alarm / 2, 255)


def masked_words(bits, value):
    plan, identities = planned(4, shape=(500, 40), bits=bits)
    rows = dict.fromkeys(plan.names, np.full(plan.shape, value))
    hand = ByHand(plan, identities, rows).until(Stage.CONFIRM)
    return np.frombuffer(hand.bodies(MaskedRows)[0].words, f"<u{bits // 8}")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("value", [0, 1, -1, 1000])
def test_masked_rows_of_one_entity_are_uniform(bits, value):
    assert is_uniform(masked_words(bits, value), ALARM / 8)


def test_rows_without_masks_are_not_uniform(monkeypatch):
    for name in ("self_words", "pair_words"):
        monkeypatch.setattr(entity, name, lambda plan, *given: np.zeros(plan.cells, "<u4"))
    assert not is_uniform(masked_words(32, 0))


def view(plan, identities, rows):
    """Everybody's words, less every mask that the aggregator can work out after the opening."""
    plan = replace(plan, session=new_session())
    hand = ByHand(plan, identities, rows).until(Stage.MASKED)
    late = hand.ask(GONE, hand.messages[GONE])
    hand.round(without={GONE})
    hand.replies[GONE] = late
    found = {
        p: np.frombuffer(body.words, "<u4").copy() for p, body in hand.bodies(MaskedRows).items()
    }
    hand.until(Stage.UNMASK)
    opened = hand.round()
    shares = hand.bodies(Shares)

    def secret(half, owner):
        given = {h: int.from_bytes(getattr(s, half)[owner], "little") for h, s in shares.items()}
        return combine(dict(list(given.items())[: plan.threshold]))

    private = mask_key(plan, secret("mask_keys", GONE))
    for p in range(plan.size):
        if p == GONE:
            continue
        found[p] -= entity.self_words(plan, secret("self_masks", p))
        mask = entity.pair_words(plan, agreed(private, hand.state.keys[p].mask), p, GONE)
        found[p] -= mask if p < GONE else -mask
        found[GONE] += mask if p < GONE else -mask
    return found, opened.total


def worlds(plan):
    """Two worlds with the same sum of survivors; the one that vanished differs as well."""
    shape = plan.shape
    five, none = np.full(shape, 5), np.zeros(shape, np.int64)
    one = dict(zip(plan.names, (five, none, none, none), strict=True))
    two = dict(zip(plan.names, (none, five, none, five), strict=True))
    return one, two


def features(views):
    """Words of each entity, sums and differences of two, and changes from session to session."""
    stacked = {p: np.stack([found[p] for found, _ in views]) for p in range(4)}
    told = {f"{p}": stacked[p] for p in range(4)}
    told |= {f"{p} + {q}": stacked[p] + stacked[q] for p in range(4) for q in range(p)}
    told |= {f"{p} - {q}": stacked[p] - stacked[q] for p in range(4) for q in range(p)}
    told |= {f"later {p}": stacked[p][1::2] - stacked[p][::2] for p in range(4)}
    return told


def differing(sessions=24):
    """The features of the aggregator's view in which the two worlds differ."""
    plan, identities = planned(4, shape=(8, 40))
    one, two = worlds(plan)
    # In the second world rows change from session to session, under the same sum.
    turned = dict(zip(plan.names, (two[n] for n in ("e01", "e00", "e02", "e03")), strict=True))
    first = [view(plan, identities, one) for _ in range(sessions)]
    second = [view(plan, identities, (two, turned)[s % 2]) for s in range(sessions)]
    assert all(np.all(total == 5) for _, total in first + second)
    one_law, other_law = features(first), features(second)
    alarm = ALARM / len(one_law)
    return {name for name in one_law if not have_one_law(one_law[name], other_law[name], alarm)}


def test_views_of_two_private_inputs_with_one_sum_have_one_law():
    assert differing() == set()


def without_self_masks(plan, secret):
    return np.zeros(plan.cells, "<u4")


def same_self_masks(plan, secret):
    return words(derived(bytes(32), "self mask", bytes(32)), plan.cells, plan.bits)


def same_pair_masks(plan, secret, one, other):
    first, second = sorted((one, other))
    key = derived(bytes(32), "pair mask", bytes(32), first, second)
    return words(key, plan.cells, plan.bits)


def test_rows_without_self_masks_are_found(monkeypatch):
    for side in (entity, aggregator):
        monkeypatch.setattr(side, "self_words", without_self_masks)
    assert "3" in differing()


def test_masks_that_serve_two_sessions_are_found(monkeypatch):
    for side in (entity, aggregator):
        monkeypatch.setattr(side, "self_words", same_self_masks)
        monkeypatch.setattr(side, "pair_words", same_pair_masks)
    assert {"later 0", "later 1"} <= differing()


def test_masks_differ_from_session_to_session_and_pair_to_pair():
    plan, _ = planned(4)
    other = replace(plan, session="another")
    found = {
        *(self_words(p, 5).tobytes() for p in (plan, other)),
        *(pair_words(p, bytes(32), 0, q).tobytes() for p in (plan, other) for q in (1, 2)),
        pair_words(plan, bytes([1] * 32), 0, 1).tobytes(),
    }
    assert len(found) == 7
    np.testing.assert_array_equal(
        pair_words(plan, bytes(32), 2, 1), pair_words(plan, bytes(32), 1, 2)
    )
