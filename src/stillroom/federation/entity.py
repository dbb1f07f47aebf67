"""The entity's side of the secure sum: `(state, message) -> (state, reply)`, five times.

advertise: session keys, signed. share: shares of two secrets, in boxes. masked: the rows, masked.
confirm: a signature on who shared and who survived. unmask: one share per neighbour. After
Bonawitz and others (CCS 2017) and Bell and others (CCS 2020). The malicious variant's consistency
round is part of every session: without it, an aggregator that tells different lists to different
entities opens sums of fewer than n - d rows, even where n > 2 d + c.

The functions keep nothing. A caller keeps the newest state only and never answers from an older
one: what holds once per session holds once per state.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from stillroom.errors import BadInput
from stillroom.federation.checks import (
    bound_to,
    is_agreed,
    keys_are_signed,
    lists_digest,
    peers_digest,
)
from stillroom.federation.keys import SIZE, agreed, boxed, derived, public_of, unboxed
from stillroom.federation.masks import (
    as_bytes,
    commitment,
    mask_key,
    pair_words,
    row_words,
    self_words,
)
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
    Reply,
    Shares,
    Stage,
    Start,
    decode,
    encode,
    signed_text,
)
from stillroom.federation.shamir import element, split
from stillroom.federation.states import EntityState, Peer, Secrets

Rows = npt.NDArray[np.int64]


def respond(state: EntityState, data: bytes, rows: Rows) -> tuple[EntityState, bytes]:
    """Answer whichever message the bytes hold.

    Args:
        state: the newest one.
        data: from the aggregator.
        rows: what this entity adds, its share of the noise included.

    Raises:
        BadInput: the message is refused; the state stays as it is.
    """
    match decode(data, Start, KeyList, BoxList, Lists, Confirmations):
        case Start() as message:
            state, reply = advertise(state, message)
        case KeyList() as message:
            state, reply = share(state, message)
        case BoxList() as message:
            state, reply = masked(state, message, rows)
        case Lists() as message:
            state, reply = confirm(state, message)
        case Confirmations() as message:
            state, reply = unmask(state, message)
    return state, encode(reply)


def advertise(state: EntityState, message: Start) -> tuple[EntityState, Reply]:
    """Make the session's keys and sign them.

    Raises:
        BadInput: another plan, or not the first message.
    """
    _expect(state, Stage.ADVERTISE, message.plan)
    own, mask = element(), element()
    secrets = Secrets(own, mask, mask_key(state.plan, mask), X25519PrivateKey.generate())
    publics = public_of(secrets.mask_key), public_of(secrets.channel_key)
    return _replied(state, Keys(*publics, commitment(state.plan, own)), secrets=secrets)


def share(state: EntityState, message: KeyList) -> tuple[EntityState, Reply]:
    """Share both secrets among the neighbours that advertised, each in its own box.

    Raises:
        BadInput: keys are of no neighbour, not signed by it, or too few.
    """
    _expect(state, Stage.SHARE, message.plan)
    plan, me = state.plan, state.position
    _check_peers(state, message.bodies, plan.neighbours_of(me))
    if not all(
        keys_are_signed(plan, peer, body, message.signatures.get(peer, b""))
        for peer, body in message.bodies.items()
    ):
        raise _refusal(
            state,
            "session keys are not signed by who is said to have made them",
            "whoever made them could read what is meant for another",
        )
    peers = {peer: _met(state, peer, decode(body, Keys)) for peer, body in message.bodies.items()}
    secrets = _secrets(state)
    holders = (*peers, me)
    own = split(secrets.self_mask, plan.threshold, holders)
    mask = split(secrets.mask, plan.threshold, holders)
    parts = {holder: as_bytes(own[holder]) + as_bytes(mask[holder]) for holder in holders}
    boxes = {
        peer: boxed(known.channel, parts[peer], bound_to(plan, me, peer))
        for peer, known in peers.items()
    }
    return _replied(state, Boxes(boxes), peers=peers, shares={me: parts[me]})


def masked(state: EntityState, message: BoxList, rows: Rows) -> tuple[EntityState, Reply]:
    """Open the boxes, and send the rows under all masks.

    Assumes: the rows have this entity's noise share in them, and the ledger has been charged.

    Raises:
        BadInput: boxes are of others, damaged or too few, or the rows do not fit the plan.
    """
    _expect(state, Stage.MASKED, message.plan)
    plan, me, secrets = state.plan, state.position, _secrets(state)
    _check_peers(state, message.boxes, state.peers)
    total = row_words(plan, rows) + self_words(plan, secrets.self_mask)
    shares = dict(state.shares)
    for peer, box in message.boxes.items():
        known = state.peers[peer]
        part = unboxed(known.channel, box, bound_to(plan, peer, me))
        agreement = agreed(secrets.mask_key, known.mask)
        if part is None or len(part) != 2 * SIZE or agreement is None:
            raise _refusal(
                state,
                "a box does not open, or its sender's mask key agrees on no secret",
                "its sender's masks could not be removed if it vanished",
            )
        shares[peer] = part
        if me < peer:
            total += pair_words(plan, agreement, me, peer)
        else:
            total -= pair_words(plan, agreement, me, peer)
    peers = {peer: state.peers[peer] for peer in message.boxes}
    body = MaskedRows(peers_digest(peers), total.tobytes())
    return _replied(state, body, peers=peers, shares=shares, secrets=None)


def confirm(state: EntityState, message: Lists) -> tuple[EntityState, Reply]:
    """Sign who shared secrets and who survived: one pair of lists per session.

    Raises:
        BadInput: fewer than n - d survived, or this entity's own masks say otherwise.
    """
    _expect(state, Stage.CONFIRM, message.plan)
    plan, me = state.plan, state.position
    shared, survivors = set(message.shared), set(message.survivors)
    if len(survivors) < plan.floor:
        raise _refusal(
            state,
            "too few survivors",
            "a sum of fewer than n - d rows has less noise than was planned",
        )
    near = shared.intersection(plan.neighbours_of(me))
    if not (me in survivors <= shared <= set(range(plan.size)) and near == set(state.peers)):
        raise _refusal(
            state,
            "the lists contradict this entity's own masks",
            "rows could be cut off from the sum and opened on their own",
        )
    return _replied(state, Confirmation(lists_digest(message)), lists=message)


def unmask(state: EntityState, message: Confirmations) -> tuple[EntityState, Reply]:
    """Hand out one share per neighbour, once: of its self mask or of its mask key, never both.

    Raises:
        BadInput: fewer than n - d survivors signed the lists that this entity signed.
    """
    _expect(state, Stage.UNMASK, message.plan)
    if state.lists is None or not is_agreed(state.plan, state.lists, message):
        raise _refusal(
            state,
            "fewer than n - d survivors signed this list, or a signature is bad",
            "two lists could be opened, and their difference is somebody's row",
        )
    alive = set(state.lists.survivors)
    body = Shares(
        {peer: part[:SIZE] for peer, part in state.shares.items() if peer in alive},
        {peer: part[SIZE:] for peer, part in state.shares.items() if peer not in alive},
    )
    return _replied(state, body, shares={}, peers={})


def _met(state: EntityState, peer: int, keys: Keys) -> Peer:
    secret = agreed(_secrets(state).channel_key, keys.channel)
    if secret is None:
        raise _refusal(
            state,
            "a neighbour's channel key agrees on no secret",
            "everybody could read what is boxed with it",
        )
    first, second = sorted((state.position, peer))
    return Peer(keys.mask, derived(secret, "channel", state.plan.digest, first, second))


def _replied(state: EntityState, body: Message, **changes: Any) -> tuple[EntityState, Reply]:
    """The next state, and the signed reply."""
    content = encode(body)
    text = signed_text(state.plan.digest, state.stage, state.position, content)
    reply = Reply(state.position, state.stage, content, state.identity.sign(text))
    return replace(state, stage=Stage(state.stage + 1), **changes), reply


def _secrets(state: EntityState) -> Secrets:
    if state.secrets is None:
        raise _refusal(state, "the session's keys are gone", "rows cannot be masked without them")
    return state.secrets


def _expect(state: EntityState, stage: Stage, plan: bytes) -> None:
    if plan != state.plan.digest:
        raise _refusal(
            state,
            "the message belongs to another session or another plan",
            "nobody here agreed to what it asks for",
        )
    if state.stage != stage:
        raise _refusal(
            state,
            f"{stage.name.lower()} was answered before, or is not due yet",
            "a second answer in one session could undo a mask",
        )


def _check_peers(state: EntityState, peers: Collection[int], known: Collection[int]) -> None:
    if not set(peers) <= set(known):
        raise _refusal(
            state,
            "the message names entities that are no neighbours of this one",
            "masks and secrets are shared with neighbours of the plan only",
        )
    if len(peers) + 1 < state.plan.threshold:
        raise _refusal(
            state,
            "too few neighbours are left",
            "colluders and entities that vanish could open this entity's row",
        )


def _refusal(state: EntityState, what: str, why: str) -> BadInput:
    return state.plan.refusal(
        what, why, "answer nothing; if this was no accident of the network, ask the aggregator"
    )
