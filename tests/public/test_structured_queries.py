"""Random pictures: of any size, with or without colours, the same for the same seed, all alive."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public import structured_queries as module
from stillroom.public.structured_queries import structured_queries


@pytest.mark.parametrize("shape", [(28, 28), (16, 16), (8, 8), (12, 20), (32, 32, 3), (9, 5, 1)])
def test_every_shape(shape):
    made = structured_queries(60, shape, seed=3)
    assert made.shape == (60, *shape)
    assert made.dtype == np.float32
    assert np.isfinite(made).all()
    assert made.min() >= 0
    assert made.max() <= 1
    assert made.max() > 0.8


def test_reproducible_and_fresh():
    one, again, other = (structured_queries(20, (16, 16), seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one, again)
    assert not any(np.array_equal(a, b) for a, b in zip(one, other, strict=True) if a.any())


def test_blocks_do_not_repeat(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 10)
    made = structured_queries(25, (16, 16), seed=5)
    assert made.shape == (25, 16, 16)
    assert not np.array_equal(made[:5], made[10:15])
    assert not np.array_equal(made[:5], made[20:25])


def test_pictures_are_not_all_alike():
    made = structured_queries(400, (28, 28), seed=1)
    mirrored = (np.abs(made - made[:, :, ::-1]).max(axis=(1, 2)) < 1e-5).mean()
    assert 0.05 < mirrored < 0.7, "some are mirrored, and some are not"
    dark = (made[:, 0, 0] == 0).mean()
    assert 0.5 < dark < 0.95, "some stand on black ground, and some do not"
    assert (made.max(axis=(1, 2)) < 0.02).mean() < 0.1, "hardly any is blank"
    lit = (made > 0.1).mean(axis=(1, 2))
    assert lit.std() > 0.15, "small and large ones"


def test_colours_differ_and_share_their_shapes():
    made = structured_queries(50, (16, 16, 3), seed=2)
    spread = made.max(axis=3) - made.min(axis=3)
    assert spread.max() > 0.3
    black = (made.max(axis=3) == 0).mean()
    assert black == pytest.approx((made.min(axis=3) == 0).mean(), abs=0.02)


def test_none_is_none():
    assert structured_queries(0, (8, 8), seed=0).shape == (0, 8, 8)


@pytest.mark.parametrize(
    ("count", "shape"), [(-1, (8, 8)), (1, (64,)), (1, (3, 8)), (1, (8, 8, 0))]
)
def test_no_pictures(count, shape):
    with pytest.raises(BadInput, match="random pictures"):
        structured_queries(count, shape, seed=0)
