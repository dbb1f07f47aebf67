"""What ordinary teachers say of a student's outputs: gradients, bounded and summed.

Eq. 4 of Liu et al. 2023. One teacher: the gradients of a batch's pictures are summed. Several:
those of the teachers, picture by picture. The terms of a sum are brought to a norm of C one by one
(reading P), or by the norm of all of them together (reading G).

Claim: a sum of m integer vectors v_i. Reading P: each has a norm of at most `steps`, so the sum has
one of at most m * steps. Reading G: sum_i ||v_i||^2 <= steps^2, and by Cauchy-Schwarz, one
coordinate after the other and in integers, ||sum_i v_i||^2 <= m * steps^2. Teachers that saw the
same records all change with one of them: D is twice that norm, for every unit and relation. On
disjoint shards one term of reading P changes, and D = 2 * steps (theory.md#dpdfd).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stillroom.data import Dataset, shards
from stillroom.engine import Engine
from stillroom.errors import BadInput, check_ranges
from stillroom.models.supervised import SupervisedTraining
from stillroom.private.plain import (
    Doubles,
    PlainTeacher,
    joined,
    train_for_the_owner,
)
from stillroom.private.quantise import check_ball, clip_to_ball
from stillroom.private.sealed import Records, opened
from stillroom.private.unprotected import unprotected
from stillroom.vocabulary import Bounded, Integers, Norm, Sensitivity, Unit

FINE_GRID = 1 << 28
"""Units of 1 in a derivative that leaves unprotected."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""Student's and teacher's logits of a batch to its mean loss."""


@dataclass(frozen=True)
class TermBound:
    """How the terms of a sum are brought to a norm of C; all of it public.

    Args:
        bound: C, where terms are clipped; normalised ones do not depend on it.
        steps: grid units that C has.
        together: by the norm of all terms of a sum (reading G), or one by one (reading P).
        normalised: C g / (||g|| + e), or clipped: C g / max(||g||, C).
        stability: e.

    Raises:
        BadInput: a number is out of range.
    """

    bound: float
    steps: int
    together: bool
    normalised: bool = True
    stability: float = 1e-8

    def __post_init__(self) -> None:
        check_ball(self.steps)
        fine = {"bound": 0 < self.bound < np.inf, "stability": 0 < self.stability < np.inf}
        check_ranges("TermBound", fine)

    def squared_distance(self, terms: int, moved: int) -> int:
        """How far a sum of `terms` can move, squared, when `moved` of them change at will."""
        if self.together:
            return 4 * terms * self.steps**2
        return 4 * (moved * self.steps) ** 2

    def sums(self, terms: Doubles) -> Integers:
        """Integer sums over the terms: (sums, terms, coordinates) to (sums, coordinates)."""
        count, many, width = terms.shape
        rows = terms.reshape((count, many * width) if self.together else (count * many, width))
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            rows = rows * (self.steps / (norms + self.stability if self.normalised else self.bound))
        bounded = clip_to_ball(rows, self.steps).reshape(terms.shape)
        total: Integers = bounded.sum(axis=1)
        return total

    def open_sums(self, terms: Tensor) -> Tensor:
        """The same sums in units of C, neither on a grid nor checked: to be differentiated."""
        count, many, width = terms.shape
        rows = terms.reshape((count, many * width) if self.together else (count * many, width))
        norms = rows.norm(dim=1, keepdim=True)
        over = norms + self.stability if self.normalised else norms.clamp_min(self.bound)
        total: Tensor = (rows / over).reshape(terms.shape).sum(1)
        return total


