"""Whitened projections are those of slow arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from private.test_sketch import BASIS, CLASSES, NEAR, pictures_of, public_of, records
from stillroom.features.basis import matrix_of
from stillroom.private.sketch import SketchClip

CLIP = SketchClip(Fraction(10), Fraction(8), 1024, whitened=Fraction(1))


def test_the_sums_are_those_of_slow_arithmetic():
    pictures, labels = pictures_of(6, 200)
    means, axes, centres = public_of(6)
    means, axes = means / 3, axes * np.linspace(1, 0.2, axes.shape[1])
    own = records(pictures, labels, CLIP)
    c = (pictures.reshape(200, -1) / 16) @ BASIS.matrix.T
    z = (c - means[labels]) @ axes / 2.0
    lengths = np.linalg.norm(z, axis=1)
    assert lengths.min() < 1 < lengths.max()
    z *= np.minimum(1, 1 / lengths)[:, None]
    near = ((z[:, None] - centres[labels]) ** 2).sum(axis=2).argmin(axis=1)
    sums = own.cluster_sums(means, axes, centres, 2.0).open_bounded().reshape(CLASSES, NEAR, -1)
    moments = own.cluster_moments(means, axes, centres, 2.0).open_bounded().reshape(CLASSES, -1)
    away = z - centres[labels, near]
    away *= np.minimum(1, 1 / np.linalg.norm(away, axis=1))[:, None]
    for which in range(CLASSES):
        for centre in range(NEAR):
            cell = (labels == which) & (near == centre)
            assert sums[which, centre, -1] == 1024 * cell.sum()
            assert sums[which, centre, :-1] / 1024 == pytest.approx(z[cell].sum(axis=0), abs=0.3)
        rest = away[labels == which]
        assert matrix_of(moments[which]) / 1024**2 == pytest.approx(rest.T @ rest, abs=0.5)
