"""The sketch's sums: exact, within their bounds, and each term its own record's alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.errors import BadInput
from stillroom.features.basis import Basis, matrix_of
from stillroom.private import sketch as module
from stillroom.private.sketch import SketchClip, SketchRecords
from stillroom.vocabulary import Norm, Relation, Unit

CLASSES, NEAR, SIZE = 3, 2, 6
BASIS = Basis(8, 8, 40)
TIGHT = SketchClip(Fraction(2), Fraction(1, 2), 1024)
"""So small that nearly every record is clipped in every release."""
WIDE = SketchClip(Fraction(10), Fraction(8), 1024)
WHITE = SketchClip(Fraction(10), Fraction(8), 1024, whitened=Fraction(1, 3))
LENGTH = 1.7
"""What whitened projections are divided by."""

EXTREMES = {
    "white": np.full((8, 8), 16),
    "black": np.zeros((8, 8), dtype=np.int64),
    "board": np.indices((8, 8)).sum(axis=0) % 2 * 16,
    "dot": np.pad([[16]], ((3, 4), (3, 4))),
    "beyond": np.full((8, 8), 10**6),
    "below": np.full((8, 8), -(10**6)),
    "half": np.repeat([[0, 16]], 8, axis=0).repeat(4, axis=1),
}
EACH = ("class_sums", "second_moment", "cluster_sums", "cluster_moments")


def pictures_of(seed, size):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 17, size=(size, 8, 8)), rng.integers(0, CLASSES, size)


def public_of(seed):
    """Public values of the later releases, not at all fitting the records."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(BASIS.count, SIZE)))[0]
    return (
        3 * rng.normal(size=(CLASSES, BASIS.count)),
        axes,
        rng.normal(size=(CLASSES, NEAR, SIZE)),
    )


def records(pictures, labels, clip):
    return SketchRecords(pictures, labels, CLASSES, basis=BASIS, full_scale=16.0, clip=clip)


def releases(pictures, labels, public, clip):
    own = records(pictures, labels, clip)
    means, axes, centres = public
    length = () if clip.whitened is None else (LENGTH,)
    return {
        "class_sums": own.class_sums(),
        "second_moment": own.second_moment(means),
        "cluster_sums": own.cluster_sums(means, axes, centres, *length),
        "cluster_moments": own.cluster_moments(means, axes, centres, *length),
    }


def moves(pictures, labels, gone, public, clip):
    """Of each release: how far one record moves it, what it does alone, and what is allowed."""
    rest = np.arange(len(labels)) != gone
    whole = releases(pictures, labels, public, clip)
    less = releases(pictures[rest], labels[rest], public, clip)
    alone = releases(pictures[gone : gone + 1], labels[gone : gone + 1], public, clip)
    for name, value in whole.items():
        moved = value.open_bounded() - less[name].open_bounded()
        (allowed,) = set(value.sensitivity.bounds.values())
        yield name, moved, alone[name].open_bounded(), allowed


def too_long(pictures, labels, gone, public, clip):
    found = set()
    for name, moved, _, allowed in moves(pictures, labels, gone, public, clip):
        if int((moved.astype(object) ** 2).sum()) > allowed:
            found.add(name)
    return found


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(0, CLASSES - 1),
    st.sampled_from([*EXTREMES, "any"]),
    st.sampled_from([TIGHT, WIDE, WHITE, SketchClip(Fraction(1, 3), Fraction(1, 7), 99)]),
)
def test_one_extreme_record_moves_each_release_by_its_bound_at_most(seed, label, kind, clip):
    pictures, labels = pictures_of(seed, 30)
    pictures[13] = EXTREMES.get(kind, pictures[13])
    labels[13] = label
    assert too_long(pictures, labels, 13, public_of(seed), clip) == set()


@pytest.mark.parametrize(
    ("clip", "expected"),
    [
        (TIGHT, [2 * 2048**2, (29 * 512**2) ** 2, 2 * 512**2, (29 * 512**2) ** 2]),
        (WHITE, [2 * 10240**2, (29 * 8192**2) ** 2, 2 * 341**2, (29 * 341**2) ** 2]),
    ],
)
def test_the_bounds_are_what_the_docstrings_say(clip, expected):
    got = releases(*pictures_of(1, 5), public_of(1), clip)
    for name, squared in zip(EACH, expected, strict=True):
        sensitivity = got[name].sensitivity
        assert sensitivity.norm is Norm.CONTRIBUTION_SQUARED
        assert {pair.unit for pair in sensitivity.bounds} == {Unit.RECORD}
        assert {pair.relation for pair in sensitivity.bounds} == set(Relation)
        assert set(sensitivity.bounds.values()) == {Fraction(squared)}


def test_a_forgotten_clip_is_caught(monkeypatch):
    monkeypatch.setattr(module, "clip_to_ball", lambda rows, steps: rows.astype(np.int64))
    pictures, labels = pictures_of(2, 30)
    pictures[13] = EXTREMES["white"]
    assert too_long(pictures, labels, 13, public_of(2), TIGHT) == set(EACH)


def test_a_residual_that_is_not_clipped_again_is_caught(monkeypatch):
    """K4: a record within its radius leaves its residual's once a centre is subtracted."""
    clipped = module.clip_to_ball

    def once(rows, steps):
        return clipped(rows, steps) if steps == TIGHT.radius_steps else rows.astype(np.int64)

    monkeypatch.setattr(module, "clip_to_ball", once)
    pictures, labels = pictures_of(3, 30)
    assert too_long(pictures, labels, 13, public_of(3), TIGHT) == set(EACH[1:])