class PlainTeachers:
    """Ordinary teachers, asked for the gradients of a student's outputs.

    Guarantee: none by itself; `gradients` bounds what one answer shows, see there.
    Assumes: pictures, the student's outputs and the loss are public or sanitised.

    Args:
        teachers: one, or those of the paper's extension to several models.
        sharded_by: the unit by whose hash the records were dealt to the teachers; None where each
            saw all records.

    Raises:
        BadInput: there is none.
    """

    def __init__(self, teachers: Sequence[PlainTeacher], sharded_by: Unit | None = None) -> None:
        check_ranges("PlainTeachers", {"teachers": len(teachers) > 0})
        self._teachers, self._sharded_by = list(teachers), sharded_by

    def __repr__(self) -> str:
        return "PlainTeachers(<hidden>)"

    def gradients(self, queries: Tensor, student: Tensor, loss: Loss, rule: TermBound) -> Bounded:
        """One sum over the batch for one teacher; for several, one over them per picture.

        Guarantee: each row is an integer vector within the norm that the module's claim gives, for
        all teachers; D is twice that for every unit and relation where all teachers may change.

        Args:
            queries: pictures, as networks are given them.
            student: the student's logits of them.
            loss: whose gradient with respect to the student's logits is told.
            rule: how its terms are bounded.

        Raises:
            BadInput: teachers on shards are normalised together, for which nothing is proven.
        """
        with torch.no_grad():
            terms = self._terms(queries, student.detach(), loss)
        rows = rule.sums(terms.double().numpy())
        many = terms.shape[1]
        if self._sharded_by is None:
            squared = rule.squared_distance(many, moved=many)
            return Bounded(rows, Sensitivity.uniform(Norm.L2_SQUARED, squared, Unit.PERSON))
        if rule.together:
            raise BadInput(
                "teachers on shards are bounded one by one",
                where="reading",
                why="by a common norm a record would move what all other teachers say",
                remedy="use the reading per-sample",
            )
        squared = rule.squared_distance(many, moved=1)
        return Bounded(rows, Sensitivity.uniform(Norm.L2_SQUARED, squared, self._sharded_by))

    def open_derivative(
        self, queries: Tensor, student: Tensor, loss: Loss, rule: TermBound, direction: Tensor
    ) -> Bounded:
        """What a generator is told where the noisy gradient is no constant; unprotected.

        The derivative, along `direction`, of the bounded sums in units of C: with respect to the
        pictures through the teachers, then with respect to the student's logits, as one row. Noise
        has no derivative, so none of it is noisy.
        """
        with torch.enable_grad():
            pictures = queries.detach().clone().requires_grad_()
            said = student.detach().clone().requires_grad_()
            total = (rule.open_sums(self._terms(pictures, said, loss)) * direction).sum()
            parts = torch.autograd.grad(total, [pictures, said])
        flat = np.concatenate([part.double().numpy().ravel() for part in parts])
        return unprotected(flat, FINE_GRID)

    def _terms(self, queries: Tensor, student: Tensor, loss: Loss) -> Tensor:
        """Gradients g_i of each picture's loss: (1, pictures, K), or (pictures, teachers, K)."""
        found, wanted = [], torch.is_grad_enabled()
        for teacher in self._teachers:
            taught = teacher.in_the_clear(queries)
            with torch.enable_grad():
                said = student if wanted else student.clone().requires_grad_()
                # The loss is a mean, and each picture's own gradient is wanted.
                whole = loss(said, taught) * len(said)
                (gradient,) = torch.autograd.grad(whole, said, create_graph=wanted)
            found.append(gradient)
        return found[0][None] if len(found) == 1 else torch.stack(found, 1)


def train_teachers(
    records: Records,
    public: Dataset,
    training: Callable[[Dataset], SupervisedTraining],
    count: int,
    *,
    key: str | None,
    engine: Engine,
    folder: Path,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> PlainTeachers:
    """Several networks trained without any protection, on all records or on disjoint shards.

    Guarantee: none; see `PlainTeachers` for what may leave them. With a key, a record (or person,
    where the records name persons) is in one teacher's shard, whatever the others are.

    Args:
        records: the sensitive records.
        public: the public ones, which each teacher sees.
        training: what to train on some of them.
        count: how many teachers.
        key: deals the sensitive records to the teachers by hash; None where each sees all.
        engine: where to train.
        folder: private work, for its owner alone.
        on_done: told how many trainings are done.
    """
    sensitive = opened(records)
    parts, sharded_by = [sensitive] * count, None
    if key is not None:
        shard = shards(sensitive.units, count, key)
        parts = [sensitive.select(np.flatnonzero(shard == number)) for number in range(count)]
        sharded_by = Unit.RECORD if sensitive.persons is None else Unit.PERSON
    wanted = [training(joined(public, part)) for part in parts]
    # Teachers that saw the same records differ in where they start.
    wanted = [replace(one, start_seed=one.start_seed + i) for i, one in enumerate(wanted)]
    networks = train_for_the_owner(wanted, engine=engine, folder=folder, on_done=on_done)
    return PlainTeachers([PlainTeacher(n, wanted[0].scale) for n in networks], sharded_by)
