"""Ways to tell neighbours apart that were once there, or could be: the harness must find each."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from neighbours.pairs import chosen
from neighbours.test_neighbours import leaks
from stillroom.data import Split
from stillroom.errors import BadInput
from stillroom.gate.ledger import members
from stillroom.gate.ledger.ledger import Ledger
from stillroom.methods import direct_road, road, sketched
from stillroom.methods.direct import Direct
from stillroom.private import linear, networks, shard_training


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
        total, sound = self._attempt(*self._filled(places), clip, step)
        if not sound.all():
            raise BadInput("a loss is not a number")
        return total

    patch.setattr(networks.NetworkRecords, "_sum", refusing)


def no_draw_for_nobody(patch):
    """Number 7: an empty test part is not drawn for."""
    honest = road._evaluate

    def saving(recipe, split, *rest):
        return honest(recipe, split, *rest) if len(split.test) else (None, ())

    patch.setattr(road, "_evaluate", saving)


def the_real_batch(patch):
    """E5: steps are divided by the real number of records, not by the declared one."""
    honest = road.Recipe.split

    def counting(self, folder):
        split = honest(self, folder)
        patch.setattr(Direct, "divisor", property(lambda plan: float(max(1, len(split.sensitive)))))
        return split

    patch.setattr(road.Recipe, "split", counting)


def positional_parts(patch):
    """One record more moves all later ones to other parts, the public one among them."""

    def by_position(cls, dataset, key, free, measured, withheld):
        place = np.arange(len(dataset)) % 20
        test, public = place < 20 * measured, place < 20 * (measured + free)
        return cls(*(dataset.select(m) for m in (public & ~test, ~public & ~test, test)))

    patch.setattr(Split, "_assign", classmethod(by_position))


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
    patch.setattr(direct_road, "has_learnt", lambda learner, mechanism: len(learner._data) % 2 == 0)


def true_counts_in_the_sketch(patch):
    """Class sizes that did not come through the gate move the mixture."""
    honest = sketched.SketchToDraw.draw

    def counting(self, ways):
        drawn = honest(self, ways)
        sizes = np.bincount(self._records._labels, minlength=len(drawn.centres))
        return replace(drawn, centres=drawn.centres * (1.0 + sizes[:, None, None] / 100))

    patch.setattr(sketched.SketchToDraw, "draw", counting)


def as_many_questions_as_records(patch):
    """How much is drawn follows from how many records there are."""
    honest = road.cost_of

    def counted(recipe, classes, width, shape, *, public):
        cost = honest(recipe, classes, width, shape, public=public)
        (mechanism, _), *rest = cost.learning
        return replace(cost, learning=[(mechanism, SIZE[-1]), *rest])

    original = road.Recipe.split

    def noting(self, folder):
        split = original(self, folder)
        SIZE.append(2 if len(split.sensitive) % 2 else 1)
        return split

    patch.setattr(road.Recipe, "split", noting)
    patch.setattr(road, "cost_of", counted)


SIZE = [0]


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
    patch.setattr(road, "_in_silence", nullcontext)


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
