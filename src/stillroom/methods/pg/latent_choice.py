"""Which latents are published: chosen on public or sanitised things, before anything private."""

from __future__ import annotations

from math import ceil

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.methods.pg.section import PgSection
from stillroom.methods.pg.space import Examples, Flat, Space
from stillroom.parameters import LatentMap
from stillroom.public.latent_fits import (
    alike_weights,
    directions_of_runs,
    kept_weights,
    random_groups,
)

Mask = npt.NDArray[np.bool_]


def chosen_latents(
    space: Space, part: PgSection, examples: Examples | None
) -> tuple[Flat, LatentMap, Mask | None]:
    """Where the models start, what is published of them, and which weights are kept.

    Args:
        space: settled.
        part: the numbers.
        examples: public records, or samples.

    Returns:
        The start, without what is pruned; the map; the mask, for publisher pgc.

    Raises:
        BadInput: there are more latents than weights, or fewer groups than layers.
    """
    start, kept, mask = space.start, np.ones(space.size, dtype=np.bool_), None
    if part.publisher == "pgc":
        mask = kept
        if part.kept < 1:
            assert examples is not None
            kept[:] = False
            kept[np.argsort(-space.importance(examples), kind="stable")[: moving(space, part)]] = (
                True
            )
        start = np.where(kept, start, np.float32(0))
    return start, _map(space, part, start, kept, examples), mask


def refuse_misfits(space: Space, part: PgSection) -> None:
    """Refuse a number of latents that the weights cannot have, before anything is paid for.

    Raises:
        BadInput: there are more latents than weights that move, or fewer groups than layers.
    """
    least = len(space.layers) if part.map == "groups" else 1
    most = moving(space, part)
    if part.latents is not None and not least <= part.latents <= most:
        raise BadInput(
            f"{part.latents} latents for {most:,} weights that move, in {len(space.layers)} layers",
            where="pg.latents",
            why="each latent moves weights of its own, and each layer needs a group",
            remedy=f"give a number from {least} to {most}",
        )


def latent_count(space: Space, part: PgSection) -> int:
    """How many latents are published."""
    return part.latents or moving(space, part)


def moving(space: Space, part: PgSection) -> int:
    """How many weights of a model move: all, or those that publisher pgc keeps."""
    return ceil(part.kept * space.size)


def _map(
    space: Space, part: PgSection, start: Flat, kept: Mask, examples: Examples | None
) -> LatentMap:
    if part.map == "weights":
        return kept_weights(kept)
    assert part.latents is not None
    if part.map == "groups":
        return alike_weights(start, space.layers, part.latents, kept)
    if part.map == "random":
        return random_groups(space.size, part.latents, space.part.start_seed)
    assert examples is not None
    return directions_of_runs(space.public_runs(examples, part.public_runs), part.latents)
