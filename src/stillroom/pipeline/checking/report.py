"""What a check has found: facts, notes and misfits, for the operator's eyes alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from stillroom.errors import BadInput, StillroomError
from stillroom.extras import EXTRA_OF, unloaded


@dataclass
class Report:
    """Everything that was found, in the order in which it was looked at.

    Args:
        facts: what the operator is told, by name; some of it exact and not private.
        per_class: records of each class, by part.
        seconds: about how long each phase of a release takes.
        notes: what the operator should know, and what may be done; a release could start.
        misfits: what a release would refuse, or be stopped by.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    per_class: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    misfits: list[StillroomError] = field(default_factory=list)

    @property
    def could_start(self) -> bool:
        """Whether nothing stands in the way of a release."""
        return not self.misfits

    @contextmanager
    def collecting(self, what: str) -> Iterator[None]:
        """Go on after a refusal inside the block, and keep it.

        Args:
            what: is looked at.
        """
        try:
            yield
        except StillroomError as misfit:
            self.misfit(misfit)
        except ModuleNotFoundError as fault:
            package = (fault.name or "").partition(".")[0]
            if package not in EXTRA_OF:
                raise
            why = f"{what} needs it"
            extra = EXTRA_OF[package]
            self.misfit(unloaded(package, what, why, absent=True, extra=extra))
        except MemoryError:
            self.misfit(
                BadInput(
                    f"there is not enough memory for {what}",
                    where=what,
                    why="a release would end there as well",
                    remedy="give smaller files, or use a machine with more memory",
                )
            )

    def misfit(self, found: StillroomError) -> None:
        """Keep a misfit, unless it is known already."""
        known = {(misfit.what, misfit.where) for misfit in self.misfits}
        if (found.what, found.where) not in known:
            self.misfits.append(found)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "could_start": self.could_start,
            "facts": self.facts,
            "per_class": self.per_class,
            "seconds": self.seconds,
            "notes": self.notes,
            "misfits": [
                {"what": m.what, "where": m.where, "why": m.why, "remedy": m.remedy}
                for m in self.misfits
            ],
        }
