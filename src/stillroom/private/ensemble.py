"""An ensemble: one teacher a hash shard, each a function of its own shard and of public things.

The sharding lemma (privacy.md 0.1) needs exactly that. So records are assigned and put in order by
keyed hashes of their ids, features are computed shard by shard, and whatever has a length takes it
from a public constant, never from the data (K2).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stillroom import engine as work
from stillroom.data import Dataset, shards
from stillroom.errors import BadInput
from stillroom.features import pixels
from stillroom.private.answers import (
    Answers,
    Floats,
    Hints,
    hint_residual,
    hint_sensitivity,
    hint_steps,
)
from stillroom.private.teachers import ridge_scores, train_ridge
from stillroom.randomness import uniforms
from stillroom.vocabulary import Bounded, Integers, Unit

if TYPE_CHECKING:
    from stillroom.private.stacked import Asker

Arrays = Mapping[str, npt.NDArray[Any]]
Rows = Callable[[npt.NDArray[Any]], Floats]
"""Features of records: a fixed or public function."""

RIDGE = "ridge"
STACKED = ("linear", "mlp")
EMPTY = "empty"
"""Which teachers of a group have no records and give the public default."""

MOST = 1e9
"""A larger penalty or step leaves single precision, not only good sense."""

_ORDER = b"stillroom/shard-order/1\0"


@dataclass(frozen=True)
class EnsemblePlan:
    """Everything public about an ensemble, fixed before the records are read.

    Args:
        count: how many teachers.
        key: the public key that assigns ids to shards.
        shard_cap: the most records of a shard; the surplus is dropped by hash order.
        teacher: "ridge", or a network: its name in the zoo, or "package.module:callable".
        ridge: the penalty of a ridge teacher.
        epochs: passes over `shard_cap` places; with `batch` it fixes the number of steps.
        learning_rate: step size of Adam.
        batch: places a step.
        training_seed: initial weights and data order, keyed by the teacher's number; never noise.
        default_class: what a teacher without records votes for.
        stack: teachers a unit of work; networks are trained one by one.

    Raises:
        BadInput: a number is out of range, or the key is empty.

    >>> EnsemblePlan(count=250, key="an example", shard_cap=300).steps
    200
    """

    count: int
    key: str
    shard_cap: int
    teacher: str = RIDGE
    ridge: float = 0.1
    epochs: int = 20
    learning_rate: float = 0.01
    batch: int = 32
    training_seed: int = 0
    default_class: int = 0
    stack: int = 25

    def __post_init__(self) -> None:
        least = {"count": 1, "shard_cap": 1, "epochs": 1, "batch": 1, "stack": 1}
        for name, smallest in {**least, "training_seed": 0, "default_class": 0}.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < smallest:
                raise BadInput(
                    f"{name} must be a whole number of at least {smallest}",
                    where=name,
                    remedy=f"give {name} as a whole number",
                )
        for name in ("ridge", "learning_rate"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 < value <= MOST:
                raise BadInput(
                    f"{name} must be a number above 0, of at most {MOST:g}",
                    where=name,
                    remedy=f"give {name} such as 0.1",
                )
        if not self.key:
            raise BadInput(
                "the shard key is empty",
                where="key",
                why="the key is what makes the shards repeatable",
                remedy="give any public text",
            )

    @property
    def steps(self) -> int:
        """Training steps of every teacher, whatever its shard holds."""
        return self.epochs * math.ceil(self.shard_cap / self.batch)

    @property
    def one_by_one(self) -> bool:
        """Whether a teacher is a unit of work of its own: a network that is not stacked."""
        return self.teacher != RIDGE and self.teacher not in STACKED


class Ensemble(Answers):
    """Teachers on disjoint shards, ready to answer public queries with bounded sums.

    Guarantee: one record (one person, where persons are known), added, removed or changed under
    its id, changes one teacher and leaves all others equal to the last bit.
    Assumes: ids are unique; `rows` and `start` come from public data.

    >>> from stillroom.data import digits
    >>> plan, here = EnsemblePlan(count=20, key="tour", shard_cap=120), work.Engine("serial")
    >>> Ensemble.train(digits(), None, plan, engine=here)
    Ensemble(ridge, count=20, classes=10, unit=record)
    """

    def __init__(
        self,
        plan: EnsemblePlan,
        groups: Sequence[Arrays],
        rows: Rows,
        classes: int,
        unit: Unit,
    ) -> None:
        self.plan = plan
        self.classes, self.unit, self.default_class = classes, unit, plan.default_class
        self._groups = groups
        self._rows = rows

    @classmethod
    def train(
        cls,
        data: Dataset,
        rows: Rows | None,
        plan: EnsemblePlan,
        *,
        engine: work.Engine = work.CORES,
        folder: Path | None = None,
        start: Arrays | None = None,
        on_done: Callable[[int, int], None] = lambda done, total: None,
    ) -> Ensemble:
        """Train every teacher on its own shard.

        Args:
            data: the sensitive records.
            rows: public features, applied to one shard at a time; pixels when left out.
            plan: the public constants.
            engine: where the units of work run; the result does not depend on it.
            folder: keeps finished units, so that an interrupted run goes on; holds sensitive
                weights.
            start: weights from public data that every teacher starts from, by name.
            on_done: told how many units of work are done, and of how many.

        Raises:
            BadInput: more teachers than records; a default class, features or a start that do not
                fit; or a teacher whose features or loss are not finite.
        """
        if plan.count > len(data):
            raise BadInput(
                f"{plan.count} teachers cannot be trained on so few records",
                where="count",
                why="a teacher without records only ever gives its default answer",
                remedy="use fewer teachers than records",
            )
        if plan.default_class >= len(data.classes):
            raise BadInput(
                f"there is no class {plan.default_class}",
                where="default_class",
                why="the default must be an answer that a teacher could give",
                remedy="give the number of a class",
            )
        usual = pictures if plan.one_by_one else pixels
        rows = usual if rows is None else rows
        probe = rows(uniforms(0, "probe of features", size=(2, *data.shape)))
        if probe.ndim < 2 or len(probe) != 2 or (plan.teacher == RIDGE and probe.ndim != 2):
            raise BadInput(
                f"the features of two records have shape {probe.shape}",
                where="rows",
                why="each record needs its own features, and ridge teachers need them in a row",
                remedy="give a function from records to one row a record",
            )
        size = 1 if plan.one_by_one else plan.stack
        own = shard_members(data, plan)
        units = [
            work.Unit(f"teachers-{first:05d}", _payload(data, own[first : first + size], first))
            for first in range(0, plan.count, size)
        ]
        task = partial(train_group, plan, rows, probe.shape[1:], len(data.classes), start)
        groups = work.run_all(
            task,
            units,
            key=_key(plan, data, probe, start),
            engine=engine,
            folder=folder,
            on_done=on_done,
        )
        unit = Unit.RECORD if data.persons is None else Unit.PERSON
        return cls(plan, groups, rows, len(data.classes), unit)

    @property
    def count(self) -> int:
        return self.plan.count

    def hint_residuals(
        self,
        queries: npt.NDArray[Any],
        centre: Floats,
        hints: Hints,
        bound: Fraction | int | str,
        grid: int,
    ) -> Bounded:
        """The sum of the teachers' clipped hints minus the public ones, one row a query.

        Hidden layers of independent teachers do not agree, so each teacher fits, on public records
        alone, a ridge map from its own to the hints of the public auxiliary teacher. The hidden
        layer is the input of the last linear layer; for ridge and linear teachers it is the scores.

        Guarantee: a teacher's row is an integer vector of norm at most floor(bound * grid); two
        such rows are at most twice that apart. A teacher without records adds zero.

        Args:
            queries: public records.
            centre: the auxiliary teacher's hints at the queries.
            hints: the public records and hints that the maps are fitted to.
            bound: the clip.
            grid: how many units one has.

        Raises:
            BadInput: the centre does not fit the queries and hints, or a number is out of range.
        """
        if centre.shape != (len(queries), hints.values.shape[1]) or not np.isfinite(centre).all():
            raise BadInput(
                "the centre is not one finite hint a query, as wide as the public hints",
                where="centre",
                remedy="take the auxiliary teacher's hints at the queries",
            )
        steps = hint_steps(bound, grid)
        total: Integers = np.zeros(centre.shape, dtype=np.int64)
        pairs = zip(self._hidden(queries), self._hidden(hints.x), strict=True)
        for hidden, known in pairs:
            if hidden is not None and known is not None:
                total += hint_residual(hidden, known, hints, centre, steps, grid)
        return Bounded(total, hint_sensitivity(steps, self.unit))

    def fingerprints(self) -> list[str]:
        """A SHA-256 of each teacher's weights, for stability tests; as sensitive as the weights."""
        found = []
        for group in self._groups:
            for teacher in range(len(group[EMPTY])):
                digest = hashlib.sha256()
                for name in sorted(group):
                    digest.update(name.encode() + group[name][teacher].tobytes())
                found.append(digest.hexdigest())
        return found

    def _scores(self, queries: npt.NDArray[Any]) -> Iterator[Floats]:
        inputs = self._rows(queries)
        asker = None if self.plan.teacher == RIDGE else self._asker(inputs)
        for group in self._groups:
            if asker is None:
                scores = ridge_scores(group["weights"], inputs)
            else:
                answers = [asker.scores(state, inputs) for state in _states(group)]
                scores = np.stack(answers, axis=1)
            scores[:, group[EMPTY]] = 0.0
            yield scores

    def _hidden(self, queries: npt.NDArray[Any]) -> Iterator[Floats | None]:
        """The hidden layer of one teacher after another; None where there are no records."""
        if self.plan.teacher in (RIDGE, "linear"):
            for group, scores in zip(self._groups, self._scores(queries), strict=True):
                for teacher, empty in enumerate(group[EMPTY]):
                    yield None if empty else scores[:, teacher]
            return
        inputs = self._rows(queries)
        asker = self._asker(inputs)
        for group in self._groups:
            for empty, state in zip(group[EMPTY], _states(group), strict=True):
                yield None if empty else asker.hidden(state, inputs)

    def _asker(self, inputs: Floats) -> Asker:
        from stillroom.private.stacked import Asker  # torch is heavy, and ridge needs none

        return Asker(self.plan, inputs.shape[1:], self.classes)

    def __repr__(self) -> str:
        return (
            f"Ensemble({self.plan.teacher}, count={self.count}, classes={self.classes}, "
            f"unit={self.unit})"
        )


