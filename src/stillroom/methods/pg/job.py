"""Method pg, certified: rounds of published latents of models on disjoint shards (PG-L).

Each round fine-tunes one model per shard from the point that was published last, brings their
differences to a few public latents, and publishes the noisy mean of them, or points of a grid that
are chosen where they are dense. PGP-L takes groups of weights that are alike in the public start as
latents, PGC-L the weights that matter most in it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from stillroom.gate import Passage
from stillroom.methods.base import SHOWN_SAMPLES, Measured, ModelGuesses, Result
from stillroom.methods.generators import sketch_generator
from stillroom.methods.pg.latent_choice import chosen_latents, latent_count, refuse_misfits
from stillroom.methods.pg.requests import LATENTS, STEPS
from stillroom.methods.pg.space import Examples, Flat, Reals, Space, examples_of
from stillroom.methods.pg.terms import START
from stillroom.parameters import LatentMap
from stillroom.private.shard_models import ShardModels
from stillroom.release.compression import report
from stillroom.release.model import ReleasedModel
from stillroom.sources import Setting
from stillroom.sources.base import Passages
from stillroom.sources.sketch import DrawnSketch
from stillroom.vocabulary import Bounded, Integers

if TYPE_CHECKING:
    from stillroom.methods.pg import PgRecipe


class PgJob:
    """A model whose parameters were generated from those of many.

    Args:
        setting: of a certified recipe of method pg.

    Raises:
        BadInput: something does not fit the records; nothing is paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.recipe = setting, setting.recipe
        self.part = self.recipe.pg
        self.space: Space = _space_of(setting)
        refuse_misfits(self.space, self.part)
        self.sketch = DrawnSketch(setting)

    @property
    def width(self) -> int:
        """Of a row of latents."""
        return latent_count(self.space, self.part)

    def run(self, passages: Passages) -> Result:
        """Publish, fine-tune from there, publish again; each answer through the gate."""
        passage = passages[self.setting.only_party().name][LATENTS]
        self.sketch.draw(passages)
        examples = examples_of(self.setting, self.sketch)
        self.space.settle(self.sketch, examples, passage.paid_as)
        start, latents, kept = chosen_latents(self.space, self.part, examples)
        weights = self._published(passage, start, latents, examples)
        model = self.space.model(weights)
        released, compression = model, None
        if kept is not None:
            released = self.space.compressed(weights, kept, self.part)
            compression = report(model, released, self.setting.facts.classes)
        return Result(
            released,
            controls=self._controls(),
            compression=compression,
            samples=self.sketch.shown(SHOWN_SAMPLES),
            generator=sketch_generator(self.sketch),
        )

    def _published(
        self, passage: Passage, start: Flat, latents: LatentMap, examples: Examples | None
    ) -> Flat:
        """The weights after the last round that was paid for."""
        progress, part = self.setting.progress, self.part
        progress.tell("models on shards")
        shards, weights = self.space.shards(), start
        velocity: Reals = np.zeros(latents.latents)
        rows = 1 if part.mechanism == "gaussian" or part.retries else latents.latents

        def judge(answer: Integers) -> float:
            assert examples is not None
            moved = part.step * latents.spread(self._decoded(answer))
            return self.space.accuracy(weights + moved.astype(np.float32), examples)

        for number in range(part.rounds):
            if passage.ahead(rows) < rows:
                break
            question = self._question(number, weights, latents)
            told = passage.answer(
                question,
                lambda: self._asked(shards, weights, number, latents),  # noqa: B023 (called at once)
                judge if part.retries else None,
            )
            velocity = part.momentum * velocity + self._decoded(told.value)
            weights = (weights + part.step * latents.spread(velocity)).astype(np.float32)
            progress.step(number + 1, part.rounds)
        return weights

    def _asked(
        self, shards: ShardModels, weights: Flat, number: int, latents: LatentMap
    ) -> Bounded:
        """What the models on shards say: the sum of their latents, or an entry of each."""
        part = self.part
        if part.mechanism == "gaussian":
            return shards.latent_sum(weights, number, latents, part.clip, STEPS)
        entries = shards.latent_entries(weights, number, latents, part.grid)
        return entries if part.retries is None else entries.in_one_row()

    def _decoded(self, answer: Integers) -> Reals:
        """The latents that an answer stands for: the mean, or points of the grid."""
        if self.part.mechanism == "exponential":
            points: Reals = self.part.grid.values[answer.reshape(-1)]
            return points
        models = self.recipe.collection.models
        found: Reals = answer.reshape(-1) * (self.part.clip / (STEPS * models))
        return found

    def _question(self, number: int, weights: Flat, latents: LatentMap) -> bytes:
        """A digest of all that an answer depends on, beside the records and the recipe."""
        found = hashlib.sha256(json.dumps(["latents", number, STEPS]).encode())
        found.update(weights.tobytes() + latents.digest)
        return found.digest()

    def _controls(self) -> dict[str, Measured]:
        if self.recipe.collection.start == "common":
            return {}
        alone = self.setting.public.tested is None
        start: ReleasedModel = self.space.model(self.space.start)
        return {START: ModelGuesses(start, alone)}


def _space_of(setting: Setting) -> Space:
    """Heads over features, or networks."""
    recipe: PgRecipe = setting.recipe
    if recipe.collection.is_head:
        from stillroom.methods.pg.head_space import HeadSpace

        return HeadSpace(setting)
    from stillroom.methods.pg.network_space import NetworkSpace

    return NetworkSpace(setting)
