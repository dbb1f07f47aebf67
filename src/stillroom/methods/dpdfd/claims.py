"""What DPDFD claims beside what holds: its theorem, its tables, and why (theory.md#dpdfd).

Nothing here is a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from stillroom.errors import check_ranges
from stillroom.methods.dpdfd.published_plan import STEPS, PublishedPlan
from stillroom.release.sections.published import Claim
from stillroom.vocabulary import check_delta

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe
    from stillroom.sources import Facts

DELTA = 1e-5
"""The paper's."""


@dataclass(frozen=True)
class Headline:
    """A student's accuracy that the paper prints, at an epsilon that it claims."""

    epsilon: float
    accuracy: float


def _of(*pairs: tuple[float, float]) -> tuple[Headline, ...]:
    # A certificate's numbers are compared as they are spelled: 1 is not 1.0.
    return tuple(Headline(float(epsilon), accuracy) for epsilon, accuracy in pairs)


PUBLISHED: Mapping[str, tuple[Headline, ...]] = MappingProxyType(
    {
        "mnist": _of((1, 0.9512), (10, 0.9751)),
        "fashion-mnist": _of((1, 0.8386), (10, 0.8988)),
        "cifar-10": _of((2, 0.8601)),
    }
)
"""Data-free, by data set: Table 1, and Table 2 for CIFAR-10."""
PUBLISHED_DIRECT: Mapping[str, tuple[Headline, ...]] = MappingProxyType(
    {
        "mnist": _of((0.5, 0.9377), (0.7, 0.9447), (1, 0.9762)),
        "cifar-10": _of((2, 0.8652), (4, 0.8708), (8, 0.8973)),
    }
)
"""By training on the private records themselves: Table 4."""

FALSE = (
    "does not hold: signal and noise both scale with the bound C, so C cannot make epsilon "
    "smaller; and one record moves the teacher's answers to a whole batch together"
)
DIRECT = (
    "does not hold: an update is the noisy gradient times the Jacobian at the record, for a linear "
    "layer a multiple of the record itself. Where the records are public, labels alone are "
    "protected"
)
NOT_DETACHED = (
    "does not hold: the generator's gradient passes through the teacher, and noise has no "
    "derivative. Epsilon is infinite"
)


def claimed_epsilon(
    *, bound: float, batch: int, iterations: int, sigma: float, delta: float, teachers: int = 1
) -> float:
    """Theorem 3, at its best order lambda > 1.

    2 C^2 n B T lambda / sigma^2 + log((lambda - 1) / lambda)
    - (log delta + log lambda) / (lambda - 1)

    Args:
        bound: C.
        batch: B.
        iterations: T.
        sigma: noise over the bound.
        delta: the failure probability.
        teachers: n.

    Raises:
        BadInput: a number is not above 0.

    >>> round(claimed_epsilon(bound=1e-3, batch=1, iterations=1, sigma=1, delta=1e-5), 4)
    0.0051
    """
    fine = {"bound": bound, "batch": batch, "iterations": iterations, "sigma": sigma}
    check_ranges(
        "claimed_epsilon", {k: 0 < v < math.inf for k, v in (fine | {"n": teachers}).items()}
    )
    per_order = 2 * bound**2 * teachers * batch * iterations / sigma**2
    log_delta = math.log(check_delta(delta))

    def epsilon(above: float) -> float:
        """At the order 1 + e^above."""
        over = math.exp(above)
        order = 1 + over
        return per_order * order + above - math.log(order) - (log_delta + math.log(order)) / over

    best = min(np.linspace(-20, 40, 6001).tolist(), key=epsilon)
    fine_steps = np.linspace(best - 0.01, best + 0.01, 2001).tolist()
    # Beyond an order of 1 / delta the formula falls below 0, which no epsilon does.
    return max(0.0, min(map(epsilon, fine_steps)))


def true_epsilon(plan: PublishedPlan, delta: float) -> float:
    """What the noisy gradients of a plan cost, exact: composed Gaussians, D as it is.

    It stands beside the gate's own figure, which ends at about 70.

    Args:
        plan: a plan whose noise is given.
        delta: where epsilon is wanted.
    """
    from dp_accounting import get_epsilon_gaussian

    if not plan.part.detached:
        return math.inf
    distance = math.sqrt(plan.squared_distance) / STEPS
    multiplier = float(plan.sigma) / (distance * math.sqrt(plan.answers))
    with np.errstate(all="ignore"):  # next to no noise: it searches beyond what floats can hold
        return float(get_epsilon_gaussian(multiplier, check_delta(delta)))


def claim_of(recipe: DpdfdRecipe, facts: Facts) -> Claim:
    """What the paper publishes: by its theorem for its own algorithm, else for the data set."""
    if recipe.source != "plain":
        return _printed(recipe.data.source, recipe.privacy.epsilon)
    plan, delta = recipe.published_plan, recipe.privacy.delta
    if plan.sought:
        said = "the theorem has no figure for a noise that is found for an epsilon that holds; it "
        return Claim(None, f"none: {said}{FALSE}")
    part = plan.part
    claimed = claimed_epsilon(
        bound=part.bound,
        batch=part.batch,
        iterations=part.iterations,
        sigma=float(plan.sigma),
        delta=delta,
        teachers=part.teachers,
    )
    true = true_epsilon(plan, delta)
    if part.direct:
        return Claim(
            claimed or None,
            f"By Theorem 3, with C {part.bound:g}: epsilon {claimed:.4f} at delta {delta:g}. The "
            f"claim {DIRECT}. With what one label really moves: {true:.4g}",
        )
    counted = (
        NOT_DETACHED
        if math.isinf(true)
        else f"{FALSE}. With what one record really moves: {true:.4g}"
    )
    return Claim(
        claimed or None,
        f"By Theorem 3, with C {part.bound:g}: epsilon {claimed:.4f} at delta {delta:g}. The claim "
        f"{counted}",
    )


def _printed(dataset: str, asked: float) -> Claim:
    """The figure for the data set whose epsilon is nearest to the one asked for."""
    printed = PUBLISHED.get(dataset)
    if printed is None:
        return Claim(None, f"none for this data set; where the paper has a figure it {FALSE}")
    nearest = min(printed, key=lambda one: abs(math.log(one.epsilon / asked)))
    accuracies = ", ".join(f"{one.accuracy:.2%} at {one.epsilon:g}" for one in printed)
    return Claim(
        nearest.epsilon,
        f"the paper prints accuracies of {accuracies}, at delta {DELTA:g}; the epsilon {FALSE}",
    )
