"""What both sides check: signatures, and digests of who was listed."""

from __future__ import annotations

from collections.abc import Iterable

from stillroom.federation.keys import digest, is_signed
from stillroom.federation.messages import (
    Confirmation,
    Confirmations,
    Lists,
    Stage,
    encode,
    signed_text,
)
from stillroom.federation.plan import Plan


def reply_is_signed(plan: Plan, stage: int, sender: int, body: bytes, signature: bytes) -> bool:
    """Whether an entity's enrolled identity signed this body, for this stage of this session."""
    if not 0 <= sender < plan.size:
        return False
    text = signed_text(plan.digest, stage, sender, body)
    return is_signed(text, signature, plan.identities[sender])


def keys_are_signed(plan: Plan, sender: int, body: bytes, signature: bytes) -> bool:
    """Whether these session keys are the sender's own."""
    return reply_is_signed(plan, Stage.ADVERTISE, sender, body, signature)


def is_agreed(plan: Plan, lists: Lists, message: Confirmations) -> bool:
    """Whether at least n - d survivors signed these lists, and no signature is bad.

    Guarantee: of one session no two pairs of lists are agreed, as 2 (n - d) > n + c and honest
    entities sign once.
    """
    body, survivors = encode(Confirmation(lists_digest(lists))), set(lists.survivors)
    return (
        len(message.signatures) >= plan.floor
        and survivors.issuperset(message.signatures)
        and all(
            reply_is_signed(plan, Stage.CONFIRM, signer, body, signature)
            for signer, signature in message.signatures.items()
        )
    )


def lists_digest(lists: Lists) -> bytes:
    """What survivors sign: the plan and both lists."""
    return digest(encode(lists))


def peers_digest(peers: Iterable[int]) -> bytes:
    """Which neighbours' masks are in masked rows."""
    return digest(*(peer.to_bytes(4, "little") for peer in sorted(peers)))


def bound_to(plan: Plan, sender: int, receiver: int) -> bytes:
    """Where a box belongs: the session, its sender and its receiver."""
    return plan.digest + sender.to_bytes(4, "little") + receiver.to_bytes(4, "little")
