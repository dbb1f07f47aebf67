"""Ways to tell neighbours apart that were once there, or could be: the harness must find each."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from neighbours.pairs import chosen
from neighbours.test_neighbours import leaks
from stillroom.data import split
from stillroom.errors import BadInput
from stillroom.gate.ledger import members
from stillroom.gate.ledger.ledger import Ledger
from stillroom.pipeline import release, run
from stillroom.private import linear, networks, shard_training
from stillroom.sources import trained_linear
from stillroom.sources.sketch import DrawnSketch
from stillroom.sources.training import TrainingSection


def sizes(patch):
    """A list that is told how many sensitive records there are at each release."""
    honest, told = release.load_parts_of, []

    def noting(recipe, folder):
        parts = honest(recipe, folder)
        told.append(len(parts.sensitive.open_sealed()))
        return parts

    patch.setattr(release, "load_parts_of", noting)
    return told


def rows_only_for_new_records(patch):
    """Row numbers tell whether a record came since the last release."""
    honest = members.enter

    def sometimes(store, key, prints):
        if prints:
            honest(store, key, prints)

    patch.setattr(members, "enter", sometimes)


def a_refused_row(patch):
    """Number 3, linear: what cannot be used is named after it was paid for."""
    honest = linear._rows_on_grid

    def refusing(rows):
        if not np.isfinite(rows).all():
            raise BadInput("a feature is not a finite number")
        return honest(rows)

    patch.setattr(linear, "_rows_on_grid", refusing)


def a_refused_gradient(patch):
    """Number 3, networks: a gradient that is no number raises after its draw is charged."""

    def refusing(self, places, clip, step):
        x, y, taking = self._filled(places)
        owners = self._owners(places, taking)
        total, sound = self._attempt(x, y, taking, owners, clip, step)
        if not sound.all():
            raise BadInput("a loss is not a number")
        return total

    patch.setattr(networks.NetworkRecords, "_sum", refusing)


def no_draw_for_nobody(patch):
    """Number 7: an empty test part is not drawn for."""
    honest = run._evaluate

    def saving(recipe, test, *rest):
        return honest(recipe, test, *rest) if len(test.open_sealed()) else (None, ())

    patch.setattr(run, "_evaluate", saving)


def the_real_batch(patch):
    """E5: steps are divided by the real number of records, not by the declared one."""
    told = sizes(patch)
    patch.setattr(TrainingSection, "divisor", lambda plan, declared: float(max(1, told[-1])))


def positional_parts(patch):
    """One record more moves all later ones to other parts, the public one among them."""
    honest = split._places

    def by_position(purpose, key, units):
        if purpose != split.SPLIT:
            return honest(purpose, key, units)
        return [number % 20 * split.WHOLE // 20 for number in range(len(units))]

    patch.setattr(split, "_places", by_position)


def classes_must_be_there(patch):
    """A refusal that tells that nobody is left in a class."""
    honest = linear.LinearRecords.clipped_sum

    def refusing(self, *given):
        if len(np.unique(self._labels)) < self.classes:
            raise BadInput("a class has no records")
        return honest(self, *given)

    patch.setattr(linear.LinearRecords, "clipped_sum", refusing)


def a_warning_from_records(patch):
    """A warning on the card that depends on records and not on what came through the gate."""
    told = sizes(patch)
    patch.setattr(trained_linear, "has_learnt", lambda drift, passage: told[-1] % 2 == 0)


def true_counts_in_the_sketch(patch):
    """Class sizes that did not come through the gate move the mixture."""
    honest = DrawnSketch.draw

    def counting(self, passages):
        honest(self, passages)
        drawn = self.mixture
        counts = np.bincount(self._records._labels, minlength=len(drawn.centres))
        self.mixture = replace(drawn, centres=drawn.centres * (1.0 + counts[:, None, None] / 100))

    patch.setattr(DrawnSketch, "draw", counting)


def as_many_questions_as_records(patch):
    """How much is drawn follows from how many records there are."""
    honest, told = run.price, sizes(patch)

    def counted(recipe, facts):
        cost = honest(recipe, facts)
        first, *others = cost.requests
        count = 2 if told[-1] % 2 else 1
        return replace(cost, requests=[replace(first, count=count), *others])

    patch.setattr(run, "price", counted)


def a_named_teacher(patch):
    """A refusal that names the teacher whose records have no features."""
    honest = shard_training.train_group

    def refusing(plan, rows, width, classes, start, payload):
        if not np.isfinite(rows(payload["x"])).all():
            raise BadInput(f"the features of teacher {int(payload['first'])} are not finite")
        return honest(plan, rows, width, classes, start, payload)

    patch.setattr("stillroom.private.ensemble.train_group", refusing)


def an_epsilon_kept_by_record(patch):
    """The ledger keeps how many records there are, and its export says so."""
    honest = Ledger.admit

    def counting(self, ids, persons=None):
        honest(self, ids, persons)
        with self._change():
            self._store.append("note", {"records": len(list(ids))})

    patch.setattr(Ledger, "admit", counting)


def a_warning_that_tells(patch):
    """A library prints what it meets in a tested record."""
    for module in (run, release):
        patch.setattr(module, "in_silence", nullcontext)


MUTANTS = {
    rows_only_for_new_records: ("linear", "added between two releases"),
    a_refused_row: ("linear", "added: nearly too large for floats"),
    a_refused_gradient: ("network, ghost", "added: 1e37"),
    no_draw_for_nobody: ("linear", "the last of the test part"),
    the_real_batch: ("linear", "removed from the front"),
    positional_parts: ("rona, teacher", "removed from the front"),
    classes_must_be_there: ("linear", "the only one of its class"),
    a_warning_from_records: ("linear", "removed from the end"),
    true_counts_in_the_sketch: ("student of the sketch", "the only one of its class"),
    as_many_questions_as_records: ("linear", "removed from the front"),
    a_named_teacher: ("rona, votes", "added: nearly too large for floats"),
    an_epsilon_kept_by_record: ("linear", "added: zeros"),
    a_warning_that_tells: (
        "student of the sketch",
        "added to the test part: nearly too large for floats",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_harness_finds(tmp_path, monkeypatch, mutant):
    pipeline, name = MUTANTS[mutant]
    pairs = [pair for pair in chosen(pipeline, quick=False) if pair.name == name]
    assert len(pairs) == 1
    mutant(monkeypatch)
    assert name in leaks(tmp_path, pipeline, pairs), mutant.__doc__
