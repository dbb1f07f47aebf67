"""From noisy reports of many entities to chances of the classes: post-processing of what was told.

Reports went through channels whose laws are public, so the class behind a question is found by its
likelihood: entities with less noise weigh more by themselves. A plurality of reports is what Zhao
2018 takes instead; with clamped reports it is wrong even when all entities agree (theory.md#zhao).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stillroom.vocabulary import Integers

Reals = npt.NDArray[np.float64]
RIGHT = 0.8
"""How often an entity's own answer is taken to be right; the other classes share the rest."""
ABSTAINING = 0.2
"""How often an entity is taken to abstain, where it may."""


@dataclass(frozen=True, eq=False)
class Reports:
    """What one entity reported.

    Args:
        places: the questions it answered.
        told: its reports, one per question: a number, or a row of bits.
        law: the chance of each report, one row per answer; of a row of bits, that each is set.
    """

    places: Integers
    told: Integers
    law: Reals


def likelihoods(reports: Iterable[Reports], questions: int, classes: int) -> Reals:
    """The logarithm of how likely all reports are, for each question and class.

    Args:
        reports: of all entities.
        questions: how many there were.
        classes: how many there are; one answer more is that of one who abstains.

    >>> law = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    >>> told = Reports(np.array([0, 1]), np.array([2, 0]), law)
    >>> likelihoods([told] * 5, 2, 3).argmax(axis=1).tolist()
    [2, 0]
    """
    total: Reals = np.zeros((questions, classes))
    for one in reports:
        answers = _answers(classes, len(one.law))
        if one.told.ndim == 1:
            total[one.places] += np.log(answers @ one.law).T[one.told]
        else:
            bits = one.told.astype(np.float64)
            # One bit after the other, given an answer; then over the answers a class may have.
            given = bits @ np.log(one.law).T + (1 - bits) @ np.log1p(-one.law).T
            top = given.max(axis=1, keepdims=True)
            total[one.places] += top + np.log(np.exp(given - top) @ answers.T)
    return total


def plurality(reports: Iterable[Reports], questions: int, classes: int) -> Reals:
    """One for the class that most entities reported, the first of equals; zero for the others."""
    counts: Reals = np.zeros((questions, classes))
    for one in reports:
        np.add.at(counts, (one.places, one.told), 1)
    winners: Reals = np.eye(classes)[counts.argmax(axis=1)]
    return winners


def chances(likely: Reals) -> Reals:
    """Probabilities of the classes, which are equally likely beforehand."""
    raised = np.exp(np.maximum(likely - likely.max(axis=1, keepdims=True), -700.0))
    shares: Reals = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _answers(classes: int, answers: int) -> Reals:
    """How likely each answer of an entity is, given the class."""
    own = np.full((classes, classes), (1 - RIGHT) / max(1, classes - 1))
    np.fill_diagonal(own, RIGHT)
    if answers == classes:
        return own
    return np.hstack([own * (1 - ABSTAINING), np.full((classes, 1), ABSTAINING)])
