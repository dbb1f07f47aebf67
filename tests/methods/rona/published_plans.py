"""Plans of RONA as published, with the numbers of its demonstration where none are given."""

from __future__ import annotations

from fractions import Fraction

from stillroom.methods.rona.published_plan import HINTS, LOSSES, OUTPUTS, PublishedPlan
from stillroom.methods.rona.section import PublishedSection, RonaSection

DEMONSTRATION = {
    "hint_epochs": 40,
    "rounds": 5,
    "self_epochs": 8,
    "distillation_epochs": 8,
    "batch": 512,
    "self_batch": 128,
    "hint_layer": 4,
    "guided_layer": 7,
    "learning_rate": 1e-3,
}


def plan_of(**numbers):
    """A plan, its numbers told apart by the section they belong to."""
    own = {name: n for name, n in numbers.items() if name in PublishedSection.model_fields}
    rona = {name: n for name, n in numbers.items() if name not in own}
    sections = RonaSection.of(**{**DEMONSTRATION, **rona}), PublishedSection.of(**own)
    return PublishedPlan(*sections)


def capped(plan, public, hint_width, classes, most=None):
    """What is paid for, by name; of `most` calls only, the earliest, where that is given."""
    requests = {r.name: r for r in plan.requests(public, hint_width, classes)}
    calls = plan.calls(public) if most is None else min(most, plan.calls(public))
    hints = min(calls, requests[HINTS].count if HINTS in requests else 0)
    counts = {HINTS: hints, OUTPUTS: calls - hints, LOSSES: calls}
    return {
        name: (request.at(Fraction(1)), counts[name])
        for name, request in requests.items()
        if counts[name]
    }
