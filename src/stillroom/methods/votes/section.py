"""The numbers of votes: what entities are asked, how they answer, and who learns from it."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from stillroom.recipe import Exact, Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_DRAWS, MOST_EPOCHS

SECURE_SUM, SUMMED = "secure-sum", "summed-response"
LOCAL = ("response", "unary", "geometric")
IN_SUMS = (SECURE_SUM, SUMMED)


class VotesSection(Section):
    """What entities are asked, and how they answer."""

    report: Literal["secure-sum", "summed-response", "response", "unary", "geometric"] = Field(
        "secure-sum",
        description="a secure sum of votes with shares of noise, or of randomised responses; or "
        "reports that anyone may see: randomised response, unary encoding, truncated geometric",
    )
    queries: int = Field(200, ge=1, le=MOST_DRAWS, description="questions that are paid for")
    selection: Literal["random", "k-centre", "groups"] = Field(
        "random",
        description="which public records are asked about; or one question per group of them",
    )
    smoothing: int = Field(
        0,
        ge=0,
        le=20,
        description="rounds in which a teacher averages its own scores over public neighbours",
    )
    threshold: Exact | None = Field(
        None,
        gt=0,
        le=1,
        description="secure-sum: ask in full only where this share of the entities seems to agree",
    )
    threshold_noise: Exact = Field(
        Fraction(3), gt=0, description="noise of that test, in units of the votes' noise"
    )
    tested: int | None = Field(
        None, ge=1, le=MOST_DRAWS, description="with a threshold: questions that are tested"
    )
    abstain: float | None = Field(
        None, gt=0, lt=1, description="an entity less sure than this abstains; costs as one vote"
    )
    teacher: str = Field(
        "ridge", description="ridge over features; or a network: its name, package.module:callable"
    )
    ridge: float = Field(
        0.1, gt=0, le=LARGEST_RATE, description="penalty of an entity's linear layer"
    )
    epochs: int = Field(
        20, ge=1, le=MOST_EPOCHS, description="of an entity's network over its records"
    )
    query_seed: Seed = Field(0, description="of queries and groups; never of noise")

    @property
    def local(self) -> bool:
        """Whether reports are seen one by one: nobody is trusted."""
        return self.report in LOCAL

    @property
    def questions(self) -> int:
        """How many public records, or groups, are chosen: with a threshold, to be tested."""
        return self.queries if self.threshold is None else (self.tested or self.queries)

    def misfits(self, public_records: int | None = None) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        given = self.model_fields_set
        return {
            "votes.threshold: only for votes.report secure-sum": self.threshold is not None
            and self.report != SECURE_SUM,
            "votes.tested, votes.threshold_noise: there is no votes.threshold": (
                self.threshold is None and bool({"tested", "threshold_noise"} & given)
            ),
            "votes.tested: fewer questions than votes.queries": self.questions < self.queries,
            "votes.abstain: an entity that abstains in a sum of responses would still be counted": (
                self.abstain is not None and self.report == SUMMED
            ),
            "votes.ridge: only for teacher ridge": self.teacher != "ridge" and "ridge" in given,
            "votes.epochs: only for networks": self.teacher == "ridge" and "epochs" in given,
        }


class PublishedSection(Section):
    """Zhao's scheme as it was printed."""

    epsilon: Exact = Field(Fraction(1), gt=0, le=40, description="of one report")
