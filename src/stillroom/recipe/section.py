"""What every section of a recipe is: a table of checked numbers that is itself the plan."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from stillroom.documents import exact
from stillroom.errors import BadInput

MOST_DRAWS = 100_000
"""The largest number of draws of one kind; their price takes seconds to compute."""
MOST_EPOCHS = 10_000
"""The largest number of passes over records."""
MOST_PICTURES = 10_000_000
MOST_NUMBERS = 65_536
"""The largest number of coordinates."""
MOST_VIEWS = 1000
LARGEST_RATE = 1e12
"""Of a learning rate, a temperature and the like, none of which changes a price."""
SMALLEST, LARGEST = Fraction(1, 10**12), Fraction(10**12)
"""Of a share, a norm or a scale of noise that is not 0."""
LONGEST_NUMBER = 40
LONGEST_KEY = 60


def _exact(value: Any) -> Fraction:
    """A share as it is written: 0.5 and "1/2" are both one half."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("should be a number or a fraction such as '1/2'")
    if isinstance(value, str) and len(value) > LONGEST_NUMBER:
        raise ValueError(f"should be a number of at most {LONGEST_NUMBER} characters")
    try:
        found = exact(value)
    except ValueError:
        raise ValueError("should be a number or a fraction such as '1/2'") from None
    if found and not SMALLEST <= abs(found) <= LARGEST:
        raise ValueError("should be 0, or lie between 1e-12 and 1e12")
    return found


Exact = Annotated[Fraction, BeforeValidator(_exact)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Section(BaseModel):
    """A table of a recipe: its fields are the numbers that a plan is made of, checked once."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @classmethod
    def of(cls, **numbers: Any) -> Self:
        """A section from Python.

        Raises:
            BadInput: a number is missing, unknown or out of range; all faults are named.
        """
        try:
            return cls.model_validate(numbers)
        except ValidationError as error:
            faults = [
                f"{'.'.join(map(shown_key, fault['loc']))}: {fault['msg'].lower()}"
                for fault in error.errors(include_url=False)
            ]
            raise BadInput(
                "; ".join(faults),
                where=cls.__name__,
                why="everything must be fixed before the first draw",
                remedy=f"see the fields of {cls.__name__}",
            ) from None


def shown_key(key: object) -> str:
    """A key for a message: what stands in a file must not control a terminal."""
    text = str(key)[:LONGEST_KEY]
    return text if text.isprintable() else ascii(text)
