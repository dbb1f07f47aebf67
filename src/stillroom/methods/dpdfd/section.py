"""The numbers of DPDFD's student."""

from __future__ import annotations

from pydantic import Field

from stillroom.recipe import Section, Seed


class DpdfdSection(Section):
    """A student that never saw a real picture."""

    student: str = Field("student-50k", description="a name in the zoo, or package.module:callable")
    start_seed: Seed = Field(0, description="of weights and latent numbers; never of noise")
