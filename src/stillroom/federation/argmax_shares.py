"""Shamir shares of noisy rows for three computing parties: how they are made, packed and added.

An entity needs numpy and cryptography for this, and not the extra `mpc`. Nothing here draws privacy
noise: the rows that are shared already carry it, from the gate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from stillroom.errors import BadInput, check_ranges
from stillroom.federation.argmax_plan import MODULUS, PARTIES, ArgmaxPlan

_KIND = b"stillroom argmax shares 1\n"
_CHECK = hashlib.sha256().digest_size
_BYTES = 16
_LOW, _HIGH = np.uint64(2**64 - 1), np.uint64(2**63 - 1)
Rows = npt.NDArray[np.integer[Any]]
Elements = npt.NDArray[np.object_]
"""Field elements, as Python integers: they do not fit a machine word."""


@dataclass(frozen=True)
class SharePacket:
    """One entity's share of all its rows, for one party, as it travels and lies in a file.

    One packet alone says nothing about the rows. Two of one entity tell all of them: send each to
    its party only, over a channel that nobody else reads.

    Args:
        party: for whom it is, 0 to 2.
        entity: whose it is, counted from 0.
        content: what to send; the two numbers above stand in it as well.
    """

    party: int
    entity: int
    content: bytes = field(repr=False)


def share_rows(plan: ArgmaxPlan, entity: int, rows: Rows) -> tuple[SharePacket, ...]:
    """Share an entity's noisy rows among the three parties.

    Guarantee: one party's share is uniform in the field, whatever the rows are, as long as AES-256
    in counter mode under a fresh key cannot be told from uniform.

    Assumes: the rows carry this entity's noise already; its gate has charged for them.

    Args:
        plan: the session's public numbers.
        entity: which one it is, counted from 0.
        rows: integers, queries x classes.

    Returns:
        One packet per party, in their order.

    Raises:
        BadInput: another shape, no integers, or numbers that do not fit the plan's bits.

    >>> plan = ArgmaxPlan("monday", queries=1, classes=2, entities=1, sigma=0)
    >>> packets = share_rows(plan, 0, np.array([[0, 1]]))
    >>> packets[0]
    SharePacket(party=0, entity=0)
    >>> reconstructed(plan, packets[1:]).tolist()
    [[0, 1]]
    """
    given = np.asarray(rows)
    check_ranges("share_rows", {"entity": 0 <= entity < plan.entities})
    shape = (plan.queries, plan.classes)
    if given.shape != shape or not np.issubdtype(given.dtype, np.integer):
        raise BadInput(
            f"rows are integers in the shape {shape}, not {given.dtype} in {given.shape}",
            where="rows",
            why="every entity answers every query of the plan, with zero and noise if with nothing",
            remedy="give one row per query and one column per class",
        )
    if given.min() < -(2 ** (plan.bits - 1)) or given.max() >= 2 ** (plan.bits - 1):
        raise BadInput(
            f"noisy votes do not fit {plan.bits} bits",
            where="rows",
            why="their sum would not either, and the winner would be wrong",
            remedy="make the plan with the sigma and the weight that these rows were made with",
        )
    secret = given.reshape(-1).astype(object)
    slope = coefficients(secret.size)
    shares = [(secret + (party + 1) * slope) % MODULUS for party in range(PARTIES)]
    return tuple(_packed(plan, party, entity, share) for party, share in enumerate(shares))


def coefficients(count: int) -> Elements:
    """Uniform field elements: AES-256 in counter mode under a key of its own, with rejection."""
    stream = Cipher(algorithms.AES(AESGCM.generate_key(256)), modes.CTR(bytes(16))).encryptor()
    found: list[int] = []
    while len(found) < count:
        words = np.frombuffer(stream.update(bytes(_BYTES * (count - len(found)))), "<u8")
        low, high = words.reshape(-1, 2).T
        drawn = low.astype(object) + ((high & _HIGH).astype(object) << 64)
        found += [number for number in drawn if number < MODULUS]
    return np.array(found, object)


def summed(plan: ArgmaxPlan, party: int, packets: Iterable[bytes]) -> Elements:
    """A party's share of the sum: its shares of all entities' rows, added.

    Args:
        plan: the session's public numbers.
        party: whose shares they are.
        packets: the content of one packet per entity; `dropouts` may be missing.

    Returns:
        Field elements, queries x classes.

    Raises:
        BadInput: a packet is damaged, of another plan, party or entity, there twice, or too many
            are missing for the noise that the plan promises.
    """
    total = np.zeros((plan.queries * plan.classes, 4), np.uint64)
    seen: set[int] = set()
    for content in packets:
        entity, words = _unpacked(plan, party, content)
        if entity in seen:
            raise _refused(entity, "is there twice")
        seen.add(entity)
        total += words  # four times 32 bits of fewer than 2^31 entities fit 64
    if len(seen) < plan.entities - plan.dropouts:
        raise BadInput(
            f"only {len(seen)} of {plan.entities} entities sent shares, and {plan.dropouts} may be "
            "missing",
            where="share packets",
            why="with fewer there is less noise than the plan promises",
            remedy="wait for more of them; nothing was opened",
        )
    whole = sum(total[:, part].astype(object) << (32 * part) for part in range(4))
    return np.asarray(whole % MODULUS, object).reshape(plan.queries, plan.classes)


def reconstructed(plan: ArgmaxPlan, packets: Iterable[SharePacket]) -> npt.NDArray[np.int64]:
    """The rows of one entity, from the packets of any two parties: what sharing protects from one.

    For tests; no party ever has two of them.
    """
    first, second = packets
    here, there = _elements(plan, first), _elements(plan, second)
    x, y = first.party + 1, second.party + 1
    value = (here * y - there * x) * pow(y - x, -1, MODULUS) % MODULUS
    signed = np.array([one - MODULUS if one > MODULUS // 2 else one for one in value], np.int64)
    return signed.reshape(plan.queries, plan.classes)


def _elements(plan: ArgmaxPlan, packet: SharePacket) -> Elements:
    _, words = _unpacked(plan, packet.party, packet.content)
    return np.asarray(sum(words[:, part].astype(object) << (32 * part) for part in range(4)))


def packet_size(plan: ArgmaxPlan) -> int:
    """The bytes of one packet."""
    return len(_header(plan, 0, 0)) + _BYTES * plan.queries * plan.classes + _CHECK


def _header(plan: ArgmaxPlan, party: int, entity: int) -> bytes:
    return _KIND + plan.digest + party.to_bytes(1, "little") + entity.to_bytes(4, "little")


def _packed(plan: ArgmaxPlan, party: int, entity: int, share: Elements) -> SharePacket:
    words = np.empty((share.size, 2), "<u8")
    words[:, 0], words[:, 1] = share & int(_LOW), share >> 64
    body = _header(plan, party, entity) + words.tobytes()
    return SharePacket(party, entity, body + hashlib.sha256(body).digest())


def _unpacked(
    plan: ArgmaxPlan, party: int, content: bytes
) -> tuple[int, npt.NDArray[np.unsignedinteger[Any]]]:
    """The entity of a packet and its share, each element as four words of 32 bits."""
    body, check = content[:-_CHECK], content[-_CHECK:]
    start = len(_header(plan, party, 0))
    entity = int.from_bytes(body[start - 4 : start], "little")
    if len(content) != packet_size(plan) or hashlib.sha256(body).digest() != check:
        raise _refused(None, "is damaged or cut off")
    if entity >= plan.entities or body[:start] != _header(plan, party, entity):
        raise _refused(None, "belongs to another plan, party or entity")
    low, high = np.frombuffer(body, "<u8", offset=start).reshape(-1, 2).T
    if (high > _HIGH).any() or ((high == _HIGH) & (low == _LOW)).any():
        raise _refused(entity, "holds numbers outside the field")
    return entity, np.frombuffer(body, "<u4", offset=start).reshape(-1, 4)


def _refused(entity: int | None, what: str) -> BadInput:
    return BadInput(
        f"a share packet {what}",
        where="share packets" if entity is None else f"share packet of entity {entity}",
        why="parties that add different things open a wrong winner",
        remedy="ask for it again; the same packet, never one with fresh noise",
    )
