"""Gradients of a network's outputs by labels, where all but the labels of records is public.

Claim: the records, their number and their order are public, so a term g_i = p_i - e_{y_i} of a sum
is a function of one label. Terms bounded one by one: one of them moves, within a ball of radius
`steps`, and D = 2 * steps. Bounded by their common norm: the whole sum may move, and D =
2 * sqrt(m) * steps for m terms. For one label that is another; for nothing else (theory.md#dpdfd).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from stillroom.errors import BadInput
from stillroom.private.output_gradients import TermBound
from stillroom.private.quantise import softmax
from stillroom.private.sealed import Records, opened
from stillroom.vocabulary import Bounded, Integers, Norm, Sensitivity, Unit


class LabelledRecords:
    """Records of which everything but the labels is declared public.

    Guarantee: for labels, what `gradients` says; for the records themselves none.

    Args:
        records: the records.
        pictures: from records as they are stored to what a network is given.
        unit: whom the recipe protects.

    Raises:
        BadInput: the recipe protects more than labels.
    """

    def __init__(self, records: Records, pictures: nn.Module, unit: Unit) -> None:
        if unit is not Unit.LABEL:
            raise BadInput(
                f"records are handed out, and each {unit} is to be protected",
                where="data.unit",
                why="an update is the noisy gradient times the Jacobian at the record",
                remedy="use source trained",
            )
        data = opened(records)
        self.inputs: Tensor = pictures(torch.from_numpy(np.array(data.x)))
        self._labels, self._classes = np.array(data.y), len(data.classes)

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        return "LabelledRecords(<hidden>)"

    def gradients(self, places: Integers, student: Tensor, rule: TermBound) -> Bounded:
        """The bounded sum of p_i - e_{y_i} over a batch.

        Guarantee: D as the module says, for one label that is another.

        Args:
            places: of the batch's records, each at most once.
            student: the network's logits of them.
            rule: how the terms are bounded.

        Raises:
            BadInput: a record is named twice.
        """
        if len(np.unique(places)) != len(places):
            raise BadInput(
                "a batch names a record twice",
                where="places",
                why="its label would move two terms",
                remedy="name each record once",
            )
        terms = softmax(student.double().numpy(), 1.0)
        terms[np.arange(len(places)), self._labels[places]] -= 1
        squared = rule.squared_distance(len(places), moved=1)
        proven = Sensitivity.uniform(Norm.L2_SQUARED, squared, Unit.LABEL)
        return Bounded(rule.sums(terms[None]), proven)
