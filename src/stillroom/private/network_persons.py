"""The clipped gradient sum of a whole network in which the person is the unit (K3).

A person's term is the sum of the gradients of the person's records, at most a public number of
them, clipped as one. All records of a person stand in one chunk, so that the sum is there when it
is measured. Everything else is as for single records: see `networks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.models.flat_weights import Flat
from stillroom.private.network_clip import NetworkClip
from stillroom.private.network_gradients import Owners
from stillroom.private.networks import ROWS, NetworkRecords, Places
from stillroom.private.persons import records_by_person
from stillroom.private.quantise import one_term
from stillroom.private.sealed import Records, opened, persons_of
from stillroom.vocabulary import Bounded, SecretSample, Unit


class NetworkPersons(NetworkRecords):
    """Sensitive records and the network that is trained on them, clipped person by person.

    Guarantee: one person, with at most `most` records, is one term of the sum. A person one of
    whose records has no finite gradient has none; a record that is not finite is left out.
    Assumes: as `NetworkRecords`; `persons` names the person of each record.

    Args:
        x: the records, as there.
        y: the label of each record.
        classes: how many classes there are.
        network: gives one logit per class.
        persons: the person of each record.
        most: the public cap on records per person.
        chunk: how many rows are computed at a time, at least.
        options: `augment`, `views`, `ghost` and `class_weights`, as there.

    Raises:
        BadInput: a person has more records than the cap, or as `NetworkRecords`.
    """

    def __init__(
        self,
        x: torch.Tensor,
        y: npt.NDArray[np.int64],
        classes: int,
        network: nn.Module,
        persons: Sequence[str],
        most: int,
        *,
        chunk: int = ROWS,
        **options: Any,
    ) -> None:
        self._records_of = records_by_person(persons, most)
        self._person = np.zeros(len(persons), dtype=np.int64)
        for number, own in enumerate(self._records_of):
            self._person[own] = number
        # The cap is public, and so is a chunk that holds the records of anyone.
        chunk = max(chunk, ROWS * -(-most // ROWS))
        super().__init__(x, y, classes, network, chunk=chunk, **options)

    def clipped_sum(
        self, weights: Flat, clip: NetworkClip, sample: SecretSample | None, *, step: int
    ) -> Bounded:
        """The sum of the sampled persons' clipped gradients, in grid units; arguments as there."""
        self._load(weights, step)
        persons = np.arange(len(self._records_of))
        if sample is not None:
            persons = persons[sample.open_secret(len(persons))]
        grid = self._on_grid(self._chunks(persons), clip, step)
        return Bounded(grid.reshape(1, -1), one_term(clip.squared_norm, Unit.PERSON), sample)

    def _chunks(self, persons: Places) -> Iterator[Places]:
        """The records of these persons, as many persons at a time as a chunk has room for."""
        waiting: list[Places] = []
        for person in persons:
            own = self._records_of[person]
            if sum(map(len, waiting)) + len(own) > self._chunk:
                yield np.concatenate(waiting)
                waiting = []
            waiting.append(own)
        if waiting:
            yield np.concatenate(waiting)

    def _units(self, places: Places) -> list[Places]:
        person = self._person[places]
        return [places[person == one] for one in dict.fromkeys(person.tolist())]

    def _owners(self, places: Places, taking: torch.Tensor) -> Owners:
        """Rows that take no part are nobody's: they stand in no person's sum."""
        _, own = np.unique(self._person[places], return_inverse=True)
        nobody = int(own.max(initial=-1)) + 1
        of = torch.full((self._chunk,), nobody, dtype=torch.int64)
        of[: len(places)] = torch.from_numpy(own.astype(np.int64))
        return Owners(torch.where(taking, of, nobody), nobody + 1)


def network_records(
    records: Records,
    pictures: nn.Module,
    network: nn.Module,
    unit: Unit = Unit.RECORD,
    max_records_per_person: int = 1,
    **options: Any,
) -> NetworkRecords:
    """Sealed records, brought to pictures one by one with public numbers, ready for clipped sums.

    Args:
        records: the sensitive records; of persons, no more of each than the cap.
        pictures: from stored records to what the network is given, such as `AsPictures`.
        network: gives one logit per class.
        unit: whose gradient is clipped as one.
        max_records_per_person: the public cap, for persons.
        options: `augment`, `views`, `chunk`, `ghost` and `class_weights`, as for `NetworkRecords`.

    Raises:
        BadInput: as `NetworkRecords` and `NetworkPersons`.
    """
    data = opened(records)
    x = pictures(torch.from_numpy(np.array(data.x)))
    about = (x, data.y, len(data.classes), network)
    if unit is Unit.RECORD:
        return NetworkRecords(*about, **options)
    return NetworkPersons(*about, persons_of(data), max_records_per_person, **options)
