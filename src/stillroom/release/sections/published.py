"""Section `published`: what the method's paper claims, and whether it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stillroom.errors import BadInput
from stillroom.release.files import number_or_none, spelled
from stillroom.release.sections.base import Body, Core, Section


@dataclass(frozen=True)
class Claim:
    """What the paper publishes, and whether it holds.

    Args:
        epsilon: the paper's own figure; None where it has none for this case.
        status: whether it holds and why, in one sentence.

    Raises:
        BadInput: the figure is not a positive number, or nothing is said of its standing.
    """

    epsilon: float | None
    status: str

    def __post_init__(self) -> None:
        if not (self.epsilon is None or self.epsilon > 0) or not self.status.strip():
            raise BadInput(
                "a claim needs an epsilon above 0, or none, and a word on whether it holds",
                where="claim",
                why="a figure without its standing would be taken for a guarantee",
                remedy='write for instance Claim(7.68, "does not hold: ...")',
            )

    def to_json(self) -> Body:
        """The claim for the certificate."""
        return {"epsilon": spelled(self.epsilon), "status": self.status}


NO_CLAIM = Claim(None, "none: no claim was handed over")


def _completed(body: Body | None, core: Core) -> Body:
    if body is None:
        raise ValueError("nothing is said of what the paper claims")
    return Claim(number_or_none(body["epsilon"]), body["status"]).to_json()


def _shown(certificate: Mapping[str, Any]) -> dict[str, Any]:
    return {"claim": certificate["sections"]["published"]}


SECTION = Section("published", Claim.to_json, _completed, _shown, place="tile")
