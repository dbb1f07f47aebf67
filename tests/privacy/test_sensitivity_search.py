"""Sensitivity by search: no neighbour moves a Bounded value further than it declares.

For each maker the worst neighbour we could find must stay within the declared distance, and come
within 5 % of it, so that we neither lie nor waste.
"""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import stillroom
from privacy import entity_makers, makers
from privacy.makers import CONSTANT, MAKERS, UNPROTECTED
from stillroom.features import FEATURES
from stillroom.gate.events import GaussianEvent
from stillroom.private import (
    ensemble,
    head_models,
    linear,
    network_persons,
    parameter_collection,
    persons,
    shard_models,
    shard_training,
    sketch,
    teacher_sums,
)
from stillroom.private.output_gradients import TermBound
from stillroom.vocabulary import Norm, Sensitivity

TIGHT = 0.95


def shares(found):
    """How far each pair is apart, as a share of what is declared for it."""
    for pair, one, other in found:
        declared = one.sensitivity
        assert other.sensitivity == declared, "the sensitivity depends on the data"
        values = one.open_bounded(), other.open_bounded()
        # One answer at a time: that is what is paid for.
        for first, second in zip(*values, strict=True):
            moved = [int(a) - int(b) for a, b in zip(first, second, strict=True)]
            if declared.norm in (Norm.CHOICES, Norm.L1):
                counted = sum(m != 0 if declared.norm is Norm.CHOICES else abs(m) for m in moved)
                yield float(counted / declared.bounds[pair])
                continue
            event = GaussianEvent(Fraction(10**9), len(moved), declared)
            allowed = event.distance_squared(pair)
            assert allowed is not None, f"nothing is declared for {pair}"
            share = math.sqrt(sum(m * m for m in moved) / allowed)
            if declared.norm is Norm.UNIT_STEPS and max(map(abs, moved)) > 1:
                share = math.inf
            yield share


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_the_worst_neighbour_is_within_the_bound_and_near_it(maker):
    found = list(shares(maker()))
    assert max(found) <= 1
    assert max(found) >= TIGHT


def places():
    """Where a Bounded value is made, as module.Class.function."""
    room = Path(stillroom.__file__).parent / "private"
    for file in sorted(room.glob("*.py")):
        stack = [(ast.parse(file.read_text()), file.stem)]
        while stack:
            node, name = stack.pop()
            for child in ast.iter_child_nodes(node):
                inner = name
                if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                    inner = f"{name}.{child.name}"
                called = isinstance(child, ast.Call) and isinstance(child.func, ast.Name)
                if called and child.func.id == "Bounded":
                    yield name
                stack.append((child, inner))


def test_no_maker_is_forgotten():
    searched = {place for covered in MAKERS.values() for place in covered}
    assert set(places()) == {*searched, *UNPROTECTED, *CONSTANT}


# -- mutants: each makes a value move further than declared, and the search must find it --------


def counts_as_steps(patch):
    """The m records of a person charged as m unit steps."""
    honest = Sensitivity.of_counts.__func__

    def steps(cls, records, unit):
        usual = honest(cls, 1, unit)
        return cls(Norm.UNIT_STEPS, {pair: records * b for pair, b in usual.bounds.items()})

    patch.setattr(Sensitivity, "of_counts", classmethod(steps))


def persons_at_several_entities_as_one(patch):
    """Rows of a person's entities move together, and are charged as if they were independent."""
    honest = Sensitivity.of_votes.__func__

    def rooted(cls, weight, unit, per_person=1):
        once = honest(cls, weight, unit)
        bounds = {p: b * (per_person if p.unit == "person" else 1) for p, b in once.bounds.items()}
        return cls(honest(cls, weight, unit, per_person).norm, bounds)

    patch.setattr(Sensitivity, "of_votes", classmethod(rooted))


def clip_left_out(patch):
    patch.setattr(
        linear.LinearRecords,
        "_clipped",
        staticmethod(lambda residuals, squares, clip: (residuals * 4095).astype(np.int64)),
    )


def persons_clipped_record_by_record(patch):
    def one_by_one(self, own, weights, clip):
        factors = [honest(self, own[i : i + 1], weights, clip) for i in range(len(own))]
        return np.concatenate(factors, axis=1)

    honest = persons.LinearPersons._factors
    patch.setattr(persons.LinearPersons, "_factors", one_by_one)


