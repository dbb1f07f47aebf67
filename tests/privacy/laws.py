"""Laws of noise on whole numbers, from their formulas."""

from __future__ import annotations

from functools import reduce

import numpy as np

REACH = 40


def gaussian(sigma: float, centre: int = 0, reach: int = REACH) -> np.ndarray:
    x = np.arange(-reach, reach + 1) - centre
    whole = np.arange(-40 * int(sigma + 1), 40 * int(sigma + 1) + 1)
    return np.exp(-(x**2) / (2 * sigma**2)) / np.exp(-(whole**2) / (2 * sigma**2)).sum()


def laplace(scale: float, centre: int = 0, reach: int = 400) -> np.ndarray:
    x = np.abs(np.arange(-reach, reach + 1) - centre)
    a = np.exp(-1 / scale)
    return (1 - a) / (1 + a) * a**x


def joint(*laws: np.ndarray) -> np.ndarray:
    return reduce(np.multiply.outer, laws)


def as_law(pmf: np.ndarray, centre: int = 0) -> dict[int, float]:
    reach = len(pmf) // 2
    return {centre + x: float(pmf[x + reach]) for x in range(-reach, reach + 1)}


def first_column(answers: np.ndarray) -> np.ndarray:
    return answers[:, 0]
