"""One error family: what happened, where, why it matters, what to do.

Messages never carry sensitive values: they name files, fields and positions, not contents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial


class StillroomError(Exception):
    """The root of every error this package raises on purpose.

    Args:
        what: what happened, one sentence.
        where: the file, option or object it happened in.
        why: why it matters.
        remedy: what to do now.

    >>> str(BadInput("sigma is 0", where="--sigma", why="no noise", remedy="give sigma > 0"))
    'sigma is 0 [--sigma]. Why it matters: no noise. What to do: give sigma > 0.'
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.why = why
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        parts = [self.what + (f" [{self.where}]" if self.where else "")]
        if self.why:
            parts.append(f"Why it matters: {self.why}")
        if self.remedy:
            parts.append(f"What to do: {self.remedy}")
        return ". ".join(part.rstrip(".") for part in parts) + "."

    def __reduce__(self) -> tuple[object, ...]:
        rest = {"where": self.where, "why": self.why, "remedy": self.remedy}
        return partial(type(self), self.what, **rest), ()


@contextmanager
def located(where: object) -> Iterator[None]:
    """Say where an error inside the block happened, if it does not say so itself.

    >>> with located("scans.npz"):
    ...     raise BadInput("there are no records")
    Traceback (most recent call last):
        ...
    stillroom.errors.BadInput: there are no records [scans.npz].
    """
    try:
        yield
    except StillroomError as error:
        error.where = error.where or str(where)
        raise


class BadInput(StillroomError):
    """The caller's input cannot be used; nothing was spent or written."""

    exit_code = 2


def check_ranges(owner: str, checks: Mapping[str, bool]) -> None:
    """Refuse numbers out of range, by name; none of them may depend on a record.

    Args:
        owner: whose arguments they are.
        checks: whether the number of this name is fine.

    Raises:
        BadInput: one is not.
    """
    for name, fine in checks.items():
        if not fine:
            raise BadInput(
                f"{name} is out of range",
                where=name,
                why="it must be fixed, and fit, before the first draw",
                remedy=f"see the arguments of {owner}",
            )


class WrongData(BadInput):
    """The data and the ledger do not belong together."""


class BudgetExhausted(StillroomError):
    """The reservation does not fit the budget; nothing was drawn."""

    exit_code = 3


class DoesNotVerify(StillroomError):
    """A ledger, certificate or bundle is not what it claims to be."""

    exit_code = 4


class NotSanitised(StillroomError):
    """A sensitive value tried to leave by another way than the gate."""


class UnsupportedEvent(StillroomError):
    """An event of a kind or version that no accountant here can price."""

    exit_code = 2


class NumericalDoubt(StillroomError):
    """Two accountants contradict each other, or a loss is not a number."""
