"""From records to teachers: who belongs to which shard, and what a shard is trained to."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset, shards
from stillroom.errors import BadInput
from stillroom.features import pixels
from stillroom.private.ensemble_plan import RIDGE, EnsemblePlan
from stillroom.private.quantise import Floats
from stillroom.private.ridge import train_ridge
from stillroom.vocabulary import Integers

Arrays = Mapping[str, npt.NDArray[Any]]


class Digest(Protocol):
    """A hash that is not finished."""

    def update(self, content: bytes, /) -> None:
        """Add some bytes."""


Rows = Callable[[npt.NDArray[Any]], Floats]
"""Features of records: a fixed or public function."""

EMPTY = "empty"
"""Which teachers of a group have no records and give the public default."""

_ORDER = b"stillroom/shard-order/1\0"


def pictures(x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Each picture centred and scaled by itself, channels first: what networks are fed.

    >>> pictures(np.zeros((2, 8, 8))).shape
    (2, 1, 8, 8)
    """
    if x.ndim not in (3, 4):
        raise BadInput(
            f"networks need pictures, got records of shape {x.shape[1:]}",
            where="rows",
            why="their layers move over height and width",
            remedy="give a function that makes pictures of the records, or another teacher",
        )
    flat = pixels(x)[:, :-1] * np.float32(math.sqrt(math.prod(x.shape[1:])))
    shaped = flat.reshape(x.shape if x.ndim == 4 else (*x.shape, 1))
    return np.ascontiguousarray(shaped.transpose(0, 3, 1, 2))


def shard_members(data: Dataset, plan: EnsemblePlan) -> list[Integers]:
    """The positions of each teacher's records, in hash order, at most `shard_cap` of them."""
    shard = shards(data.units, plan.count, plan.key)
    key = plan.key.encode("utf-8", "surrogatepass")
    places = [
        hmac.digest(key, _ORDER + name.encode("utf-8", "surrogatepass"), "sha256")
        for name in data.ids
    ]
    members: list[list[int]] = [[] for _ in range(plan.count)]
    for position in sorted(range(len(places)), key=places.__getitem__):
        members[shard[position]].append(position)
    return [np.array(own[: plan.shard_cap], dtype=np.int64) for own in members]


def shard_payload(data: Dataset, members: Sequence[Integers], first: int) -> dict[str, Any]:
    """The records of some shards, one shard after the other: a unit of work."""
    together = np.concatenate(members)
    return {
        "x": data.x[together],
        "y": data.y[together],
        "sizes": np.array([len(own) for own in members]),
        "first": np.array(first),
    }


def train_group(
    plan: EnsemblePlan,
    rows: Rows,
    width: tuple[int, ...],
    classes: int,
    start: Arrays | None,
    payload: Arrays,
) -> dict[str, npt.NDArray[Any]]:
    """Train the teachers of one unit of work; the engine calls this, maybe elsewhere."""
    first, ends = int(payload["first"]), np.cumsum(payload["sizes"])
    own = [slice(b - n, b) for b, n in zip(ends, payload["sizes"], strict=True)]
    # Shard by shard: even features that look at their neighbours then stay within one teacher.
    features, labels = [], []
    for offset, part in enumerate(own):
        empty = part.start == part.stop
        with np.errstate(all="ignore"):
            found = np.zeros((0, *width)) if empty else np.asarray(rows(payload["x"][part]))
            found = found.astype(np.float32)
        if found.shape != (part.stop - part.start, *width):
            raise BadInput(
                f"the features of teacher {first + offset} are of another shape than others'",
                where="rows",
                why="a teacher cannot be trained on them",
                remedy="let features have one shape, whatever the values are",
            )
        # To refuse a record would tell of it; left out, it changes its own teacher only (K10).
        usable = np.isfinite(found.reshape(len(found), math.prod(width))).all(axis=1)
        features.append(found[usable])
        labels.append(payload["y"][part][usable])
    if plan.teacher == RIDGE:
        # Fewer records than features: by the public cap, so that no shard chooses for itself.
        dual = plan.shard_cap <= width[0]
        trained = train_ridge(features, labels, classes, plan.ridge, dual, start)
    else:
        from stillroom.private.stacked import train_networks

        trained = train_networks(plan, features, labels, first, classes, start)
    return {**trained, EMPTY: np.array([len(found) == 0 for found in features])}


def run_key(plan: EnsemblePlan, data: Dataset, probe: Floats, start: Arrays | None) -> str:
    """What finished units belong to: other records, features or numbers make another run."""
    digest = hashlib.sha256(json.dumps(asdict(plan), default=repr, sort_keys=True).encode())
    for name, array in sorted({"probe": probe, **(start or {})}.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    digest_records(digest, data)
    return digest.hexdigest()


def digest_records(digest: Digest, data: Dataset) -> None:
    """Add all that a training could depend on of some records, in the order of their ids."""
    digest.update(json.dumps([data.classes, data.shape, str(data.x.dtype)]).encode())
    units = data.units  # made anew by each look
    for position in sorted(range(len(data)), key=data.ids.__getitem__):
        digest.update(json.dumps([data.ids[position], units[position]]).encode())
        digest.update(data.x[position].tobytes() + data.y[position].tobytes())
