"""From noisy reports of many entities to vote shares: post-processing of what was told.

Reports went through channels whose laws are public. So each report can be turned around to a row
whose mean is the entity's own vote, and rows of entities with less noise weigh more. Or the class
behind a question is found by its likelihood, where turning around would blow up the noise. A
plurality of reports is what Zhao 2018 takes instead; with clamped reports it is wrong even when all
entities agree (theory.md#zhao).
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


def shares(reports: Iterable[Reports], questions: int, classes: int) -> tuple[Reals, float]:
    """Vote shares without bias, and the standard deviation of one.

    Args:
        reports: of all entities.
        questions: how many there were.
        classes: how many there are; one answer more is that of one who abstains.

    Assumes: somebody has answered each question.

    >>> law = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    >>> told = Reports(np.array([0, 1]), np.array([2, 0]), law)
    >>> shares([told], 2, 3)[0].round(1).tolist()
    [[-0.5, -0.5, 2.0], [2.0, -0.5, -0.5]]
    """
    total: Reals = np.zeros((questions, classes))
    weights: Reals = np.zeros((questions, 1))
    for one in reports:
        rows, variance = _turned_around(one, classes)
        total[one.places] += rows / variance
        weights[one.places] += 1 / variance
    found: Reals = total / weights
    return found, float(np.sqrt((1 / weights).mean()))


def _turned_around(one: Reports, classes: int) -> tuple[Reals, float]:
    """Rows whose mean is the entity's own vote, and the mean variance of an entry."""
    if one.told.ndim == 2:
        flip = float(one.law[0, 1])
        rows = (one.told[:, :classes].astype(np.float64) - flip) / (0.5 - flip)
        return rows, flip * (1 - flip) / (0.5 - flip) ** 2
    inverse: Reals = np.linalg.inv(one.law)[:, :classes].astype(np.float64)
    often = one.law.mean(axis=0)
    return inverse[one.told], float(((often @ inverse**2) - (often @ inverse) ** 2).mean())


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
