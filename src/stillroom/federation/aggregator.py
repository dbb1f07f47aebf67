"""The aggregator's side of the secure sum: replies in, the next messages out, at last the sum.

Replies count if they are signed by their sender, for this stage of this session. Whoever sends none
has vanished. The aggregator relays keys and boxes that it cannot read, and opens what survivors let
it open. What it opens is checked against what entities committed to, so it is the exact sum of the
survivors' rows or nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sized
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.federation.checks import lists_digest, peers_digest, reply_is_signed
from stillroom.federation.keys import SIZE, Words, agreed, public_of
from stillroom.federation.masks import commitment, mask_key, pair_words, self_words
from stillroom.federation.messages import (
    Boxes,
    BoxList,
    Confirmation,
    Confirmations,
    KeyList,
    Keys,
    Lists,
    MaskedRows,
    Message,
    Positions,
    Reply,
    Shares,
    Stage,
    Start,
    decode,
    encode,
)
from stillroom.federation.plan import Plan
from stillroom.federation.shamir import combine

M = TypeVar("M", bound=Message)
Outgoing = dict[int, bytes]
"""One message for each entity that is still there, by position."""


@dataclass(frozen=True)
class Opened:
    """An opened sum.

    Args:
        total: the exact sum of the survivors' rows.
        survivors: the names of those whose rows are in it.
    """

    total: npt.NDArray[np.int64]
    survivors: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class AggregatorState:
    """Where a session stands; `start` makes the first one."""

    plan: Plan
    stage: Stage = Stage.ADVERTISE
    keys: Mapping[int, Keys] = field(default_factory=dict)
    shared: Positions = ()
    survivors: Positions = ()
    total: Words | None = None

    def __repr__(self) -> str:
        return f"AggregatorState({self.plan.session!r}, awaits={self.stage.name.lower()})"


def start(plan: Plan) -> tuple[AggregatorState, Outgoing]:
    """Begin a session."""
    message = encode(Start(plan.digest))
    return AggregatorState(plan), dict.fromkeys(range(plan.size), message)


def collect(state: AggregatorState, replies: Iterable[bytes]) -> tuple[AggregatorState, Outgoing]:
    """Take the replies to the last messages, and make the next ones; `open_sum` is the end.

    Args:
        state: the newest one.
        replies: in any order; doubled, damaged, late and foreign ones do not count.

    Raises:
        BadInput: fewer than n - d entities are left.
    """
    match state.stage:
        case Stage.ADVERTISE:
            return relay_keys(state, replies)
        case Stage.SHARE:
            return relay_boxes(state, replies)
        case Stage.MASKED:
            return list_survivors(state, replies)
        case _:
            return relay_confirmations(state, replies)


def relay_keys(
    state: AggregatorState, replies: Iterable[bytes]
) -> tuple[AggregatorState, Outgoing]:
    """Hand everybody the signed session keys of its neighbours."""
    plan, found = state.plan, _accepted(state, replies, Stage.ADVERTISE, Keys)
    _check_count(plan, found)
    messages = {}
    for receiver in found:
        near = [peer for peer in plan.neighbours_of(receiver) if peer in found]
        bodies = {peer: found[peer][0].body for peer in near}
        signatures = {peer: found[peer][0].signature for peer in near}
        messages[receiver] = encode(KeyList(plan.digest, bodies, signatures))
    keys = {sender: content for sender, (_, content) in found.items()}
    return replace(state, stage=Stage.SHARE, keys=keys), messages


def relay_boxes(
    state: AggregatorState, replies: Iterable[bytes]
) -> tuple[AggregatorState, Outgoing]:
    """Hand everybody the boxes that its neighbours made for it."""
    plan, boxes = state.plan, dict[int, Boxes]()
    for sender, (_, content) in _accepted(state, replies, Stage.SHARE, Boxes).items():
        if content.boxes.keys() == _near(plan, sender, state.keys):
            boxes[sender] = content
    _check_count(plan, boxes)
    messages = {}
    for receiver in boxes:
        near = _near(plan, receiver, boxes)
        meant = {peer: boxes[peer].boxes[receiver] for peer in near}
        messages[receiver] = encode(BoxList(plan.digest, meant))
    return replace(state, stage=Stage.MASKED, shared=tuple(boxes)), messages


def list_survivors(
    state: AggregatorState, replies: Iterable[bytes]
) -> tuple[AggregatorState, Outgoing]:
    """Add up the masked rows, and tell everybody whose they are."""
    plan, survivors = state.plan, list[int]()
    total = np.zeros(plan.cells, f"<u{plan.bits // 8}")
    for sender, (_, content) in _accepted(state, replies, Stage.MASKED, MaskedRows).items():
        # Rows under other masks than everybody thinks would leave masks in the sum.
        right = content.peers == peers_digest(_near(plan, sender, state.shared))
        if right and sender in state.shared and len(content.words) == total.nbytes:
            total += np.frombuffer(content.words, total.dtype)
            survivors.append(sender)
    _check_count(plan, survivors)
    state = replace(state, stage=Stage.CONFIRM, survivors=tuple(survivors), total=total)
    return state, dict.fromkeys(survivors, encode(_lists(state)))


def relay_confirmations(
    state: AggregatorState, replies: Iterable[bytes]
) -> tuple[AggregatorState, Outgoing]:
    """Show everybody that n - d survivors signed the same lists."""
    plan, right = state.plan, lists_digest(_lists(state))
    signatures = {
        sender: reply.signature
        for sender, (reply, content) in _accepted(
            state, replies, Stage.CONFIRM, Confirmation
        ).items()
        if sender in state.survivors and content.lists == right
    }
    _check_count(plan, signatures)
    enough = dict(list(signatures.items())[: plan.floor])
    message = encode(Confirmations(plan.digest, enough))
    return replace(state, stage=Stage.UNMASK), dict.fromkeys(signatures, message)


def open_sum(state: AggregatorState, replies: Iterable[bytes]) -> Opened:
    """Recover the masks that do not cancel, and take them off.

    Guarantee: the exact sum of the survivors' rows.

    Raises:
        BadInput: some secret has fewer shares than the threshold, or shares do not fit together.
    """
    plan, found = state.plan, _accepted(state, replies, Stage.UNMASK, Shares)
    if state.total is None:
        raise _refusal(plan, "there is nothing to open yet")
    total, vanished = state.total.copy(), set(state.shared).difference(state.survivors)
    for owner in state.survivors:
        secret = _opened(plan, {h: s.self_masks.get(owner) for h, (_, s) in found.items()})
        if commitment(plan, secret) != state.keys[owner].commitment:
            raise _refusal(plan, "the shares of a self mask do not fit together")
        total -= self_words(plan, secret)
    for owner in vanished:
        secret = _opened(plan, {h: s.mask_keys.get(owner) for h, (_, s) in found.items()})
        private = mask_key(plan, secret)
        if public_of(private) != state.keys[owner].mask:
            raise _refusal(plan, "the shares of a mask key do not fit together")
        for peer in _near(plan, owner, state.survivors):
            mask = pair_words(plan, agreed(private, state.keys[peer].mask) or b"", owner, peer)
            total += mask if owner < peer else -mask
    return Opened(_signed(plan, total, len(state.survivors)), _names(plan, state.survivors))


def _opened(plan: Plan, shares: Mapping[int, bytes | None]) -> int:
    given = {
        holder: int.from_bytes(part, "little")
        for holder, part in shares.items()
        if part is not None and len(part) == SIZE
    }
    if len(given) < plan.threshold:
        raise _refusal(plan, "too few shares of a secret are left")
    return combine(dict(sorted(given.items())[: plan.threshold]))


def _signed(plan: Plan, total: Words, rows: int) -> npt.NDArray[np.int64]:
    sums = total.view(f"<i{plan.bits // 8}").astype(np.int64).reshape(plan.shape)
    if np.abs(sums).max() > rows * plan.largest:
        raise _refusal(plan, "the sum is larger than its rows can make it")
    return sums


def _accepted(
    state: AggregatorState, replies: Iterable[bytes], stage: Stage, kind: type[M]
) -> dict[int, tuple[Reply, M]]:
    """The first good reply of each sender, in the order of the plan."""
    if state.stage != stage:
        raise _refusal(state.plan, f"{stage.name.lower()} is not what this session awaits")
    found = dict[int, tuple[Reply, M]]()
    for data in replies:
        try:
            reply = decode(data, Reply)
            if reply.stage != stage or reply.sender in found:
                continue
            content = decode(reply.body, kind)
        except BadInput:
            continue
        if reply_is_signed(state.plan, stage, reply.sender, reply.body, reply.signature):
            found[reply.sender] = reply, content
    return dict(sorted(found.items()))


def _near(plan: Plan, position: int, present: Collection[int]) -> set[int]:
    return {peer for peer in plan.neighbours_of(position) if peer in present}


def _lists(state: AggregatorState) -> Lists:
    return Lists(state.plan.digest, state.shared, state.survivors)


def _names(plan: Plan, positions: Iterable[int]) -> tuple[str, ...]:
    return tuple(plan.names[position] for position in positions)


def _check_count(plan: Plan, present: Sized) -> None:
    if len(present) < plan.floor:
        raise _refusal(
            plan, f"{len(present)} entities are left, and the plan needs {plan.floor} of them"
        )


def _refusal(plan: Plan, what: str) -> BadInput:
    return plan.refusal(
        what,
        "a sum of other rows, or of fewer than n - d, is never opened",
        "plan a new session; what entities spent on this one stays spent",
    )
