"""Section [entities]: many holders of sensitive records, who pool nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from stillroom.data.dealing import Dealing
from stillroom.recipe.common import LARGEST_EPSILON, MOST_UNITS
from stillroom.recipe.section import LARGEST_RATE, Exact, Section, Seed

MOST_ENTITIES = 10_000
Own = Annotated[float, Field(gt=0, le=LARGEST_EPSILON)]


class EntitiesSection(Section):
    """Who holds the sensitive records: each entity has its own records, teacher and ledger.

    >>> EntitiesSection.of(count=12, largest=300).names[:2]
    ['entity-01', 'entity-02']
    """

    count: int = Field(ge=2, le=MOST_ENTITIES, description="how many there are")
    largest: int = Field(
        ge=1, le=MOST_UNITS, description="the most records of an entity; a public constant"
    )
    split: Literal["even", "uneven"] = Field(
        "even", description="how the records of one data set are dealt: alike, or as they come"
    )
    smallest: int = Field(
        10, ge=1, le=MOST_UNITS, description="uneven: about the fewest records of an entity"
    )
    concentration: float = Field(
        0.3, gt=0, le=LARGEST_RATE, description="uneven: small makes entities of few classes"
    )
    deal_seed: Seed = Field(0, description="of uneven parts, and of the lottery; never of noise")
    epsilons: list[Own] | None = Field(
        None,
        min_length=1,
        max_length=MOST_ENTITIES,
        description="each entity's own epsilon, given in turn; privacy.epsilon when left out",
    )
    weights: Literal["equal", "budget"] = Field(
        "equal",
        description="with own epsilons: votes count alike and small budgets end first, or votes "
        "weigh as much as their budget allows and nobody ends early",
    )
    participation: Exact = Field(
        Fraction(1),
        gt=0,
        le=1,
        description="the share of queries that an entity answers, by a public lottery",
    )
    dropouts: int = Field(
        0, ge=0, le=MOST_ENTITIES, description="entities that may vanish during a session"
    )
    colluding: int = Field(
        0, ge=0, le=MOST_ENTITIES, description="entities that may share what they know"
    )
    per_person: int = Field(
        1, ge=1, le=1000, description="entities that may know the same person; assumed"
    )

    @property
    def names(self) -> list[str]:
        """Of the entities, in order."""
        digits = len(str(self.count))
        return [f"entity-{number:0{digits}d}" for number in range(1, self.count + 1)]

    @property
    def dealing(self) -> Dealing:
        """How the records of one data set are dealt to them."""
        uneven = self.split == "uneven"
        return Dealing(
            self.count,
            self.largest,
            smallest=self.smallest if uneven else None,
            concentration=self.concentration,
            deal_seed=self.deal_seed,
        )

    def epsilon_of(self, name: str, usual: float) -> float:
        """An entity's own epsilon.

        Args:
            name: of the entity.
            usual: that of the recipe.
        """
        if self.epsilons is None:
            return usual
        return self.epsilons[self.names.index(name) % len(self.epsilons)]

    def misfits(self, declared_size: int, epsilon: float) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        given, n, d, c = self.model_fields_set, self.count, self.dropouts, self.colluding
        uneven = {"smallest", "concentration"} & given
        return {
            "entities.count: more entities than data.declared_size records": n > declared_size,
            "entities.smallest, entities.concentration: only for an uneven split": (
                self.split == "even" and bool(uneven)
            ),
            "entities.smallest: more than entities.largest": self.split == "uneven"
            and self.smallest > self.largest,
            "entities.weights: there are no entities.epsilons": self.epsilons is None
            and self.weights == "budget",
            "entities.epsilons: the largest must be privacy.epsilon": self.epsilons is not None
            and max(self.epsilons) != epsilon,
            "entities.dropouts, entities.colluding: a secure sum needs count > 2 dropouts + "
            "colluding": not (n - d > c and n > 2 * d + c),
        }
