"""Section [student] of method votes: who learns from few noisy votes and many public records."""

from __future__ import annotations

from pydantic import Field

from stillroom.recipe import Section


class StudentSection(Section):
    """A network that learns what votes and neighbours say of all public records."""

    model: str = Field("wavelet-70k", description="a name in the zoo, or package.module:callable")
