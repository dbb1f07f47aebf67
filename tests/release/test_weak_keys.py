"""Every Ed25519 key of low order is refused: computed here, listed there."""

from __future__ import annotations

import pytest

from stillroom.release.keys import is_signed, is_weak, make_keys, read_public

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int]


def add(a: Point, b: Point) -> Point:
    product = D * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + product, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P)
    return x % P, y % P


def times(factor: int, point: Point) -> Point:
    total = (0, 1)
    for bit in bin(factor)[2:]:
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total


def point(y: int) -> Point | None:
    """The point with that y and an even x, if there is one."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    return (x if x % 2 == 0 else P - x, y) if x * x % P == square else None


ORDER = 2**252 + 27742317777372353535851937790883648493


def torsion() -> set[Point]:
    """All points whose order divides eight: some point of the whole group times the large prime."""
    found: set[Point] = set()
    for y in range(2, 60):
        start = point(y)
        if start is not None:
            step = times(ORDER, start)
            found |= {times(k, step) for k in range(8)}
    return found


def spellings(found: Point) -> list[bytes]:
    """With y below p, and with y + p where that still fits; with either sign."""
    return [
        (y | sign << 255).to_bytes(32, "little")
        for y in (found[1], found[1] + P)
        if y < 2**255
        for sign in (0, 1)
    ]


def test_every_key_of_low_order_is_weak():
    points = torsion()
    assert len(points) == 8
    assert all(times(8, p) == (0, 1) for p in points)
    keys = {key for found in points for key in spellings(found)}
    assert len(keys) == 14
    assert all(is_weak(key) for key in keys)


def test_a_weak_key_signs_nothing():
    """With the identity as the key, this signature fits every message."""
    identity = bytes([1] + 31 * [0])
    assert not is_signed(b"anything", identity + bytes(32), identity)


@pytest.mark.parametrize("run", range(5))
def test_a_real_key_is_not_weak(tmp_path, run):
    _, public = make_keys(tmp_path / "key")
    assert not is_weak(read_public(public))
