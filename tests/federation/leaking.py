"""What one party learns from an opened product; a program, since MPyC reads the command line.

The product of two sharings is a quadratic polynomial that everyone sees once it is opened. If it is
the product as it is, its roots are those of the two lines. A line whose root is known, and of which
the party has one point, is known. Prints how often the secret is found, of the product as MPyC
opens it and of the hidden one.
"""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np

from stillroom.federation.argmax_party import hidden_product, hide_products
from stillroom.federation.argmax_plan import MODULUS

SECRETS = [7, 120, 35, 4096, 1, 99, 10**9, 2]


def inverse(number: int) -> int:
    return pow(number, -1, MODULUS)


def coefficients(points: dict[int, int]) -> list[int]:
    """Of the quadratic polynomial through three points."""
    found = [0, 0, 0]
    for place, value in points.items():
        first, second = (other for other in points if other != place)
        part = value * inverse((place - first) * (place - second))
        for power, factor in enumerate((first * second, -first - second, 1)):
            found[power] = (found[power] + part * factor) % MODULUS
    return found


def candidates(points: dict[int, int], place: int, share: int) -> list[int]:
    """The secrets that fit one party's share and the opened polynomial."""
    constant, linear, square = coefficients(points)
    root = pow(linear * linear - 4 * square * constant, (MODULUS + 1) // 4, MODULUS)
    zeros = [(sign * root - linear) * inverse(2 * square) % MODULUS for sign in (1, -1)]
    return [-zero * share * inverse(place - zero) % MODULUS for zero in zeros]


def found(opened: list[list[int]], shares: np.ndarray, place: int) -> int:
    """How many of the secrets one party finds."""
    hits = 0
    for number, secret in enumerate(SECRETS):
        points = {party + 1: opened[party][number] for party in range(3)}
        hits += secret in candidates(points, place, int(shares[place - 1][number]))
    return hits


def main() -> None:
    from mpyc import asyncoro, runtime, thresha
    from mpyc.finfields import GF

    numbers = GF(MODULUS)
    keys = {pair: bytes([sum(pair)] * 16) for pair in combinations(range(3), 2)}
    shares = thresha.np_random_split(numbers, np.array(SECRETS, object), 1, 3)
    plain, hidden = [], []
    for party in range(3):
        prfs = {pair: thresha.PRF(key, MODULUS) for pair, key in keys.items() if party in pair}
        own = numbers.array(shares[party])
        factor = thresha.np_pseudorandom_share(numbers, 3, party, prfs, b"once", len(SECRETS))
        plain.append([int(number) for number in (own * factor).value])
        safe = hidden_product(thresha, numbers, party, prfs, (b"once", b"more"), own)
        hidden.append([int(number) for number in safe.value])
    # Both open the same products, secret times factor.
    same = [
        [coefficients({party + 1: opened[party][at] for party in range(3)})[0] for at in range(8)]
        for opened in (plain, hidden)
    ]
    before = runtime.Runtime.np_is_zero_public
    hide_products(runtime.Runtime, asyncoro, thresha)
    print(
        json.dumps(
            {
                "plain": [found(plain, shares, place) for place in (1, 2, 3)],
                "hidden": [found(hidden, shares, place) for place in (1, 2, 3)],
                "same": same[0] == same[1],
                "replaced": before is not runtime.Runtime.np_is_zero_public,
                "used": "np_is_zero_public" in runtime.Runtime.np_sgn.__wrapped__.__code__.co_names,
            }
        )
    )


if __name__ == "__main__":
    main()
