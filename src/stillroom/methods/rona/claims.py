"""What RONA claims beside what holds: its epsilons, its formula, and why (theory.md#rona-claim).

Nothing here is a certificate. The paper's Theorem 2 has no constants, so the formula it stands for,
T-fold composition of a Gaussian, is evaluated exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from stillroom.errors import BadInput
from stillroom.methods.rona.published_plan import PublishedPlan
from stillroom.vocabulary import check_delta


@dataclass(frozen=True)
class Headline:
    """A pair that the paper prints."""

    epsilon: float
    delta: float


PUBLISHED: Mapping[str, Mapping[str, Headline]] = MappingProxyType(
    {
        "privacy": {
            "mnist": Headline(7.68, 1e-5),
            "svhn": Headline(7.03, 1e-6),
            "cifar-10": Headline(8.87, 1e-5),
        },
        "compression": {
            "mnist": Headline(9.60, 1e-5),
            "svhn": Headline(9.83, 1e-6),
            "cifar-10": Headline(9.59, 1e-5),
        },
    }
)
"""By experiment and data set."""

LITERAL = (
    "does not hold: the noise on a loss never reaches the gradient, because it does not depend on "
    "the student. What the student learns is a function of the teacher's own answers; epsilon is "
    "infinite."
)
RESIDUAL = (
    "holds for a larger epsilon: the clipped residual of a batch is noised before it is "
    "back-propagated, and what follows is post-processing. A signed vector moves by 2B, not B; "
    "the certificate counts that and every executed call."
)


def headline_of(dataset: str, public: Fraction) -> tuple[float | None, str]:
    """What the paper prints for a data set, and whether it holds.

    Args:
        dataset: its name.
        public: the share that is public; the paper's compression has four fifths of it.

    >>> headline_of("mnist", Fraction(2, 5))[0], headline_of("digits", Fraction(2, 5))[0]
    (7.68, None)
    """
    experiment = "compression" if public == Fraction(4, 5) else "privacy"
    printed = PUBLISHED[experiment].get(dataset)
    if printed is None:
        return None, f"none for this data set; where the paper has a figure it {LITERAL}"
    return printed.epsilon, f"the paper's figure at delta {printed.delta:g}; it {LITERAL}"


def claimed_epsilon(calls: int, sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """Epsilon of `calls` Gaussian answers, exact, if the noise worked.

    Args:
        calls: how many.
        sigma: noise over the bound B.
        delta: the failure probability.
        sensitivity: how many B one unit moves an answer: 1 for a loss, sqrt 2 for a vector of
            losses, 2 for a signed vector.

    Raises:
        BadInput: a number is not above 0.

    >>> round(claimed_epsilon(3125, sigma=10, delta=1e-5), 1)
    38.7
    """
    from dp_accounting import get_epsilon_gaussian

    if calls < 1 or not 0 < sigma < math.inf or not 0 < sensitivity < math.inf:
        raise BadInput(
            "calls, sigma and sensitivity must be above 0",
            where="claimed_epsilon",
            why="the paper's epsilon is computed from them",
            remedy="give the plan's own numbers",
        )
    multiplier = sigma / (sensitivity * math.sqrt(calls))
    with np.errstate(all="ignore"):  # next to no noise: it searches beyond what floats can hold
        return float(get_epsilon_gaussian(multiplier, check_delta(delta)))


def verdict_on(plan: PublishedPlan, public: int, delta: float) -> str:
    """What the paper's formula gives for a plan, and whether it holds.

    Args:
        plan: the plan.
        public: how many public samples there are.
        delta: where epsilon is wanted.
    """
    formula, executed = plan.claimed_calls(public), plan.calls(public)
    epsilon = claimed_epsilon(formula, float(plan.published.sigma), delta)
    verdict = LITERAL if plan.literal else RESIDUAL
    return (
        f"By the paper's formula: {formula} calls, epsilon {epsilon:.2f} at delta {delta:g} "
        f"(sensitivity B). Executed: {executed}. The claim {verdict}"
    )