def network_persons_clipped_record_by_record(patch):
    patch.setattr(network_persons.NetworkPersons, "_owners", lambda self, places, taking: None)


def pooled_features(patch):
    """Centred by the mean over all records: every record moves every row."""
    honest = FEATURES["pixels"]
    patch.setitem(FEATURES, "pixels", lambda x: honest(x - x.mean(axis=0)))


def radius_for_diameter(patch):
    patch.setattr(
        teacher_sums,
        "simplex_sensitivity",
        lambda grid, unit: Sensitivity.uniform(Norm.L2_SQUARED, grid**2, unit),
    )


def radius_of_a_hint(patch):
    patch.setattr(
        ensemble,
        "hint_sensitivity",
        lambda steps, unit: Sensitivity.uniform(Norm.L2_SQUARED, steps**2, unit),
    )


def positional_shards(patch):
    patch.setattr(shard_training, "shards", lambda units, count, key: np.arange(len(units)) % count)


def not_clipped_again(patch):
    """K4: what is left after a public centre is subtracted keeps its length."""
    honest = sketch.clip_to_ball

    def once(rows, steps):
        return (
            rows.astype(np.int64) if steps == makers.SKETCH.residual_steps else honest(rows, steps)
        )

    patch.setattr(sketch, "clip_to_ball", once)


def one_term_for_a_batch(patch):
    """DPDFD: the price of one picture, or of one teacher, where all move together."""
    patch.setattr(TermBound, "squared_distance", lambda rule, terms, moved: 4 * rule.steps**2)


def common_norm_forgotten(patch):
    """DPDFD: terms that are bounded one by one, at the price of a common norm."""
    honest = TermBound.sums
    patch.setattr(
        TermBound, "sums", lambda rule, terms: honest(replace(rule, together=False), terms)
    )


def shards_of_shared_records(patch):
    """DPDFD: teachers that all saw the record, at the price of disjoint shards."""
    honest = TermBound.squared_distance
    patch.setattr(
        TermBound, "squared_distance", lambda rule, terms, moved: honest(rule, terms, moved=1)
    )


def half_the_noise_needed(patch):
    """A bound that wastes: twice as large as anything can move."""
    honest = Sensitivity.uniform.__func__

    def double(cls, norm, bound, unit=None):
        given = (unit,) if unit else ()
        return honest(cls, norm, 4 * bound, *given)

    patch.setattr(Sensitivity, "uniform", classmethod(double))


def radius_of_latents(patch):
    patch.setattr(
        shard_models,
        "hint_sensitivity",
        lambda steps, unit: Sensitivity.uniform(Norm.L2_SQUARED, steps**2, unit),
    )


def latents_not_clipped(patch):
    patch.setattr(shard_models, "clip_to_ball", lambda rows, steps: rows.astype(np.int64))


def heads_on_shared_records(patch):
    """Every head sees every record, at the price of disjoint shards."""
    patch.setattr(
        head_models,
        "shard_members",
        lambda data, plan: [np.arange(len(data))[: plan.shard_cap]] * plan.count,
    )


def networks_on_shared_records(patch):
    patch.setattr(
        parameter_collection,
        "shard_members",
        lambda data, plan: [np.arange(len(data))[: plan.shard_cap]] * plan.count,
    )


MUTANTS = {
    counts_as_steps: makers.confusion_of_persons,
    persons_at_several_entities_as_one: entity_makers.votes_of_a_person_at_two,
    clip_left_out: makers.linear_sum,
    persons_clipped_record_by_record: makers.persons_sum,
    network_persons_clipped_record_by_record: makers.network_persons,
    pooled_features: makers.features_of_pictures,
    radius_for_diameter: makers.soft_votes,
    radius_of_a_hint: makers.hint_residuals,
    positional_shards: makers.votes,
    not_clipped_again: makers.sketch_sums,
    one_term_for_a_batch: makers.gradients_together,
    common_norm_forgotten: makers.gradients_together,
    shards_of_shared_records: makers.gradients_of_teachers,
    half_the_noise_needed: makers.clipped_losses,
    radius_of_latents: makers.latents_of_heads,
    latents_not_clipped: makers.latents_of_heads,
    heads_on_shared_records: makers.entries_of_heads,
    networks_on_shared_records: makers.latents_of_networks,
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_search_finds(mutant, monkeypatch):
    mutant(monkeypatch)
    worst = max(shares(MUTANTS[mutant]()))
    assert worst > 1 or worst < TIGHT
