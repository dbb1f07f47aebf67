"""Schedules of faults: what a network and a careless aggregator can do to single messages."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from stillroom.federation import Leg, Stage
from stillroom.federation.messages import Lists, Reply, Shares, decode, encode

KINDS = (
    "vanish",  # nothing comes or goes from here on
    "lose",  # this message alone
    "late",  # comes when the next one is sent the same way
    "double",
    "replay",  # all earlier ones the same way come again, before this one
    "after",  # all earlier ones the same way come again, after this one
    "swap",  # a reply comes together with the next entity's reply
    "damage",  # one bit is flipped
    "mixed",  # the message of another entity comes first
    "lists",  # the aggregator tells this entity another list of survivors
)


class Fault(NamedTuple):
    leg: Leg
    kind: str


class Schedule:
    """A carrier with faults; it remembers what entities handed out."""

    def __init__(self, faults, key=0):
        self.faults = {fault.leg: fault.kind for fault in faults}
        self.touched = {fault.leg.position for fault in faults}
        self.draws = np.random.default_rng(key)
        self.vanished, self.swapped = set(), []
        self.late, self.before = defaultdict(list), defaultdict(list)
        self.unmasked = []

    def __call__(self, leg, data):
        kind = self.faults.get(leg, "")
        way = leg.position, leg.up
        if leg.up and leg.stage == Stage.UNMASK:
            self.unmasked.append(decode(data, Reply))
        if kind == "vanish":
            self.vanished.add(leg.position)
        if leg.position in self.vanished:
            return []
        arriving = [*self.late.pop(way, ()), *self._changed(leg, kind, data)]
        self.before[way].append(data)
        if leg.up and kind != "swap":
            arriving, self.swapped = [*arriving, *self.swapped], []
        return arriving

    def _changed(self, leg, kind, data):
        earlier = self.before[leg.position, leg.up]
        if kind == "lose":
            return []
        if kind == "late":
            self.late[leg.position, leg.up].append(data)
            return []
        if kind == "swap" and leg.up:
            self.swapped.append(data)
            return []
        if kind == "mixed":
            others = [seen[-1] for (_, up), seen in self.before.items() if up == leg.up and seen]
            return [*others[-1:], data]
        if kind == "damage":
            bit = int(self.draws.integers(8 * len(data)))
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << bit % 8
            return [bytes(broken)]
        if kind == "lists" and leg.stage == Stage.CONFIRM and not leg.up:
            told = decode(data, Lists)
            fewer = told.survivors[: int(self.draws.integers(len(told.survivors)))]
            return [encode(Lists(told.plan, told.shared, fewer))]
        several = {"double": [data, data], "replay": [*earlier, data], "after": [data, *earlier]}
        return several.get(kind, [data])

    def shares(self):
        """How many shares of self masks and of mask keys were handed out, by their owner."""
        counts = defaultdict(lambda: [set(), set()])
        for reply in self.unmasked:
            body = decode(reply.body, Shares)
            for half, given in enumerate((body.self_masks, body.mask_keys)):
                for owner in given:
                    counts[owner][half].add(reply.sender)
        return {owner: [len(half) for half in both] for owner, both in counts.items()}


def random_schedule(draws, size):
    """Up to two faults per entity, at any messages; half of the schedules touch few entities."""
    hit = draws.permutation(size)[: draws.integers(1, size + 1)]
    if draws.random() < 0.5:
        hit = hit[:2]
    faults = [
        Fault(
            Leg(Stage(int(draws.integers(1, 6))), int(position), bool(draws.integers(2))),
            KINDS[draws.integers(len(KINDS))],
        )
        for position in hit
        for _ in range(draws.integers(1, 3))
    ]
    return Schedule(faults, int(draws.integers(1 << 32)))
