"""Slices of a collection, and the one model that PGP publishes."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.data import digits
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.models.flat_weights import flatten, layers_of
from stillroom.models.weight_training import WeightTraining
from stillroom.parameters import ParameterGrid
from stillroom.private.parameter_collection import Collection, CollectionPlan
from stillroom.private.parameter_slices import BITS, GRID, UNITS, ParameterSlices, PublishedModel
from stillroom.vocabulary import Norm, Pair

RNG = np.random.default_rng(4)
ROWS = RNG.normal(0, 0.3, (5, 40)).astype(np.float32)
FIXED = ParameterGrid(1.0, 21, 0.1)
LAYERS = [slice(0, 25), slice(25, 40)]
CENTROIDS = np.array([[-0.5, 0.5], [-0.2, 0.4]])


def model(weights=ROWS[0], share=0.2, width=8):
    return PublishedModel(weights, LAYERS, share, 1.0, width)


# -- slices ---------------------------------------------------------------------------------


def test_entries_stand_on_a_fixed_grid():
    told = ParameterSlices(ROWS, moved=4).entries(slice(3, 9), FIXED, None)
    assert told.open_bounded().tolist() == FIXED.nearest(ROWS[:, 3:9].T).tolist()
    bounds = told.sensitivity.bounds
    assert (bounds[Pair.parse("record/add-or-remove")], bounds[Pair.parse("entity/change")]) == (
        4,
        1,
    )


def test_entries_between_extremes_use_the_whole_grid():
    slices = ParameterSlices(ROWS, moved=1)
    told = slices.extremes(slice(0, 10), 32).open_bounded()
    assert told.shape == (1, 32)
    within = told.reshape(-1, 2)[:10] / UNITS
    assert within[:, 0] == pytest.approx(ROWS[:, :10].min(axis=0), abs=1e-8)
    entries = slices.entries(slice(0, 10), FIXED, within).open_bounded()
    assert (entries.min(axis=1) == 0).all()
    assert (entries.max(axis=1) == FIXED.points - 1).all()


def test_extremes_are_unprotected():
    assert ParameterSlices(ROWS, moved=1).extremes(slice(0, 3), 8).sensitivity.bounds == {}


# -- one model ------------------------------------------------------------------------------


def test_the_largest_weights_of_each_layer_are_significant():
    told = model().mask().open_bounded()[0]
    bits = ((told[:, None] >> np.arange(BITS)) & 1).reshape(-1)[:40].astype(bool)
    for layer, count in zip(LAYERS, (5, 3), strict=True):
        chosen = bits[layer]
        size = np.abs(ROWS[0][layer])
        assert chosen.sum() == count
        assert size[chosen].min() > size[~chosen].max()


def test_the_centroid_cancels():
    """c_i + (theta - c_i) is theta: what is published does not know of centroids."""
    significant = model().significant
    for centroids in (CENTROIDS, CENTROIDS + 0.3):
        own = model()
        clusters = own.assignments(centroids).open_bounded()[0].astype(int)
        reaches = own.reaches(centroids, 2).open_bounded().reshape(2, 2) / UNITS
        residuals = own.residuals(centroids).open_bounded()[0] / GRID
        found, first = [], 0
        for layer in range(2):
            count = int(significant[LAYERS[layer]].sum())
            nearest = clusters[first : first + count]
            part = residuals[first : first + count] * reaches[layer][nearest]
            found.append(centroids[layer][nearest] + part)
            first += count
        assert np.concatenate(found) == pytest.approx(ROWS[0][significant], abs=1e-5)


def test_counts_and_sums_are_those_of_clusters():
    told = model().cluster_sums(CENTROIDS, 3).open_bounded().reshape(2, 3, 2)
    for layer in range(2):
        own = ROWS[0][LAYERS[layer]][model().significant[LAYERS[layer]]]
        upper = own > CENTROIDS[layer].mean()
        assert told[0, layer].tolist() == [GRID * int((~upper).sum()), GRID * int(upper.sum())]
        assert told[1, layer] / GRID == pytest.approx(
            [own[~upper].sum(), own[upper].sum()], abs=1e-4
        )
    assert not told[:, 2].any()


def test_whatever_is_said_of_it_is_priced_for_all_of_its_weights():
    told = model().residuals(CENTROIDS)
    assert told.sensitivity.norm is Norm.L1
    assert set(told.sensitivity.bounds.values()) == {4 * GRID * 8}
    for one in (model().assignments(CENTROIDS), model().reaches(CENTROIDS, 2), model().mask()):
        assert one.sensitivity.bounds == {}


# -- collections ----------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_a_record_is_in_all_models_but_one_or_in_one_alone(tmp_path, shared):
    training = WeightTraining("linear", (8, 8), 10, 16.0, places=80, epochs=1, learning_rate=0.01)
    plan = CollectionPlan(training, 4, "a test", shared=shared)
    data, start = digits().select(np.arange(80)), flatten(training.built())

    def rows(some, name):
        return Collection(some, plan, start, folder=tmp_path / name, engine=Engine("serial"))._rows

    before, after = rows(data, "a"), rows(data.select(np.arange(1, 80)), "b")
    changed = int((np.array(before) != np.array(after)).any(axis=1).sum())
    assert changed == (3 if shared else 1)


def test_one_model_of_a_collection_classifies(tmp_path):
    training = WeightTraining("linear", (8, 8), 10, 16.0, places=300, epochs=8, learning_rate=0.05)
    plan = CollectionPlan(training, 2, "a test", shared=True)
    data = digits().select(np.arange(300))
    found = Collection(
        data, plan, flatten(training.built()), folder=tmp_path, engine=Engine("serial")
    )
    assert (found.one_model().guesses(data) == data.y).mean() > 0.6
    assert "hidden" in repr(found)
    assert len(layers_of(training.built())) == 1


def test_checkpoints_are_averaged_to_one_row():
    once = WeightTraining("linear", (8, 8), 10, 16.0, places=50, epochs=1, learning_rate=0.01)
    twice = WeightTraining("linear", (8, 8), 10, 16.0, places=50, epochs=2, learning_rate=0.01)
    both = WeightTraining(
        "linear", (8, 8), 10, 16.0, places=50, epochs=2, learning_rate=0.01, checkpoints=2
    )
    data, start = digits(), flatten(once.built())
    ends = [t.trained(start, data.x[:50], data.y[:50], "model", 0) for t in (once, twice, both)]
    assert ends[2] == pytest.approx((ends[0] + ends[1]) / 2, abs=1e-6)
    with pytest.raises(BadInput):
        WeightTraining("linear", (8, 8), 10, 16.0, places=50, epochs=1, checkpoints=2)


def test_a_model_that_has_diverged_is_told_before_anything_is_drawn(tmp_path):
    training = WeightTraining("linear", (8, 8), 10, 16.0, places=300, epochs=2, learning_rate=1e37)
    plan = CollectionPlan(training, 2, "a test", shared=True)
    data, start = digits().select(np.arange(300)), flatten(training.built())
    with pytest.raises(BadInput, match="model 0 of the collection has weights that are no finite"):
        Collection(data, plan, start, folder=tmp_path, engine=Engine("serial"))
