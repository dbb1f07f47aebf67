"""Messages: one way to write each, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.parties import ByHand, planned, rows_of
from stillroom.errors import BadInput
from stillroom.federation.messages import (
    KINDS,
    BoxList,
    Confirmations,
    Lists,
    Message,
    Reply,
    Stage,
    decode,
    encode,
)


def every_message():
    plan, identities = planned(3)
    hand = ByHand(plan, identities, rows_of(plan))
    found = []
    while True:
        found += hand.messages.values()
        last = hand.state.stage == Stage.UNMASK
        hand.round()
        found += hand.replies.values()
        found += [decode(reply, Reply).body for reply in hand.replies.values()]
        if last:
            return found


def test_every_message_of_a_session_is_read_back():
    kinds = set()
    for data in every_message():
        message = decode(data, Message)
        kinds.add(type(message))
        assert encode(message) == data
    assert kinds == set(KINDS)


def test_cut_and_lengthened_messages_are_refused():
    for data in every_message():
        for broken in (data + b"\0", *(data[:end] for end in range(len(data)))):
            with pytest.raises(BadInput, match="not the message"):
                decode(broken, Message)


def test_another_kind_is_refused():
    with pytest.raises(BadInput, match="expected here"):
        decode(encode(BoxList(b"", {})), Lists, Confirmations)


@given(st.binary(max_size=80))
@settings(max_examples=300)
def test_other_bytes_are_refused_or_are_a_message(data):
    try:
        message = decode(data, Message)
    except BadInput:
        return
    assert encode(message) == data


@pytest.mark.parametrize("order", [(2, 1), (1, 1)])
def test_positions_come_in_order_and_once(order):
    numbers = b"".join(n.to_bytes(4, "little") for n in (0, 2, *order, 0))
    with pytest.raises(BadInput):
        decode(bytes([KINDS.index(Lists)]) + numbers, Lists)


def test_a_count_larger_than_the_message_is_refused_at_once():
    with pytest.raises(BadInput):
        decode(bytes([KINDS.index(Confirmations)]) + bytes(4) + b"\xff" * 8, Confirmations)
