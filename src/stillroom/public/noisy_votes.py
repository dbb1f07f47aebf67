"""From noisy votes to soft labels: post-processing of what came through the gate.

`posterior` asks which class most likely stands behind a noisy row: a row that noise has drowned
becomes nearly uniform and teaches little, while a clear one becomes nearly certain; many weak
labels then teach more than a few strong ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.vocabulary import Integers, Sanitised

Reals = npt.NDArray[np.float64]


def vote_shares(answers: Sequence[Sanitised[Integers]], *, teachers: int, grid: int) -> Reals:
    """The noisy mean of the teachers' votes, one row per question, which may leave the simplex.

    Args:
        answers: noisy sums of votes in units of 1/grid.
        teachers: how many were asked, a public number.
        grid: how many units a whole vote has.
    """
    return np.concatenate([answer.value for answer in answers]) / float(teachers * grid)


def posterior(shares: Reals, noise: float, lead: float | None = None) -> Reals:
    """How likely each class is behind each noisy row: softmax(lead * share / noise^2).

    That is Bayes' rule, with classes equally likely beforehand, where the teachers give the right
    class `lead` more of their votes than each other class. In counts of n teachers with noise
    sigma it reads softmax(lead * n * count / sigma^2).

    Args:
        shares: noisy vote shares, one row per question.
        noise: standard deviation of a share.
        lead: between 0 and 1; estimated from the rows themselves when left out.

    Raises:
        BadInput: the noise is not above 0, or the lead is not in [0, 1].

    >>> posterior(np.array([[0.9, 0.1], [0.4, 0.6]]), noise=0.4, lead=0.8).round(2).tolist()
    [[0.98, 0.02], [0.27, 0.73]]
    """
    if not 0 < noise < float("inf"):
        raise BadInput(
            "the noise of a vote share must be a number above 0",
            where="noise",
            why="the right class is weighed against it",
            remedy="give the sigma of the votes over teachers times grid",
        )
    lead = typical_lead(shares, noise) if lead is None else lead
    if not 0 <= lead <= 1:
        raise BadInput(
            "the teachers' lead must lie in [0, 1]",
            where="lead",
            why="it is a difference of two shares of the votes",
            remedy="give a lead such as 0.8, or leave it out",
        )
    weight = lead * (shares - shares.max(axis=1, keepdims=True)) / noise**2
    raised = np.exp(np.maximum(weight, -700.0))
    likely: Reals = raised / raised.sum(axis=1, keepdims=True)
    return likely


def typical_lead(shares: Reals, noise: float) -> float:
    """How far the teachers' first class is ahead of the others, without the noise's own part.

    A lead l makes a row l^2 (1 - 1/K) long, squared, around its mean; noise adds K - 1 times its
    variance, which is known. Soft votes at a high temperature lead by much less than hard ones. A
    lead below its own standard error cannot be told from it, and counts as that: rows stay ordered.

    >>> rows = np.array([[0.9, 0.1, 0.0], [0.0, 0.95, 0.05]])
    >>> round(typical_lead(rows, noise=0.01), 2)
    0.89
    """
    if not len(shares):
        return 0.0
    classes = shares.shape[1]
    around = shares - shares.mean(axis=1, keepdims=True)
    squared = float((around * around).sum(axis=1).mean()) - (classes - 1) * noise**2
    # The squared length of pure noise has K - 1 degrees of freedom.
    error = noise**2 * float(np.sqrt(2 * (classes - 1) / len(shares)))
    return float(np.sqrt(min(max(squared, error) / (1 - 1 / classes), 1.0)))
