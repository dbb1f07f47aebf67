"""What an entity holds between two messages of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from stillroom.federation.messages import Lists, Stage
from stillroom.federation.plan import Plan


@dataclass(frozen=True, repr=False)
class Secrets:
    """What an entity alone knows, until survivors open one of its two elements."""

    self_mask: int
    mask: int
    mask_key: X25519PrivateKey
    channel_key: X25519PrivateKey

    def __repr__(self) -> str:
        return "Secrets(<hidden>)"


@dataclass(frozen=True, repr=False)
class Peer:
    """A neighbour: its public mask key, and the key of the boxes between the two."""

    mask: bytes
    channel: bytes

    def __repr__(self) -> str:
        return "Peer(<hidden>)"


@dataclass(frozen=True, repr=False)
class EntityState:
    """Where an entity stands in a session; `enter` makes the first one."""

    plan: Plan
    position: int
    identity: Ed25519PrivateKey
    stage: Stage = Stage.ADVERTISE
    secrets: Secrets | None = None
    peers: Mapping[int, Peer] = field(default_factory=dict)
    shares: Mapping[int, bytes] = field(default_factory=dict)
    lists: Lists | None = None

    def __repr__(self) -> str:
        name = self.plan.names[self.position]
        return f"EntityState({name!r}, next={self.stage.name.lower()}, <hidden>)"


def enter(
    plan: Plan, name: str, identity: Ed25519PrivateKey, enrolled: Mapping[str, bytes]
) -> EntityState:
    """Take part in a planned session.

    Assumes: the caller enters a session once, and has checked and charged what the plan costs.

    Args:
        plan: as published.
        name: of this entity.
        identity: its private identity key.
        enrolled: everybody's public identity keys as this entity knows them, not as the aggregator
            tells them.

    Raises:
        BadInput: a key of the plan is not the enrolled one, or this entity is not in the plan.
    """
    if any(enrolled.get(other) != key for other, key in plan.roster.items()):
        raise plan.refusal(
            "the plan names an entity that was not enrolled with this key",
            "an aggregator could take the places of entities, and read the rows of the others",
            "compare the rosters with the other entities, not with the aggregator",
        )
    if plan.roster.get(name) != identity.public_key().public_bytes_raw():
        raise plan.refusal(
            "this entity is not in the plan, or has another identity key there",
            "nobody would believe its replies",
            "enrol the public half of this identity key",
        )
    return EntityState(plan, plan.names.index(name), identity)
