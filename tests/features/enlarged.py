"""Digits large enough for wavelets, and company that must not matter."""

from __future__ import annotations

import numpy as np

from stillroom.data import digits


def pictures(count=None):
    """Digits of 16x16."""
    whole = digits()
    x = whole.x[:count]
    return np.kron(x, np.ones((1, 2, 2), x.dtype)), whole.y[:count]


def loud(x):
    """Records whose statistics are not those of others."""
    return (255 - x[::-1]).astype(x.dtype)


def moved_by_company(features, x):
    """Whether a record's features change, by any bit, with the records beside it."""
    whole = features(x)
    middle = len(x) // 2
    kept = np.arange(len(x)) != middle
    cases = {
        "alone": (np.concatenate([features(own[None]) for own in x]), whole),
        "reversed": (features(x[::-1])[::-1], whole),
        "one removed": (features(x[kept]), whole[kept]),
        "with loud ones": (features(np.concatenate([loud(x), x]))[len(x) :], whole),
    }
    return [name for name, (one, other) in cases.items() if not np.array_equal(one, other)]
