"""What an entity does not answer, and what an aggregator does not count."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation.parties import ByHand, planned, rows_of, total_of
from federation.schedules import Fault, Schedule
from stillroom.errors import BadInput
from stillroom.federation import Leg, Stage, collect, enter, open_sum, run
from stillroom.federation.messages import (
    BoxList,
    Confirmations,
    KeyList,
    Lists,
    Reply,
    Start,
    decode,
    encode,
)

STAGES = list(Stage)[:-1]


@pytest.fixture
def hand():
    plan, identities = planned(6, 1, 1)
    return ByHand(plan, identities, rows_of(plan))


@pytest.mark.parametrize("stage", STAGES)
def test_a_message_is_answered_once(hand, stage):
    message = hand.until(stage).messages[3]
    hand.ask(3, message)
    before = hand.entities[3]
    with pytest.raises(BadInput, match="answered before"):
        hand.ask(3, message)
    assert hand.entities[3] is before


@pytest.mark.parametrize("stage", STAGES)
def test_no_message_comes_before_its_turn(hand, stage):
    late = hand.until(stage).messages[3]
    for other in Stage:
        if other != stage:
            hand.entities[3] = replace(hand.entities[3], stage=other)
            with pytest.raises(BadInput, match="not due yet"):
                hand.ask(3, late)


@pytest.mark.parametrize("stage", STAGES)
def test_messages_of_another_session_are_refused(stage):
    plan, identities = planned(4)
    other = replace(plan, session="another")
    theirs = ByHand(other, identities, rows_of(plan)).until(stage)
    ours = ByHand(plan, identities, rows_of(plan)).until(stage)
    with pytest.raises(BadInput, match="another session"):
        ours.ask(2, theirs.messages[2])


@pytest.mark.parametrize(
    "change", [{"dropouts": 0}, {"colluders": 1}, {"largest": 7}, {"subject": "x"}, {"bits": 64}]
)
def test_another_plan_is_another_session(change):
    plan, identities = planned(4)
    ours = ByHand(plan, identities, rows_of(plan))
    with pytest.raises(BadInput, match="another plan"):
        ours.ask(0, Start(replace(plan, **change).digest))


@pytest.mark.parametrize("stage", STAGES)
def test_replies_to_another_session_do_not_count(stage):
    plan, identities = planned(4)
    other = replace(plan, session="another")
    theirs = ByHand(other, identities, rows_of(plan)).until(stage)
    ours = ByHand(plan, identities, rows_of(plan)).until(stage)
    foreign = [theirs.ask(p, data) for p, data in theirs.messages.items()]
    with pytest.raises(BadInput, match=r"are left|too few shares"):
        (open_sum if stage == Stage.UNMASK else collect)(ours.state, foreign)


def test_keys_need_the_signature_of_their_owner(hand):
    plan = hand.plan
    told = decode(hand.until(Stage.SHARE).messages[0], KeyList)
    turned = {**told.bodies, 1: told.bodies[2], 2: told.bodies[1]}
    for bodies, signatures in (
        (turned, told.signatures),
        (told.bodies, {**told.signatures, 1: bytes(64)}),
        (told.bodies, {**told.signatures, 1: b""}),
        (told.bodies, {p: s for p, s in told.signatures.items() if p != 1}),
        (turned, {**told.signatures, 1: told.signatures[2], 2: told.signatures[1]}),
    ):
        with pytest.raises(BadInput, match="not signed"):
            hand.ask(0, KeyList(plan.digest, bodies, signatures))


def test_a_reply_counts_only_with_its_senders_signature(hand):
    hand.until(Stage.MASKED)
    replies = [decode(hand.ask(p, data), Reply) for p, data in hand.messages.items()]
    stranger = Ed25519PrivateKey.generate()
    forged = replace(replies[0], signature=stranger.sign(replies[0].body))
    moved = replace(replies[1], sender=0)
    nobody = replace(replies[1], sender=99)
    state, messages = collect(
        hand.state, [b"", b"x", *map(encode, (forged, moved, nobody, *replies[1:]))]
    )
    assert sorted(messages) == [1, 2, 3, 4, 5]
    assert state.survivors == (1, 2, 3, 4, 5)


def test_foreign_and_too_few_peers_are_refused():
    plan, identities = planned(9, 1, 1, neighbours=4)
    hand = ByHand(plan, identities, rows_of(plan)).until(Stage.SHARE)
    told = decode(hand.messages[0], KeyList)
    far = next(p for p in range(1, 9) if p not in plan.neighbours_of(0))
    keys = {p: decode(hand.replies[p], Reply) for p in (*told.bodies, far)}
    wide = KeyList(
        plan.digest,
        {p: reply.body for p, reply in keys.items()},
        {p: reply.signature for p, reply in keys.items()},
    )
    with pytest.raises(BadInput, match="no neighbours"):
        hand.ask(0, wide)
    one = dict(list(told.bodies.items())[:1])
    with pytest.raises(BadInput, match="too few neighbours"):
        hand.ask(0, KeyList(plan.digest, one, told.signatures))
    hand.until(Stage.MASKED)
    boxes = decode(hand.messages[0], BoxList).boxes
    with pytest.raises(BadInput, match="no neighbours"):
        hand.ask(0, BoxList(plan.digest, {**boxes, far: bytes(92)}))
    with pytest.raises(BadInput, match="too few neighbours"):
        hand.ask(0, BoxList(plan.digest, {}))


def test_boxes_open_only_where_they_belong(hand):
    told = decode(hand.until(Stage.MASKED).messages[0], BoxList).boxes
    other = decode(hand.messages[1], BoxList).boxes
    for boxes in (
        {**told, 2: told[3], 3: told[2]},
        {**told, 2: other[2]},
        {**told, 2: told[2][:-1] + bytes([told[2][-1] ^ 1])},
        {**told, 2: b""},
    ):
        with pytest.raises(BadInput, match="does not open"):
            hand.ask(0, BoxList(hand.plan.digest, boxes))


def test_lists_with_too_few_or_strange_survivors_are_not_signed(hand):
    hand.until(Stage.CONFIRM)
    plan, everybody = hand.plan, tuple(range(6))
    for shared, survivors, why in (
        (everybody, (0, 1, 2, 3), "too few survivors"),
        (everybody, (1, 2, 3, 4, 5), "contradict"),
        ((0, 1, 2, 3, 4), everybody, "contradict"),
        ((*everybody, 9), (*everybody, 9), "contradict"),
        ((*everybody, 9), everybody, "contradict"),
    ):
        with pytest.raises(BadInput, match=why):
            hand.ask(0, Lists(plan.digest, shared, survivors))


def test_shares_need_n_minus_d_signatures_of_survivors(hand):
    hand.until(Stage.CONFIRM)
    hand.round()
    told = decode(hand.messages[0], Confirmations).signatures
    assert len(told) == hand.plan.floor
    keys = list(told)
    for signatures in (
        {p: told[p] for p in keys[1:]},
        {**told, keys[0]: told[keys[1]]},
        {**told, keys[0]: bytes(64)},
        {**told, 99: told[keys[0]]},
        {},
    ):
        with pytest.raises(BadInput, match="fewer than n - d survivors signed"):
            hand.ask(0, Confirmations(hand.plan.digest, signatures))
    hand.ask(0, Confirmations(hand.plan.digest, told))


def test_an_entity_enters_with_the_roster_it_was_enrolled_with():
    plan, identities = planned(3)
    key = identities["e00"]
    stranger = Ed25519PrivateKey.generate()
    with pytest.raises(BadInput, match="not enrolled"):
        enter(plan, "e00", key, {**plan.roster, "e02": bytes(32)})
    with pytest.raises(BadInput, match="not enrolled"):
        enter(plan, "e00", key, {"e00": plan.roster["e00"]})
    with pytest.raises(BadInput, match="not in the plan"):
        enter(plan, "e09", key, plan.roster)
    with pytest.raises(BadInput, match="not in the plan"):
        enter(plan, "e00", stranger, plan.roster)


def test_a_second_unmask_is_refused_and_changes_nothing():
    plan, identities = planned(4)
    rows = rows_of(plan)
    twice = [Fault(Leg(Stage.UNMASK, p, False), "double") for p in range(4)]
    session = run(plan, identities, rows, Schedule(twice))
    assert len(session.refused) == 4
    assert all("answered before" in str(error) for _, error in session.refused)
    np.testing.assert_array_equal(session.opened.total, total_of(rows, plan.names))


def test_nothing_that_is_shown_holds_a_secret(hand):
    for stage in STAGES:
        hand.until(stage)
        texts = [repr(hand.entities[0]), repr(hand.state)]
        texts += [repr(hand.entities[0].secrets), repr(list(hand.entities[0].peers.values()))]
        texts += [repr(decode(reply, Reply)) for reply in hand.replies.values()]
        assert not any(re.search(r"\bb['\"]", text) or len(text) > 200 for text in texts)
    assert repr(hand.entities[0]) == "EntityState('e00', next=unmask, <hidden>)"
    hand.round()
    assert not hand.entities[0].shares
    assert hand.entities[0].secrets is None
