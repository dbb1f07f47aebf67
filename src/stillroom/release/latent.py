"""The rows a generator network is given: latent numbers, and the class as one-hot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stillroom.randomness import integers, normals
from stillroom.vocabulary import Integers


def latent_rows(
    seed: int, count: int, latent: int, classes: int | None, among: Sequence[int] | None
) -> tuple[npt.NDArray[np.float32], Integers | None]:
    """Rows for a generator network, and the classes they ask for, all alike.

    Args:
        seed: the same one gives the same rows.
        count: how many.
        latent: latent numbers per row.
        classes: how many there are; None where the generator is told none.
        among: the classes to ask for; all, where it is None.

    >>> rows, asked = latent_rows(7, 3, latent=2, classes=4, among=[1])
    >>> rows.shape, asked.tolist(), rows[:, 3].tolist()
    ((3, 6), [1, 1, 1], [1.0, 1.0, 1.0])
    """
    drawn = normals(seed, "generator", "latent", size=(count, latent)).astype(np.float32)
    if classes is None:
        return drawn, None
    wanted = np.arange(classes) if among is None else np.array(among, dtype=np.int64)
    asked = wanted[integers(seed, "generator", "class", size=count, below=len(wanted))]
    rows = np.zeros((count, latent + classes), dtype=np.float32)
    rows[:, :latent] = drawn
    rows[np.arange(count), latent + asked] = 1
    return rows, asked
