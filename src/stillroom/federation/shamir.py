"""Shamir's shares over the field of 2^255 - 19, in plain integers (Shamir 1979).

A polynomial of degree threshold - 1 has the secret at 0; holder h gets its value at h + 1. With
fewer shares than the threshold, every secret is equally likely: the other coefficients are uniform.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from stillroom.errors import BadInput
from stillroom.federation.keys import SIZE, fresh, stream

PRIME = 2**255 - 19


def element() -> int:
    """A uniform element of the field, fresh from the operating system.

    >>> 0 <= element() < PRIME
    True
    """
    return next(_uniform(1))


def split(secret: int, threshold: int, holders: Sequence[int]) -> dict[int, int]:
    """Shares of a secret, one for each holder.

    Guarantee: any `threshold` shares give the secret back, and fewer say nothing about it.

    Args:
        secret: an element of the field.
        threshold: how many shares open it.
        holders: different numbers from 0 on.

    Raises:
        BadInput: the secret is no element, or the holders are too few, equal or negative.

    >>> shares = split(1234, 2, [0, 1, 4])
    >>> combine({0: shares[0], 4: shares[4]})
    1234
    """
    different = len(set(holders)) == len(holders) and all(h >= 0 for h in holders)
    if not (0 <= secret < PRIME and different and 1 <= threshold <= len(holders)):
        raise BadInput(
            "a secret cannot be shared so",
            where="split",
            why="shares of equal or too few holders would open too early, or never",
            remedy="share an element of the field among at least `threshold` different holders",
        )
    return evaluated([secret, *_uniform(threshold - 1)], holders)


def evaluated(coefficients: Sequence[int], holders: Sequence[int]) -> dict[int, int]:
    """The polynomial's value at h + 1 for each holder h; the first coefficient is the constant.

    >>> evaluated([5, 3, 2], [0, 1])
    {0: 10, 1: 19}
    """
    # Points are small, so four steps of Horner's rule grow little before one reduction.
    padded = [*coefficients, *[0] * (-len(coefficients) % 4)][::-1]
    fours = [tuple(padded[at : at + 4]) for at in range(0, len(padded), 4)]
    values = {}
    for holder in holders:
        x, value = holder + 1, 0
        for a, b, c, d in fours:
            value = ((((value * x + a) * x + b) * x + c) * x + d) % PRIME
        values[holder] = value
    return values


def combine(shares: Mapping[int, int]) -> int:
    """The secret behind shares, by Lagrange's formula at 0.

    Assumes: they are as many as the threshold, of one secret; others give another element.

    >>> combine({0: 10, 1: 19, 2: 32})
    5
    """
    holders = tuple(sorted(shares))
    weights = _weights(holders)
    return sum(shares[h] * w for h, w in zip(holders, weights, strict=True)) % PRIME


@lru_cache(maxsize=64)
def _weights(holders: tuple[int, ...]) -> tuple[int, ...]:
    # Among all pairs everybody's secrets are opened by the same holders: worth keeping.
    whole = 1
    for holder in holders:
        whole = whole * (holder + 1) % PRIME
    weights = []
    for holder in holders:
        below = holder + 1
        for other in holders:
            if other != holder:
                below = below * (other - holder) % PRIME
        weights.append(whole * pow(below, -1, PRIME) % PRIME)
    return tuple(weights)


def _uniform(count: int) -> Iterator[int]:
    """Uniform elements: 255 bits of a fresh keystream each, drawn again where they are too large.

    The chance that one is too large is 2^-250, so the spare ones never run out.
    """
    key, found = fresh(), 0
    octets = stream(key, SIZE * (count + 2))
    for at in range(0, len(octets), SIZE):
        value = int.from_bytes(octets[at : at + SIZE], "little") & ((1 << 255) - 1)
        if value < PRIME and found < count:
            found += 1
            yield value
