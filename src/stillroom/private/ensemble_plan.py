"""What is public about an ensemble, fixed before the records are read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stillroom.errors import check_ranges

RIDGE = "ridge"
STACKED = ("linear", "mlp")

MOST = 1e9
"""A larger penalty or step leaves single precision, not only good sense."""


@dataclass(frozen=True)
class EnsemblePlan:
    """Everything public about an ensemble, fixed before the records are read.

    Args:
        count: how many teachers.
        key: the public key that assigns ids to shards; any text, so that they are repeatable.
        shard_cap: the most records of a shard; the surplus is dropped by hash order.
        teacher: "ridge", or a network: its name in the zoo, or "package.module:callable".
        ridge: the penalty of a ridge teacher.
        epochs: passes over `shard_cap` places; with `batch` it fixes the number of steps.
        learning_rate: step size of Adam.
        batch: places per step.
        training_seed: initial weights and data order, keyed by the teacher's number; never noise.
        default_class: what a teacher without records votes for.
        stack: teachers per unit of work; networks are trained one by one.

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
        counts = ("count", "shard_cap", "epochs", "batch", "stack")
        least = {**dict.fromkeys(counts, 1), "training_seed": 0, "default_class": 0}
        checks = {name: _is_whole(getattr(self, name), least[name]) for name in least}
        for name, value in {"ridge": self.ridge, "learning_rate": self.learning_rate}.items():
            checks[name] = isinstance(value, (int, float)) and 0 < value <= MOST
        check_ranges("EnsemblePlan", {**checks, "key": bool(self.key)})

    @property
    def steps(self) -> int:
        """Training steps of every teacher, whatever its shard holds."""
        return self.epochs * math.ceil(self.shard_cap / self.batch)

    @property
    def one_by_one(self) -> bool:
        """Whether a teacher is a unit of work of its own: a network that is not stacked."""
        return self.teacher != RIDGE and self.teacher not in STACKED


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
