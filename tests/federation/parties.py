"""Plans, rows, and sessions that are driven by hand, so that a test can play the aggregator."""

from __future__ import annotations

import numpy as np

from stillroom.federation import Plan, collect, enrol, enter, new_session, open_sum, respond, start
from stillroom.federation.messages import Reply, Stage, decode, encode

SHAPE = (3, 4)


def planned(size, dropouts=1, colluders=0, **more):
    """A plan for so many entities, and their private identity keys."""
    identities, roster = enrol(f"e{number:02}" for number in range(size))
    given = {"shape": SHAPE, "largest": 1000, **more}
    return Plan(new_session(), roster, dropouts, colluders, **given), identities


def rows_of(plan, key=7):
    """Other rows for everybody."""
    draws = np.random.default_rng(key)
    most = plan.largest
    return {name: draws.integers(-most, most, plan.shape, endpoint=True) for name in plan.names}


def total_of(rows, names):
    return sum(rows[name] for name in names)


class ByHand:
    """A session of which every message can be changed."""

    def __init__(self, plan, identities, rows, *, forgetful=False):
        self.plan, self.rows, self.forgetful = plan, rows, forgetful
        self.entities = [enter(plan, name, identities[name], plan.roster) for name in plan.names]
        self.state, self.messages = start(plan)
        self.replies = {}

    def ask(self, position, message):
        """An entity's reply to a message; a forgetful entity does not remember that it replied."""
        data = message if isinstance(message, bytes) else encode(message)
        rows = self.rows[self.plan.names[position]]
        state, reply = respond(self.entities[position], data, rows)
        if not (self.forgetful and state.stage > Stage.CONFIRM):
            self.entities[position] = state
        return reply

    def round(self, without=()):
        """One stage for everybody who is still there, except some who vanish."""
        self.replies = {
            position: self.ask(position, data)
            for position, data in self.messages.items()
            if position not in without
        }
        if self.state.stage == Stage.UNMASK:
            return open_sum(self.state, self.replies.values())
        self.state, self.messages = collect(self.state, self.replies.values())
        return None

    def until(self, stage):
        """Go on without faults until the messages of a stage lie ready."""
        while self.state.stage < stage:
            self.round()
        return self

    def bodies(self, kind):
        """What the replies of the last stage said."""
        return {
            position: decode(decode(reply, Reply).body, kind)
            for position, reply in self.replies.items()
        }
