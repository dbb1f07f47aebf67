"""DPDFD's "direct training on private data", where all but the labels is public.

As printed it is refused: an update is the noisy gradient of the outputs times the Jacobian at a
private record (theory.md#dpdfd). Where the records are public, the gradient is all that depends on
their labels, and what follows it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import nn

from stillroom.gate import Passage
from stillroom.methods.dpdfd.published import OPTIMISERS, Taught, copied, finite, question
from stillroom.methods.dpdfd.published_plan import GRADIENTS, STEPS, PublishedPlan
from stillroom.private.label_gradients import LabelledRecords
from stillroom.private.output_gradients import TermBound
from stillroom.public.data_free_losses import soft_cross_entropy
from stillroom.randomness import order, seeded_torch
from stillroom.vocabulary import Integers


def train_directly(
    network: nn.Module,
    records: LabelledRecords,
    plan: PublishedPlan,
    passages: Mapping[str, Passage],
    on_step: Callable[[int], None] = lambda iteration: None,
) -> Taught:
    """Algorithm 1 without a generator: train a network in place; leaves it in eval mode.

    Guarantee: the price of the passage's block, for one label that is another.
    Assumes: all but the labels of the records is public; there are at least as many as a batch has.

    Args:
        network: from pictures to logits.
        records: whose labels are asked about through the passage only.
        plan: the numbers.
        passages: those of `plan.requests(...)`, by name.
        on_step: told after each iteration how many there were.
    """
    part, passage, done = plan.part, passages[GRADIENTS], 0
    rule = TermBound(
        part.bound,
        STEPS,
        together=part.reading == "batch",
        normalised=part.operation == "normalise",
        stability=part.stability,
    )
    optimiser = OPTIMISERS[part.optimiser](network.parameters(), lr=part.student_rate)
    kept, broken = copied(network), False
    network.train()
    with seeded_torch(plan.start_seed, "published"):
        while done < part.iterations and passage.ahead(1) and not broken:
            places = _batch(plan, done, len(records))
            inputs = records.inputs[torch.from_numpy(places)]
            said = network(inputs)
            if not finite([said]):
                network.load_state_dict(kept)
                done, broken = max(0, done - 1), True
                continue
            outputs = said.detach()
            told = passage.answer(
                question(done, inputs, outputs), partial(records.gradients, places, outputs, rule)
            )
            scale = part.bound / (STEPS * plan.terms)
            g = torch.from_numpy(told.value * scale).to(said.dtype)
            kept = copied(network)
            optimiser.zero_grad()
            soft_cross_entropy(said, outputs - part.gamma * g).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if not finite(network.parameters()):
                network.load_state_dict(kept)
                broken = True
                continue
            on_step(done := done + 1)
    network.eval()
    return Taught(done, done == part.iterations and not broken, done + 1 if broken else None)


def _batch(plan: PublishedPlan, iteration: int, size: int) -> Integers:
    """Passes over the records in a public order, batch by batch."""
    per_pass = size // plan.part.batch
    turn, number = divmod(iteration, per_pass)
    places = order(plan.start_seed, "direct", turn, size=size)
    return np.asarray(places[number * plan.part.batch : (number + 1) * plan.part.batch])
