"""An aggregator that does more than relay: each attack works on a twin without one of the rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.parties import ByHand, planned, rows_of, total_of
from stillroom.errors import BadInput
from stillroom.federation import Stage, entity, open_sum
from stillroom.federation.checks import bound_to
from stillroom.federation.keys import SIZE, agreed, boxed, derived, public_of, unboxed
from stillroom.federation.masks import pair_words, self_words
from stillroom.federation.messages import (
    Boxes,
    BoxList,
    Confirmations,
    KeyList,
    Keys,
    Lists,
    MaskedRows,
    Reply,
    decode,
    encode,
)
from stillroom.federation.shamir import combine


def words_of(plan, body):
    return np.frombuffer(body.words, f"<u{plan.bits // 8}")


def row_read_in_the_middle(hand, victim):
    """Give the victim keys of the aggregator's own in the place of everybody's."""
    plan = hand.plan
    hand.until(Stage.SHARE)
    others = plan.neighbours_of(victim)
    own = {peer: (X25519PrivateKey.generate(), X25519PrivateKey.generate()) for peer in others}
    true = decode(decode(hand.replies[victim], Reply).body, Keys)
    bodies = {p: encode(Keys(public_of(m), public_of(c), bytes(32))) for p, (m, c) in own.items()}
    fakes = KeyList(plan.digest, bodies, dict.fromkeys(others, bytes(64)))
    boxes = decode(decode(hand.ask(victim, fakes), Reply).body, Boxes).boxes
    channel = {
        peer: derived(
            agreed(own[peer][1], true.channel), "channel", plan.digest, *sorted((peer, victim))
        )
        for peer in others
    }
    parts = {p: unboxed(channel[p], boxes[p], bound_to(plan, victim, p)) for p in others}
    shares = {p: int.from_bytes(part[:SIZE], "little") for p, part in parts.items()}
    secret = combine(dict(list(shares.items())[: plan.threshold]))
    false = {p: boxed(channel[p], bytes(64), bound_to(plan, p, victim)) for p in others}
    reply = hand.ask(victim, BoxList(plan.digest, false))
    total = words_of(plan, decode(decode(reply, Reply).body, MaskedRows)).copy()
    total -= self_words(plan, secret)
    for peer in others:
        mask = pair_words(plan, agreed(own[peer][0], true.mask), victim, peer)
        total -= mask if victim < peer else -mask
    return total.view("<i4").reshape(plan.shape)


def test_keys_of_the_aggregators_own_are_refused(monkeypatch):
    plan, identities = planned(5)
    rows = rows_of(plan)
    with pytest.raises(BadInput, match="not signed"):
        row_read_in_the_middle(ByHand(plan, identities, rows), 2)
    monkeypatch.setattr(entity, "keys_are_signed", lambda *given: True)
    read = row_read_in_the_middle(ByHand(plan, identities, rows), 2)
    np.testing.assert_array_equal(read, rows["e02"])


def row_read_as_a_difference(hand, victim):
    """Have the sum opened with the victim and without it."""
    plan = hand.plan
    hand.until(Stage.CONFIRM)
    found = hand.bodies(MaskedRows)
    everybody = hand.state.survivors
    sums = []
    for survivors in (everybody, tuple(p for p in everybody if p != victim)):
        lists = Lists(plan.digest, hand.state.shared, survivors)
        signatures = {p: decode(hand.ask(p, lists), Reply).signature for p in survivors}
        # One that does not forget answers to the list that it confirmed last.
        message = Confirmations(plan.digest, dict(list(signatures.items())[: plan.floor]))
        if hand.forgetful:
            for p in survivors:
                hand.entities[p] = replace(hand.entities[p], stage=Stage.UNMASK, lists=lists)
        replies = [hand.ask(p, message) for p in survivors]
        if hand.forgetful:
            for p in survivors:
                hand.entities[p] = replace(hand.entities[p], stage=Stage.CONFIRM, lists=None)
        total = sum((words_of(plan, found[p]) for p in survivors), np.zeros(plan.cells, "<u4"))
        state = replace(hand.state, stage=Stage.UNMASK, survivors=survivors, total=total)
        sums.append(open_sum(state, replies).total)
    return sums[0] - sums[1]


def test_a_second_opening_is_refused():
    plan, identities = planned(5)
    rows = rows_of(plan)
    with pytest.raises(BadInput, match="answered before"):
        row_read_as_a_difference(ByHand(plan, identities, rows), 2)
    read = row_read_as_a_difference(ByHand(plan, identities, rows, forgetful=True), 2)
    np.testing.assert_array_equal(read, rows["e02"])


def sum_of_too_few(hand, few):
    """Tell everybody that others vanished, never more than d of them, until keys of more open."""
    plan = hand.plan
    hand.until(Stage.CONFIRM)
    found = hand.bodies(MaskedRows)
    out = [p for p in range(plan.size) if p not in few]
    replies = []
    for p in range(plan.size):
        gone = [q for q in out if q != p]
        if p in few and len(gone) > plan.dropouts:
            gone.pop(p % len(gone))
        assert len(gone) <= plan.dropouts
        survivors = tuple(q for q in range(plan.size) if q not in gone)
        signature = decode(
            hand.ask(p, Lists(plan.digest, hand.state.shared, survivors)), Reply
        ).signature
        replies.append(hand.ask(p, Confirmations(plan.digest, {p: signature})))
    total = sum((words_of(plan, found[p]) for p in few), np.zeros(plan.cells, "<u4"))
    return open_sum(
        replace(hand.state, stage=Stage.UNMASK, survivors=tuple(few), total=total), replies
    ).total


def test_different_lists_for_different_entities_are_refused(monkeypatch):
    """n = 10 > 2 d + c with d = 3, c = 0: without the signatures a sum of 6 < n - d opens."""
    plan, identities = planned(10, 3)
    rows = rows_of(plan)
    few = range(4, 10)
    with pytest.raises(BadInput, match="fewer than n - d survivors signed"):
        sum_of_too_few(ByHand(plan, identities, rows), few)
    monkeypatch.setattr(entity, "is_agreed", lambda *given: True)
    opened = sum_of_too_few(ByHand(plan, identities, rows), few)
    np.testing.assert_array_equal(opened, total_of(rows, [plan.names[p] for p in few]))
    assert len(few) < plan.floor


def group_opened_on_its_own(hand, group):
    """Tell a group that nobody outside it shared secrets, and the others the truth."""
    plan = hand.plan
    hand.until(Stage.MASKED)
    boxes = {p: decode(data, BoxList).boxes for p, data in hand.messages.items()}
    found = {}
    for p in range(plan.size):
        near = {q: box for q, box in boxes[p].items() if p not in group or q in group}
        reply = hand.ask(p, BoxList(plan.digest, near))
        found[p] = decode(decode(reply, Reply).body, MaskedRows)
    lists = Lists(plan.digest, hand.state.shared, hand.state.shared)
    outside = [p for p in range(plan.size) if p not in group]
    signatures = {p: decode(hand.ask(p, lists), Reply).signature for p in outside}
    replies = [hand.ask(p, Confirmations(plan.digest, signatures)) for p in outside]
    total = sum((words_of(plan, found[p]) for p in group), np.zeros(plan.cells, "<u4"))
    state = replace(
        hand.state,
        stage=Stage.UNMASK,
        shared=tuple(group),
        survivors=tuple(group),
        total=total,
    )
    return open_sum(state, replies).total


def around(plan, position, width):
    """An arc of the ring that begins with an entity."""
    ring = plan._ring
    place = ring.index(position)
    return [ring[(place + step) % plan.size] for step in range(width)]


def test_no_neighbourhood_can_be_cut_off(monkeypatch):
    """With a threshold of half the neighbours, d entities could be opened on their own."""
    plan, identities = planned(24, 5, neighbours=10)
    assert plan.threshold == 6
    rows, group = rows_of(plan), around(plan, 0, 5)
    with pytest.raises(BadInput, match="too few neighbours are left"):
        group_opened_on_its_own(ByHand(plan, identities, rows), group)
    monkeypatch.setattr("stillroom.federation.plan.neighbourhood_threshold", lambda k, c: k // 2)
    opened = group_opened_on_its_own(ByHand(plan, identities, rows), group)
    np.testing.assert_array_equal(opened, total_of(rows, [plan.names[p] for p in group]))


def test_lists_that_contradict_the_masks_are_not_signed():
    plan, identities = planned(6, 2)
    hand = ByHand(plan, identities, rows_of(plan)).until(Stage.MASKED)
    boxes = decode(hand.messages[0], BoxList).boxes
    hand.ask(0, BoxList(plan.digest, {p: box for p, box in boxes.items() if p != 5}))
    everybody = tuple(range(6))
    with pytest.raises(BadInput, match="contradict"):
        hand.ask(0, Lists(plan.digest, everybody, everybody))


def test_shares_that_do_not_fit_open_nothing():
    """Entities that lie about shares, with good signatures, spoil the session and not the sum."""
    plan, identities = planned(5, 1)
    for half in ("self_masks", "mask_keys"):
        hand = ByHand(plan, identities, rows_of(plan)).until(Stage.MASKED)
        hand.round(without={4})
        hand.until(Stage.UNMASK)
        liar = hand.entities[0]
        shares = {p: bytes(64) for p in liar.shares}
        hand.entities[0] = replace(
            liar,
            shares={
                p: (shares[p] if (p == 4) == (half == "mask_keys") else part)
                for p, part in liar.shares.items()
            },
        )
        with pytest.raises(BadInput, match="do not fit together"):
            hand.round()
