"""A whole session in one process: for parties that share a machine, and for tests of the protocol.

What a network would carry goes through `carry`, as bytes. A carrier may lose messages, double them,
damage them, keep them back or bring others. Nothing of that makes a wrong sum: `run` opens the
exact sum of the survivors, or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from stillroom.errors import BadInput
from stillroom.federation.aggregator import Opened, collect, open_sum, start
from stillroom.federation.entity import Rows, respond
from stillroom.federation.masks import row_words
from stillroom.federation.messages import Stage
from stillroom.federation.plan import Plan
from stillroom.federation.states import enter


class Leg(NamedTuple):
    """One way of one message: to or from an entity, at a stage."""

    stage: Stage
    position: int
    up: bool


Carrier = Callable[[Leg, bytes], Iterable[bytes]]
"""What arrives where a message was sent: usually that message alone."""


@dataclass(frozen=True)
class Session:
    """How a session went.

    Args:
        opened: the sum; None where it was refused.
        refusal: why there is no sum.
        refused: what entities refused, with the leg on which it came.
    """

    opened: Opened | None
    refusal: BadInput | None
    refused: tuple[tuple[Leg, BadInput], ...]


def enrol(names: Iterable[str]) -> tuple[dict[str, Ed25519PrivateKey], dict[str, bytes]]:
    """New identity keys for parties of one process, and the roster of their public halves."""
    identities = {name: Ed25519PrivateKey.generate() for name in names}
    publics = {name: key.public_key().public_bytes_raw() for name, key in identities.items()}
    return identities, publics


def secure_sum(
    plan: Plan, identities: Mapping[str, Ed25519PrivateKey], rows: Mapping[str, Rows]
) -> Opened:
    """The exact sum of everybody's rows, by a session without faults.

    Guarantee: the aggregator's side sees masked rows, and the sum; nothing else follows from a row.

    Assumes: rows have their noise shares in them; nothing is drawn here but keys.

    Args:
        plan: of the session.
        identities: everybody's private identity key.
        rows: everybody's integers, of the plan's shape.

    Raises:
        BadInput: rows or keys do not fit the plan.

    >>> import numpy as np
    >>> from stillroom.federation import new_session
    >>> identities, roster = enrol(["a", "b", "c", "d"])
    >>> plan = Plan(new_session(), roster, dropouts=1, colluders=1, shape=(1, 3), largest=9)
    >>> rows = {name: np.array([[1, 0, -2]]) for name in roster}
    >>> secure_sum(plan, identities, rows).total
    array([[ 4,  0, -8]])
    """
    session = run(plan, identities, rows)
    if session.opened is None:
        raise session.refusal or BadInput(
            "the session opened nothing",
            where="secure_sum",
            why="nobody may learn a sum that not all have agreed to",
            remedy="look at what each entity has refused, and begin another session",
        )
    return session.opened


def direct(leg: Leg, data: bytes) -> Iterable[bytes]:
    """A network without faults."""
    return (data,)


def run(
    plan: Plan,
    identities: Mapping[str, Ed25519PrivateKey],
    rows: Mapping[str, Rows],
    carry: Carrier = direct,
) -> Session:
    """One session, message by message.

    Args:
        plan, identities, rows: as for `secure_sum`.
        carry: the network.

    Raises:
        BadInput: rows or keys do not fit the plan; what happens later is in the `Session`.
    """
    if not set(plan.names) <= identities.keys() & rows.keys():
        raise plan.refusal(
            "an entity of the plan has no identity key or no rows here",
            "in one process everybody takes part, and faults come from the carrier",
            "give a key and rows for every name of the roster",
        )
    for name in plan.names:
        row_words(plan, rows[name])
    entities = [enter(plan, name, identities[name], plan.roster) for name in plan.names]
    refused = list[tuple[Leg, BadInput]]()
    state, messages = start(plan)
    try:
        while True:
            replies = list[bytes]()
            for position, data in messages.items():
                down = Leg(state.stage, position, up=False)
                for arrived in carry(down, data):
                    try:
                        entities[position], reply = respond(
                            entities[position], arrived, rows[plan.names[position]]
                        )
                    except BadInput as error:
                        refused.append((down, error))
                    else:
                        replies.extend(carry(down._replace(up=True), reply))
            if state.stage == Stage.UNMASK:
                return Session(open_sum(state, replies), None, tuple(refused))
            state, messages = collect(state, replies)
    except BadInput as error:
        return Session(None, error, tuple(refused))
