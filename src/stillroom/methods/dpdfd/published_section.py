"""The numbers of DPDFD's Algorithm 1 and its extension to several teachers, for source plain."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from stillroom.recipe import Exact, Section
from stillroom.recipe.section import LARGEST_RATE, MOST_DRAWS

MOST_TEACHERS = 1000
PAPERS_SIGMA = Fraction(100)
"""The best of the paper's Table 5."""


REFUSED = (
    "published.direct: training on the records themselves protects no record. Only the gradient of "
    "the outputs is noisy, and it is multiplied by the Jacobian at the record: a linear layer's "
    "update is a multiple of the record itself, at a cosine of 1.0, whatever the noise. Use source "
    'trained; or, where all but the labels is public, data.unit = "label"'
)


class PublishedSection(Section):
    """The paper's Algorithm 1, in each of its readings; gamma_g, alpha and beta: [generator]."""

    reading: Literal["batch", "per-sample"] = Field(
        "batch",
        description="the norm that gradients are divided by: of all that are summed, or each",
    )
    operation: Literal["normalise", "clip"] = Field(
        "normalise", description="what brings gradients to the bound"
    )
    detached: bool = Field(
        True, description="whether the noisy gradient is a constant to the generator; else infinite"
    )
    direct: bool = Field(
        False, description="train on the records themselves; protects labels alone, no records"
    )
    iterations: int = Field(1000, ge=1, le=MOST_DRAWS, description="T")
    batch: int = Field(64, ge=1, le=65_536, description="B, synthetic pictures per iteration")
    sigma: Exact | None = Field(
        None, gt=0, description="noise over the bound; 100, or sought in mode certified"
    )
    bound: float = Field(1e-3, gt=0, le=LARGEST_RATE, description="C")
    stability: float = Field(1e-8, gt=0, le=LARGEST_RATE, description="e")
    gamma: float = Field(1e3, gt=0, le=LARGEST_RATE, description="how far outputs are moved")
    student_rate: float = Field(1e-3, gt=0, le=LARGEST_RATE, description="gamma_s")
    optimiser: Literal["adam", "sgd"] = Field(
        "adam", description="of student and generator; the algorithm prints plain steps"
    )
    temperature: float = Field(4.0, gt=0, le=LARGEST_RATE, description="of the distillation loss")
    target_weight: float = Field(
        1.0, ge=0, le=LARGEST_RATE, description="of its target's part (Zhao et al. 2022)"
    )
    others_weight: float = Field(
        8.0, ge=0, le=LARGEST_RATE, description="of its part of the other classes"
    )
    entropy: Literal["batch", "sample"] = Field(
        "batch", description="of the batch's mean, which balances classes, or of each picture"
    )
    activation: Literal["printed", "argued"] = Field(
        "printed", description="the norm of features made small, or large as the text argues"
    )
    teachers: int = Field(1, ge=1, le=MOST_TEACHERS, description="n, ordinary teachers")
    sharing: Literal["shared", "disjoint"] = Field(
        "shared", description="for several teachers: each saw all records, or a shard of its own"
    )

    def misfits(self, mode: str, unit: str) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together: text -> whether they are."""
        several, certified = self.teachers > 1, mode == "certified"
        return {
            REFUSED: self.direct and unit != "label",
            "data.unit: label is for published.direct": unit == "label" and not self.direct,
            "published.teachers: with published.direct there is none": self.direct and several,
            "published.detached: with published.direct there is no generator": self.direct
            and not self.detached,
            "published.sharing: there is only one teacher": not several
            and "sharing" in self.model_fields_set,
            "published.reading, published.sharing: teachers on shards are bounded one by one": (
                several and self.sharing == "disjoint" and self.reading == "batch"
            ),
            "published.sigma: mode certified finds the noise for privacy.epsilon": certified
            and self.sigma is not None,
            f"published.iterations: at most {MOST_DRAWS} answers, and each picture of several "
            "teachers' is one": several and self.iterations * self.batch > MOST_DRAWS,
            "published: certified are one teacher, reading batch and detached alone": certified
            and not self.sound,
        }

    @property
    def sound(self) -> bool:
        """Whether mode certified has it: one ordinary teacher behind one norm, and no other path.

        Each reading that is detached has a true price; this is the one that is worth paying. Of
        labels alone, each has.
        """
        one_teacher = self.reading == "batch" and self.detached and self.teachers == 1
        return self.direct or one_teacher
