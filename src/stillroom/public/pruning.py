"""Which weights of a network are kept: the most important ones, or some by chance (Mao et al.).

Only tensors of two or more dimensions are pruned: biases and the weights of norms are few, and a
network misses each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.randomness import uniforms

Importance = Mapping[str, npt.NDArray[np.floating]]
"""How much each weight matters, by the name of its tensor."""
Kept = dict[str, npt.NDArray[np.bool_]]
"""Whether each weight is kept, by the name of its tensor; only of tensors that are pruned."""
LEAST_DIMENSIONS = 2


def most_important(importance: Importance, kept: Fraction | float) -> Kept:
    """Keep the given share of the weights, the most important ones of the whole network.

    Args:
        importance: of every weight; of equal ones the first are kept.
        kept: the share, above 0 and at most 1; rounded up to whole weights.

    Raises:
        BadInput: the share is none, or there is nothing to prune.

    >>> masks = most_important({"w": np.array([[1.0, 5.0], [4.0, 2.0]]), "b": np.ones(2)}, 0.5)
    >>> {name: mask.tolist() for name, mask in masks.items()}
    {'w': [[False, True], [True, False]]}
    """
    weights = _flat(importance)
    count = math.ceil(len(weights) * _share(kept))
    mask = np.zeros(len(weights), dtype=bool)
    mask[np.argsort(-weights, kind="stable")[:count]] = True
    return _split(mask, importance)


def kept_by_chance(importance: Importance, seed: int, kept: Fraction | float | None = None) -> Kept:
    """Keep each weight with the probability that `chances` gives it, independently of others.

    Args:
        importance: of every weight.
        seed: of the draws, which hide nothing; the same one keeps the same weights.
        kept: the expected share; as Eq. (7) has it when left out.

    Raises:
        BadInput: the share is none, or there is nothing to prune.

    Reference: Mao et al. 2021, Eq. (7).
    """
    return {
        name: uniforms(seed, "pruning", name, size=share.shape) < share
        for name, share in chances(importance, kept).items()
    }


def chances(
    importance: Importance, kept: Fraction | float | None = None
) -> dict[str, npt.NDArray[np.float64]]:
    """The probability with which each weight is kept.

    Eq. (7) keeps weight j with probability p_j = (w_j - min w) / (max w - min w), where w is the
    importance and both extremes are over the whole network. How many are pruned then follows from
    the importances alone: where a few stand out, nearly all are pruned. The paper reports pruning
    ratios nevertheless, and does not say how they are reached. With `kept` the probabilities are
    min(1, c p_j), with the one factor c for which their mean is that share. So they stay
    proportional to those of Eq. (7) as far as probabilities can. If all weights with a positive p_j
    are fewer than that, these are kept, and the others, which matter equally, have equal chances.

    Args:
        importance: of every weight; may be negative. Where all are equal, so are the chances.
        kept: the expected share; as Eq. (7) has it when left out.

    Raises:
        BadInput: the share is none, or there is nothing to prune.

    >>> weights = {"w": np.array([[0.0, 1.0, 2.0, 4.0]])}
    >>> chances(weights)["w"].tolist()
    [[0.0, 0.25, 0.5, 1.0]]
    >>> chances(weights, 0.625)["w"].tolist()
    [[0.0, 0.5, 1.0, 1.0]]
    """
    weights = _flat(importance)
    least, most = weights.min(), weights.max()
    # Of equal weights Eq. (7) is 0 / 0; nothing tells one from another.
    told = (weights - least) / (most - least) if most > least else np.ones(len(weights))
    if kept is not None:
        told = _scaled(told, float(len(weights) * _share(kept)))
    return _split(told, importance)


def _scaled(told: npt.NDArray[np.float64], total: float) -> npt.NDArray[np.float64]:
    """Probabilities min(1, c p) that add up to a total."""
    positive = int(np.count_nonzero(told))
    if total >= positive:
        even = (total - positive) / max(1, len(told) - positive)
        return np.where(told > 0, 1.0, even)
    falling = -np.sort(-told)[:positive]
    rest = np.cumsum(falling[::-1])[::-1]
    # With the first i at 1 the factor for the others is (total - i) / rest[i]; the right i is the
    # first at which it leaves the next one below 1.
    certain = np.arange(positive)
    fits = (certain < total) & ((total - certain) * falling <= rest)
    first = int(np.argmax(fits))
    found: npt.NDArray[np.float64] = np.minimum(1.0, told * ((total - first) / rest[first]))
    return found


def _share(kept: Fraction | float) -> Fraction:
    if not 0 < kept <= 1:
        raise BadInput(
            f"{kept} is not a share of weights to keep",
            where="kept",
            why="a network without weights gives the same answer to everything",
            remedy="give a number above 0 and at most 1",
        )
    return Fraction(kept)


def _prunable(importance: Importance) -> dict[str, npt.NDArray[np.floating]]:
    return {name: told for name, told in importance.items() if told.ndim >= LEAST_DIMENSIONS}


def _flat(importance: Importance) -> npt.NDArray[np.float64]:
    found = [told.ravel() for told in _prunable(importance).values()]
    weights = np.concatenate([np.zeros(0), *found]).astype(np.float64)
    if not len(weights) or not np.isfinite(weights).all():
        raise BadInput(
            "there is nothing to prune, or an importance is not a finite number",
            where="importance",
            why="weights are kept by how much they matter",
            remedy="give a trained network with at least one tensor of two dimensions",
        )
    return weights


def _split(flat: npt.NDArray[Any], importance: Importance) -> dict[str, npt.NDArray[Any]]:
    shapes = {name: told.shape for name, told in _prunable(importance).items()}
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    parts = np.split(flat, ends[:-1])
    return {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
