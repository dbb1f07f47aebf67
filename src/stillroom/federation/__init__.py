"""Sums of many entities' rows, of which nobody sees more than the sum.

Each entity masks its integers; the masks cancel in the sum of those that survive. Pure functions of
states and messages: no file, no clock, no network, and no noise. Rows come with their noise shares,
which the gate draws.
"""

from __future__ import annotations

from stillroom.federation.aggregator import AggregatorState, Opened, collect, open_sum, start
from stillroom.federation.entity import respond
from stillroom.federation.in_process import Leg, Session, enrol, run, secure_sum
from stillroom.federation.messages import Stage
from stillroom.federation.plan import Plan, new_session, suggested_neighbours
from stillroom.federation.states import EntityState, enter

__all__ = [
    "AggregatorState",
    "EntityState",
    "Leg",
    "Opened",
    "Plan",
    "Session",
    "Stage",
    "collect",
    "enrol",
    "enter",
    "new_session",
    "open_sum",
    "respond",
    "run",
    "secure_sum",
    "start",
    "suggested_neighbours",
]
