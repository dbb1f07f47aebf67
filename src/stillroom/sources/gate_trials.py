"""How long private steps take here: clipped sums and draws, on made-up records."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stillroom.data.store import home
from stillroom.gate import Budget, Gate, Ledger
from stillroom.private import Clip, LinearRecords
from stillroom.private.persons import LinearPersons
from stillroom.sources.trials import Work, made_up_classes, made_up_data, seconds_of
from stillroom.vocabulary import Unit

if TYPE_CHECKING:
    from stillroom.sources.training import TrainingSection

CHANGES = 4
"""On disk before an answer is used: of a ledger and its register, before and after the draw."""
RECORDED = 0.012
"""Seconds in which a ledger on disk is locked, and compared with its register, before and after."""
ROW = bytes(500)
MOST_TRIED = 1 << 22
"""Numbers in the made-up rows of a trial."""
FEW = 128


@dataclass(frozen=True)
class OnDisk:
    """One change of a small database, on disk when it ends, as a ledger's rows are."""

    def seconds(self) -> float:
        """In a database that nobody needs, on the disk of the data home where there is one."""
        root = home() if home().is_dir() else None
        with tempfile.TemporaryDirectory(dir=root, prefix=".trial-") as folder:
            database = sqlite3.connect(Path(folder) / "rows.sqlite", isolation_level=None)
            database.execute("PRAGMA synchronous = FULL")
            database.execute("CREATE TABLE rows (content BLOB)")
            try:
                return seconds_of(lambda: database.execute("INSERT INTO rows VALUES (?)", [ROW]))
            finally:
                database.close()


@dataclass(frozen=True)
class Draws:
    """One answer of the gate: noise on so many numbers, and a row of the ledger on disk.

    Args:
        width: numbers of an answer.
    """

    width: int

    def seconds(self) -> float:
        """With a ledger in memory, and as many writes as one on disk takes."""
        from stillroom.sources.training import TrainingSection

        plan = TrainingSection.of(rate=1)
        records = LinearRecords(np.zeros((1, self.width), np.float32), np.zeros(1, np.int64), 1)
        told = records.clipped_sum(np.zeros((1, self.width), np.float32), Clip(plan.clip), None)
        ledger = Ledger.in_memory(ids=["made up"], purpose="benchmark")
        ledger.set_budget(Budget(epsilon=10**6, delta=1e-5), reason="a trial on made-up records")
        passage = Gate(ledger, ids=["made up"]).reserve(
            plan.mechanism(self.width, Fraction(1000)), FEW
        )
        asked = iter(range(FEW))
        drawn = seconds_of(lambda: passage.answer(b"%d" % next(asked), lambda: told))
        ledger.close()
        return drawn + RECORDED + CHANGES * Work(OnDisk()).seconds()


@dataclass(frozen=True)
class LinearSums:
    """One clipped gradient sum of a linear layer, over all records of a batch.

    Args:
        batch: records in it.
        width: features.
        classes: how many there are.
        together: records of a person, whose gradients are clipped as one; None for records alone.
    """

    batch: int
    width: int
    classes: int
    together: int | None = None

    def seconds(self) -> float:
        """On blank rows, as many as a batch has where they are not too many."""
        size = max(1, min(self.batch, MOST_TRIED // self.width))
        made = (
            np.zeros((size, self.width), np.float32),
            made_up_classes(size, self.classes),
            self.classes,
        )
        records = LinearRecords(*made)
        if self.together is not None:
            owners = [str(number // self.together) for number in range(size)]
            records = LinearPersons(*made, owners, self.together)
        weights = np.zeros((self.classes, self.width), np.float32)
        clip = Clip(Fraction(1, 2))
        once = seconds_of(lambda: records.clipped_sum(weights, clip, None))
        return once * self.batch / size


@dataclass(frozen=True)
class NetworkSums:
    """One record's part of the clipped gradient sum of a network, all its views.

    Args:
        part: the training.
        shape: of a record.
        classes: how many there are.
        full_scale: the largest value of a pixel.
        batch: records per step, about.
    """

    part: TrainingSection
    shape: tuple[int, ...]
    classes: int
    full_scale: float
    batch: int

    def seconds(self) -> float:
        """On a chunk of made-up pictures, or a batch where that is smaller."""
        from stillroom.models import AsPictures, build
        from stillroom.models.augmentation import Augment
        from stillroom.models.flat_weights import flatten
        from stillroom.private.network_clip import NetworkClip
        from stillroom.private.network_persons import network_records

        part, size, clip = self.part, max(1, min(self.batch, FEW)), NetworkClip(self.part.clip)
        pictures = AsPictures(self.shape, self.full_scale)
        network = build(part.model, pictures.given, self.classes, seed=part.start_seed)
        moved = bool(part.shift or part.mirror)
        records = network_records(
            made_up_data(size, self.shape, self.classes, self.full_scale),
            pictures,
            network,
            Unit.RECORD,
            1,
            augment=Augment(part.start_seed, part.shift, part.mirror) if moved else None,
            views=part.views,
            ghost=part.ghost,
        )
        weights = flatten(network)
        return seconds_of(lambda: records.clipped_sum(weights, clip, None, step=1)) / size
