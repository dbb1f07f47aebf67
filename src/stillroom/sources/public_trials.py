"""How long teachers on shards, and the choice of what they are asked, take here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stillroom.sources.trials import seconds_of


@dataclass(frozen=True)
class Ridge:
    """A teacher of ridge regression on a shard.

    Args:
        records: of a shard.
        width: features.
        classes: how many there are.
        cap: the most records of a shard.
    """

    records: int
    width: int
    classes: int
    cap: int

    def seconds(self) -> float:
        """Trained once."""
        from stillroom.private.ridge import train_ridge

        features = [np.ones((self.records, self.width), np.float32)]
        labels = [np.arange(self.records) % self.classes]
        dual = self.cap <= self.width
        return seconds_of(lambda: train_ridge(features, labels, self.classes, 0.1, dual, None))


@dataclass(frozen=True)
class RidgeAnswers:
    """What a ridge teacher says of one public record.

    Args:
        width: features.
        classes: how many there are.
    """

    width: int
    classes: int

    def seconds(self) -> float:
        """Many teachers and records at once, as they are asked."""
        from stillroom.private.ridge import ridge_scores

        weights = np.ones((16, self.width + 1, self.classes), np.float32)
        inputs = np.ones((256, self.width), np.float32)
        return seconds_of(lambda: ridge_scores(weights, inputs)) / (16 * 256)


@dataclass(frozen=True)
class Selected:
    """Questions chosen so that they lie far from each other.

    Args:
        classes: numbers per record.
        records: that are chosen from.
        picks: how many are chosen.
    """

    classes: int
    records: int
    picks: int

    def seconds(self) -> float:
        """Of fewer records and picks; each pick looks at all records."""
        from stillroom.public.selection import select

        size = max(1, min(self.records, 4000))
        few = max(1, min(self.picks, size, 40))
        shares = np.full((size, self.classes), 1 / self.classes)
        once = seconds_of(lambda: select("k-centre", shares, few, seed=0, round=0))
        return once * (self.records / size) * (self.picks / few)