def test_a_triangle_scaled_up_is_caught(monkeypatch):
    """The root of two rounded up instead of down: too long for a residual along a diagonal."""
    from stillroom.features import basis

    monkeypatch.setattr(basis, "OFF_DIAGONAL", 42)
    pictures, labels = pictures_of(4, 30)
    assert too_long(pictures, labels, 13, public_of(4), TIGHT) == {
        "second_moment",
        "cluster_moments",
    }


def company_matters(pictures, labels, gone, public, clip):
    return {
        name
        for name, moved, alone, _ in moves(pictures, labels, gone, public, clip)
        if not np.array_equal(moved, alone)
    }


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(0, 1199), st.sampled_from([TIGHT, WIDE, WHITE]))
def test_a_term_does_not_depend_on_its_neighbours(seed, gone, clip):
    """One record less in the middle shifts all blocks after it, and nothing but its term moves."""
    pictures, labels = pictures_of(seed, 1200)
    assert company_matters(pictures, labels, gone, public_of(seed), clip) == set()


def test_a_record_that_sways_its_neighbours_is_caught(monkeypatch):
    clipped = module.clip_to_ball

    def swayed(rows, steps):
        return clipped(rows - np.rint(rows.mean(axis=0)).astype(np.int64), steps)

    monkeypatch.setattr(module, "clip_to_ball", swayed)
    pictures, labels = pictures_of(5, 40)
    assert company_matters(pictures, labels, 13, public_of(5), WIDE) == set(EACH)


def test_the_sums_are_those_of_slow_arithmetic():
    pictures, labels = pictures_of(6, 200)
    means, axes, centres = public_of(6)
    means, centres = means / 3, centres
    got = releases(pictures, labels, (means, axes, centres), WIDE)
    c = (pictures.reshape(200, -1) / 16) @ BASIS.matrix.T
    assert np.linalg.norm(c, axis=1).max() < 10
    residual = c - means[labels]
    residual *= np.minimum(1, 8 / np.linalg.norm(residual, axis=1))[:, None]
    z = (c - means[labels]) @ axes
    z *= np.minimum(1, 8 / np.linalg.norm(z, axis=1))[:, None]
    near = ((z[:, None] - centres[labels]) ** 2).sum(axis=2).argmin(axis=1)
    away = z - centres[labels, near]

    def opened(name, *shape):
        return got[name].open_bounded().reshape(shape) / 1024

    for which in range(CLASSES):
        table = opened("class_sums", CLASSES, -1)[which]
        assert table[:-1] == pytest.approx(c[labels == which].sum(axis=0), abs=0.2)
        assert table[-1] == 10 * (labels == which).sum()
        for centre in range(NEAR):
            cell = (labels == which) & (near == centre)
            table = opened("cluster_sums", CLASSES, NEAR, -1)[which, centre]
            assert table[-1] == 8 * cell.sum()
            assert table[:-1] == pytest.approx(z[cell].sum(axis=0), abs=0.3)
        moment = matrix_of(opened("cluster_moments", CLASSES, -1)[which]) / 1024
        own = away[labels == which]
        assert moment == pytest.approx(own.T @ own, abs=1)
    moment = matrix_of(opened("second_moment", -1)) / 1024
    assert moment == pytest.approx(residual.T @ residual, abs=2)


def test_no_records_are_zero_sums():
    got = releases(np.zeros((0, 8, 8)), np.zeros(0, dtype=np.int64), public_of(7), WIDE)
    assert not any(value.open_bounded().any() for value in got.values())


def test_public_values_gone_astray_break_nothing():
    """Whatever the noise made of them, the bound holds."""
    pictures, labels = pictures_of(8, 20)
    means, axes, centres = public_of(8)
    wild = (means * 1e9, axes * 1e9, centres * np.nan)
    assert too_long(pictures, labels, 7, wild, WIDE) == set()
    assert company_matters(pictures, labels, 7, wild, WIDE) == set()


def test_what_is_no_picture_is_refused():
    pictures, labels = pictures_of(9, 20)
    coloured = np.stack([pictures] * 3, axis=3)
    wrong = ((pictures[:, :7], labels), (pictures, labels[:5]), (pictures, labels + 1))
    for bad in (*wrong, (coloured, labels)):
        with pytest.raises(BadInput, match="cannot be used"):
            records(*bad, WIDE)
    spoilt = pictures.astype(np.float32)
    spoilt[3, 3, 3] = np.nan
    with pytest.raises(BadInput, match="finite"):
        records(spoilt, labels, WIDE)


def test_records_hide_themselves():
    assert "hidden" in repr(records(*pictures_of(10, 3), WIDE))


@pytest.mark.parametrize("numbers", [(0, 6, 1024), (10, -1, 1024), (40, 6, 1024), (10, 6, 0)])
def test_radii_that_do_not_fit_the_grid(numbers):
    with pytest.raises(BadInput, match="units of the grid"):
        SketchClip(*numbers)
    with pytest.raises(BadInput, match="whitened"):
        SketchClip(10, 6, 1024, whitened=numbers[1] * 0)