def pictures(x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Each picture centred and scaled by itself, channels first: what networks are fed.

    >>> pictures(np.zeros((2, 8, 8))).shape
    (2, 1, 8, 8)
    """
    if x.ndim not in (3, 4):
        raise BadInput(
            f"networks need pictures, got records of shape {x.shape[1:]}",
            where="rows",
            remedy="give a function that makes pictures of the records, or another teacher",
        )
    flat = pixels(x)[:, :-1] * np.float32(math.sqrt(math.prod(x.shape[1:])))
    shaped = flat.reshape(x.shape if x.ndim == 4 else (*x.shape, 1))
    return np.ascontiguousarray(shaped.transpose(0, 3, 1, 2))


def shard_members(data: Dataset, plan: EnsemblePlan) -> list[Integers]:
    """The positions of each teacher's records, in hash order, at most `shard_cap` of them."""
    shard = shards(data.units, plan.count, plan.key)
    key = plan.key.encode("utf-8", "surrogatepass")
    places = [
        hmac.digest(key, _ORDER + name.encode("utf-8", "surrogatepass"), "sha256")
        for name in data.ids
    ]
    members: list[list[int]] = [[] for _ in range(plan.count)]
    for position in sorted(range(len(places)), key=places.__getitem__):
        members[shard[position]].append(position)
    return [np.array(own[: plan.shard_cap], dtype=np.int64) for own in members]


def train_group(
    plan: EnsemblePlan,
    rows: Rows,
    width: tuple[int, ...],
    classes: int,
    start: Arrays | None,
    payload: Arrays,
) -> dict[str, npt.NDArray[Any]]:
    """Train the teachers of one unit of work; the engine calls this, maybe elsewhere."""
    first, ends = int(payload["first"]), np.cumsum(payload["sizes"])
    own = [slice(b - n, b) for b, n in zip(ends, payload["sizes"], strict=True)]
    # Shard by shard: even features that look at their neighbours then stay within one teacher.
    features = []
    for offset, part in enumerate(own):
        empty = part.start == part.stop
        with np.errstate(over="ignore"):
            found = np.zeros((0, *width)) if empty else np.asarray(rows(payload["x"][part]))
            found = found.astype(np.float32)
        if found.shape != (part.stop - part.start, *width) or not np.isfinite(found).all():
            raise BadInput(
                f"the features of teacher {first + offset} are not finite, or of another shape",
                where="rows",
                why="a teacher cannot be trained on them",
                remedy="repair the records, or use other features",
            )
        features.append(found)
    labels = [payload["y"][part] for part in own]
    if plan.teacher == RIDGE:
        # Fewer records than features: by the public cap, so that no shard chooses for itself.
        dual = plan.shard_cap <= width[0]
        trained = train_ridge(features, labels, classes, plan.ridge, dual, start)
    else:
        from stillroom.private.stacked import train_networks

        trained = train_networks(plan, features, labels, first, classes, start)
    return {**trained, EMPTY: np.array([len(found) == 0 for found in features])}


def _states(group: Arrays) -> Iterator[dict[str, npt.NDArray[Any]]]:
    for teacher in range(len(group[EMPTY])):
        yield {name: array[teacher] for name, array in group.items() if name != EMPTY}


def _payload(data: Dataset, members: Sequence[Integers], first: int) -> dict[str, Any]:
    together = np.concatenate(members)
    return {
        "x": data.x[together],
        "y": data.y[together],
        "sizes": np.array([len(own) for own in members]),
        "first": np.array(first),
    }


def _key(plan: EnsemblePlan, data: Dataset, probe: Floats, start: Arrays | None) -> str:
    """What finished units belong to: other records, features or numbers make another run."""
    digest = hashlib.sha256(json.dumps(asdict(plan), default=repr, sort_keys=True).encode())
    for name, array in sorted({"probe": probe, **(start or {})}.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    digest.update(json.dumps([data.classes, data.shape, str(data.x.dtype)]).encode())
    order = sorted(range(len(data)), key=data.ids.__getitem__)
    for position in order:
        digest.update(json.dumps([data.ids[position], data.units[position]]).encode())
        digest.update(data.x[position].tobytes() + data.y[position].tobytes())
    return digest.hexdigest()
