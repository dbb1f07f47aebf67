"""A table of counts tells a model that has learnt from one that has not."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.release.sections.evaluation import GUESSING, better_than_guessing


def answers(rng, classes, *, learnt=0.0):
    """A linear model of 200 records in clumps, one per class, with noise for weights.

    Whole clumps get one label, which is why counts alone would be misleading.
    """
    centres = rng.normal(size=(classes, 20))
    weights = rng.normal(size=(classes, 20)) + learnt * centres
    y = np.arange(200) % classes
    x = centres[y] + 0.3 * rng.normal(size=(200, 20))
    table = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(table, (y, (x @ weights.T).argmax(axis=1)), 1)
    return table


@pytest.mark.parametrize("noise", [0, 6])
@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_noise_alone_seldom_passes(classes, noise):
    """400 models, at most twice the stated share and a handful: by chance in less than 1e-6."""
    rng = np.random.default_rng(classes)
    passed = 0
    for _ in range(400):
        table = answers(rng, classes) + np.rint(rng.normal(0, noise, (classes, classes)))
        passed += better_than_guessing(table.astype(int).tolist())
    share = {2: 1 / 2, 3: 1 / 6}.get(classes, GUESSING)
    assert passed <= 400 * share + 5 * np.sqrt(400 * share * (1 - share)) + 3


@pytest.mark.parametrize("noise", [0, 2])
@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_a_model_that_has_learnt_passes(classes, noise):
    rng = np.random.default_rng(classes)
    for _ in range(50):
        table = answers(rng, classes, learnt=3.0) + np.rint(
            rng.normal(0, noise, (classes, classes))
        )
        assert np.trace(table) > 0.6 * table.sum()
        assert better_than_guessing(table.astype(int).tolist())
