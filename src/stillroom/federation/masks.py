"""What hides a row: its entity's own mask, and one mask per pair, which cancel in the sum."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from stillroom.federation.keys import SIZE, Words, derived, words
from stillroom.federation.plan import Plan


def row_words(plan: Plan, rows: npt.NDArray[np.int64]) -> Words:
    """Rows of integers as words modulo 2^bits, in one line.

    Raises:
        BadInput: they are no integers of the planned shape, or an entry is too large.
    """
    given = np.asarray(rows)
    if given.shape != plan.shape or given.dtype.kind not in "iu":
        raise plan.refusal(
            f"the rows are not {plan.shape[0]} x {plan.shape[1]} integers",
            "everybody adds numbers of one shape, exactly",
            "give an integer matrix with one row per query and one column per class",
        )
    if np.any(given > plan.largest) or np.any(given < -plan.largest):
        raise plan.refusal(
            "an entry is larger than the plan allows",
            "the sum could wrap around and be another sum",
            "plan with a larger `largest`: the largest entry and the largest noise together",
        )
    return given.astype(np.int64).astype(f"<u{plan.bits // 8}").ravel()


def self_words(plan: Plan, element: int) -> Words:
    """The mask that follows from an entity's self-mask element."""
    key = derived(as_bytes(element), "self mask", plan.digest)
    return words(key, plan.cells, plan.bits)


def pair_words(plan: Plan, secret: bytes, one: int, other: int) -> Words:
    """The mask of a pair, to be added by the first of the two and subtracted by the second."""
    first, second = sorted((one, other))
    return words(derived(secret, "pair mask", plan.digest, first, second), plan.cells, plan.bits)


def commitment(plan: Plan, element: int) -> bytes:
    """Binds an entity to its self-mask element, and says nothing about the mask."""
    return derived(as_bytes(element), "commitment", plan.digest)


def mask_key(plan: Plan, element: int) -> X25519PrivateKey:
    """The private mask key that follows from an element; shares of it are shares of the key."""
    private = derived(as_bytes(element), "mask key", plan.digest)
    return X25519PrivateKey.from_private_bytes(private)


def as_bytes(element: int) -> bytes:
    """An element of the field in bytes."""
    return element.to_bytes(SIZE, "little")
