"""The messages of a session and their bytes.

Down, from the aggregator: `Start`, `KeyList`, `BoxList`, `Lists`, `Confirmations`. Each names the
plan by its digest. Up, from an entity: a `Reply` with a signed body, which is `Keys`, `Boxes`,
`MaskedRows`, `Confirmation` or `Shares`. Entities are named by their position in the plan. The
bytes of a message are canonical: there is one way to write it, and nothing else is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, TypeVar

from stillroom.errors import BadInput

Positions = tuple[int, ...]
Blobs = Mapping[int, bytes]


class Stage(IntEnum):
    """Which message an entity answers next."""

    ADVERTISE = 1
    SHARE = 2
    MASKED = 3
    CONFIRM = 4
    UNMASK = 5
    DONE = 6


@dataclass(frozen=True, repr=False)
class Message:
    """Fields that are never shown: some carry shares, some masked rows."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>)"


@dataclass(frozen=True, repr=False)
class Start(Message):
    """A session of this plan begins."""

    plan: bytes


@dataclass(frozen=True, repr=False)
class KeyList(Message):
    """Signed session keys of an entity's neighbours: body and signature of their replies."""

    plan: bytes
    bodies: Blobs
    signatures: Blobs


@dataclass(frozen=True, repr=False)
class BoxList(Message):
    """The boxes that an entity's neighbours made for it."""

    plan: bytes
    boxes: Blobs


@dataclass(frozen=True, repr=False)
class Lists(Message):
    """Who shared secrets, and who of them sent masked rows."""

    plan: bytes
    shared: Positions
    survivors: Positions


@dataclass(frozen=True, repr=False)
class Confirmations(Message):
    """Signatures of survivors on the same two lists."""

    plan: bytes
    signatures: Blobs


@dataclass(frozen=True, repr=False)
class Keys(Message):
    """Public session keys for masks and for boxes, and a commitment to the self mask."""

    mask: bytes
    channel: bytes
    commitment: bytes


@dataclass(frozen=True, repr=False)
class Boxes(Message):
    """One box for each neighbour: its shares of the two secrets."""

    boxes: Blobs


@dataclass(frozen=True, repr=False)
class MaskedRows(Message):
    """The masked words, and a digest of the neighbours whose masks are in them."""

    peers: bytes
    words: bytes


@dataclass(frozen=True, repr=False)
class Confirmation(Message):
    """The digest of the two lists that this entity confirms."""

    lists: bytes


@dataclass(frozen=True, repr=False)
class Shares(Message):
    """For a survivor a share of its self mask, for one that vanished a share of its mask key."""

    self_masks: Blobs
    mask_keys: Blobs


@dataclass(frozen=True, repr=False)
class Reply(Message):
    """A body in bytes, and the signature of who sends it."""

    sender: int
    stage: int
    body: bytes
    signature: bytes


KINDS: tuple[type[Message], ...] = (
    *(Start, KeyList, BoxList, Lists, Confirmations),
    *(Keys, Boxes, MaskedRows, Confirmation, Shares, Reply),
)
M = TypeVar("M", bound=Message)


def signed_text(plan: bytes, stage: int, sender: int, body: bytes) -> bytes:
    """What an identity key signs: session, stage, entity and content.

    >>> signed_text(bytes(32), 1, 0, b"keys") == signed_text(bytes(32), 2, 0, b"keys")
    False
    """
    return b"stillroom secure sum reply\0" + plan + bytes([stage]) + _number(sender) + body


def encode(message: Message) -> bytes:
    """The bytes of a message.

    >>> decode(encode(Lists(b"plan", (0, 1, 2), (0, 2))), Lists).survivors
    (0, 2)
    """
    parts = [bytes([KINDS.index(type(message))])]
    for one in fields(message):
        value: Any = getattr(message, one.name)
        if one.type == "int":
            parts.append(_number(value))
        elif one.type == "bytes":
            parts += [_number(len(value)), value]
        elif one.type == "Positions":
            parts += [_number(len(value)), *map(_number, sorted(value))]
        else:
            parts.append(_number(len(value)))
            for position, blob in sorted(value.items()):
                parts += [_number(position), _number(len(blob)), blob]
    return b"".join(parts)


def decode(data: bytes, *expected: type[M]) -> M:
    """The message in some bytes.

    Raises:
        BadInput: they are not exactly one message of an expected kind.
    """
    reader = _Reader(data)
    try:
        kind = KINDS[reader.take(1)[0]]
        values = [reader.field(str(one.type)) for one in fields(kind)]
        whole = not reader.left
    except (IndexError, ValueError):
        kind, values, whole = Message, [], False
    if not issubclass(kind, expected) or not whole:
        raise BadInput(
            "these bytes are not the message that is expected here",
            where="secure sum",
            why="a damaged or misplaced message is never guessed at",
            remedy="send it again, or go on without this entity",
        )
    return kind(*values)


class _Reader:
    """Reads numbers and blobs one after another; more than there is raises ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise ValueError
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def field(self, kind: str) -> int | bytes | Positions | Blobs:
        if kind == "int":
            return self.number()
        if kind == "bytes":
            return self.take(self.number())
        count, positions, blobs = self.number(), list[int](), dict[int, bytes]()
        if count > self.left // 4:
            raise ValueError
        for _ in range(count):
            positions.append(self.number())
            if positions[-1] <= (positions[-2] if len(positions) > 1 else -1):
                raise ValueError
            if kind == "Blobs":
                blobs[positions[-1]] = self.take(self.number())
        return blobs if kind == "Blobs" else tuple(positions)


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")
