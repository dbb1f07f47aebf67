"""The clip of an ensemble's hints, from stand-ins that saw public records only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stillroom import engine as work
from stillroom.data import Dataset
from stillroom.data.dataset import class_names
from stillroom.data.public import PublicPictures
from stillroom.errors import BadInput
from stillroom.private import Ensemble, EnsemblePlan, Hints
from stillroom.private.ensemble import Rows
from stillroom.public.bounds import PublicBound, adaptive_bound, residual_norms
from stillroom.vocabulary import Integers

Reals = npt.NDArray[np.float64]
Records = npt.NDArray[Any]

STAND_INS = 4
"""The most public stand-ins that are trained for the bound."""


class _StandIns(Ensemble):
    """Teachers on public records, which may be looked at."""

    def residual_norms(self, x: Records, centre: Reals, hints: Hints) -> Reals:
        pairs = zip(self._hidden(x), self._hidden(hints.x), strict=True)
        norms = [
            residual_norms(hidden, known, hints.values, centre, hints.ridge)
            for hidden, known in pairs
            if hidden is not None and known is not None
        ]
        return np.concatenate(norms)


def public_bound(
    plan: EnsemblePlan,
    public: PublicPictures,
    labels: Integers,
    x: Records,
    centre: Reals,
    hints: Hints,
    *,
    classes: int,
    steps: int,
    rows: Rows | None = None,
) -> PublicBound:
    """The clip of the hints: the median difference of stand-ins trained on public records.

    Guarantee: free: no sensitive record has a part in it. Sensitive records, which are a `Dataset`,
    and their teachers are refused.

    Args:
        plan: the stand-ins are trained as its teachers are, on shards of the same size.
        public: public records to train them on.
        labels: their labels.
        x: public queries.
        centre: the auxiliary teacher's hints at the queries.
        hints: what the stand-ins' maps are fitted to.
        classes: how many classes there are.
        steps: grid units that the clip has.
        rows: public features; pixels when left out.

    Raises:
        BadInput: the records are not public ones, or the differences give no bound.
    """
    if not isinstance(public, PublicPictures):
        raise BadInput(
            f"a {type(public).__name__} is not known to be public",
            where="bound",
            why="a clip that was read off sensitive records would have to be paid for",
            remedy="give PublicPictures, and vouch for them",
        )
    records = Dataset(public.x, labels, class_names(classes), name="public stand-ins")
    count = min(STAND_INS, max(1, len(records) // plan.shard_cap))
    teachers = replace(plan, count=count)
    stand_ins = _StandIns.train(records, rows, teachers, engine=work.Engine("serial"))
    norms = cast(_StandIns, stand_ins).residual_norms(x, centre, hints)
    return adaptive_bound(norms, steps=steps, origin=public.origin)
