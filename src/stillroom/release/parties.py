"""What each party's ledger reserved, drew and lost for a release, and what that costs its data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from stillroom.errors import DoesNotVerify
from stillroom.gate import Ledger, mechanism_from_json
from stillroom.gate.accounting import DELTAS, fold, pairs_of, price
from stillroom.gate.events import Line, lines_to_json
from stillroom.gate.ledger.chain import Row
from stillroom.gate.ledger.verify import lost_draws
from stillroom.release import data_set
from stillroom.release.figures import Figures, nothing_proven
from stillroom.release.files import CERTIFICATE, number
from stillroom.release.record import PARTY, Party, unfit
from stillroom.vocabulary import Pair

COUNTS = ("reserved", "drawn", "lost")
MANY = 4
"""Parties whose figures are all shown; of more there is one line each."""
_FREE = "an answer nobody paid for makes every epsilon on the certificate false"


def stated(party: Party, unproven: Iterable[Pair]) -> dict[str, Any]:
    """What only the party's ledger knows.

    Raises:
        DoesNotVerify: a draw has no block, or a block is none.
    """
    ledger = party.ledger
    return {
        "name": party.name,
        "unproven": sorted({*map(str, unproven), *map(str, ledger.unproven)}),
        "blocks": [_block(ledger, row) for row in _rows(ledger, party.blocks)],
        "data_set": data_set.stated(ledger),
    }


def completed(
    stated: Mapping[str, Any], pair: Pair, delta: float, figures: Figures
) -> dict[str, Any]:
    """The whole of a party: its events, what they cost, and what its data have paid so far.

    Args:
        stated: what `stated` says.
        pair: what the headline is for.
        delta: the recipe's own.
        figures: how prices are found.

    Raises:
        DoesNotVerify: what is stated contradicts itself.
        KeyError, TypeError, ValueError: a field is missing or malformed.
    """
    blocks = [completed_block(block) for block in stated["blocks"]]
    told = data_set.completed(stated["data_set"], blocks, figures, pair.unit)
    unproven = {Pair.parse(text) for text in stated["unproven"]} | data_set.unproven(told)
    return {
        "name": stated["name"],
        "data_set": told,
        **priced(blocks, unproven, pair, delta, figures),
    }


def priced(
    blocks: Sequence[Mapping[str, Any]],
    unproven: Collection[Pair],
    pair: Pair,
    delta: float,
    figures: Figures,
) -> dict[str, Any]:
    """What blocks cost: their events, a line per pair and delta, and the headline."""
    noise = sorted({block["noise"] for block in blocks})
    lines = fold(line for block in blocks for line in data_set.reserved(block))
    guarantees = guaranteed(lines, delta, unproven, figures, void=noise != ["os"])
    return {
        "noise": noise[0] if len(noise) == 1 else "mixed",
        "headline": headline(guarantees, pair, delta),
        "guarantees": guarantees,
        "unproven": sorted(map(str, unproven)),
        "events": lines_to_json(lines),
        "blocks": blocks,
    }


def check_names(parties: Sequence[Mapping[str, Any]]) -> None:
    """Refuse parties that cannot be told apart: each has its own name and its own ledger.

    Two halves of one ledger would each have a smaller figure than the whole.

    Raises:
        BadInput: they cannot, or there are none.
    """
    names = [party["name"] for party in parties]
    ledgers = {party["data_set"]["ledger"] for party in parties}
    own = len({*names}) == len(ledgers) == len(names)
    if not own or not all(isinstance(name, str) and name for name in names):
        raise unfit("parties share their names or ledgers", "give each its own name and ledger")
    if not names or (len(names) == 1 and names != [PARTY]):
        raise unfit("a single party, or none, with a name", f"call the only party {PARTY}")


def worst(parties: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The headline of the party that is protected least."""
    lines = [party["headline"] for party in parties]
    return dict(max(lines, key=lambda line: number(line["epsilon"])))


def blocks_of(certificate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The blocks of all parties."""
    return [block for party in certificate["parties"] for block in party["blocks"]]


def guaranteed(
    lines: Sequence[Line],
    delta: float,
    unproven: Collection[Pair] = (),
    figures: Figures | None = None,
    *,
    void: bool = False,
) -> list[dict[str, Any]]:
    """One line per pair and delta, for every pair that is proven in all events (E4, E5).

    Pairs that the data or their split do not support have none. Seeded noise makes every figure
    infinite, since whoever knows the seed can subtract it (K6).
    """
    figures = figures or Figures()
    return [
        nothing_proven(pair, at) if void else figures.line(cost, at)
        for pair in pairs_of(lines, unproven)
        for cost in [price(lines, pair)]
        for at in sorted({*DELTAS, delta}, reverse=True)
    ]


def headline(guarantees: Iterable[Mapping[str, Any]], pair: Pair, delta: float) -> dict[str, Any]:
    """The line the recipe asked for; infinite where nothing is proven for its unit."""
    for line in guarantees:
        if (line["for"], line["delta"]) == (str(pair), delta):
            return dict(line)
    return nothing_proven(pair, delta)


def completed_block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block with the sums of its wishes.

    Raises:
        DoesNotVerify: more was drawn than reserved.
        KeyError, TypeError, ValueError: a field is missing or malformed.
    """
    date.fromisoformat(block["day"])
    if len(bytes.fromhex(block["hash"])) != 32 or block["noise"] not in ("os", "test"):
        raise ValueError("a block has no hash, or noise of an unknown kind")
    wishes: list[dict[str, Any]] = []
    for wish in block["wishes"]:
        counts = {key: wish[key] for key in COUNTS}
        if not all(type(count) is int and count >= 0 for count in counts.values()):
            raise ValueError("not a count")
        if not counts["lost"] <= counts["drawn"] <= counts["reserved"]:
            raise DoesNotVerify(
                f"block {block['block']} in certificate.json drew more than it had reserved",
                where=CERTIFICATE,
                why=_FREE,
                remedy="ask whoever released it for an unchanged copy; do not use this one",
            )
        mechanism = mechanism_from_json(wish["mechanism"])
        wishes.append({"name": wish["name"], "mechanism": mechanism.describe(), **counts})
    names = {wish["name"] for wish in wishes}
    if not wishes or len(names) != len(wishes):
        raise ValueError("a block without a wish, or with two of one name")
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError("a wish without a name")
    return {
        **{key: block[key] for key in ("block", "day", "hash", "noise")},
        "wishes": wishes,
        **{key: sum(wish[key] for wish in wishes) for key in COUNTS},
    }


def _rows(ledger: Ledger, numbers: Sequence[int]) -> list[Row]:
    ledger.store.check_chain()
    known = {row.seq: row for row in ledger.store.rows("kind = 'block'")}
    missing = sorted(set(numbers) - set(known))
    what = ""
    if missing or not numbers:
        what = f"the release names block {missing[0]}, which is none" if missing else "no block"
    for row in ledger.store.rows("kind = 'draw'"):
        if row.block not in known:
            what = what or f"the draw in row {row.seq} has no block"
    if what:
        raise DoesNotVerify(
            f"no certificate: {what}",
            where=str(ledger.path),
            why=_FREE,
            remedy="check the ledger with `stillroom ledger verify`; until then release nothing",
        )
    return [known[number] for number in sorted(set(numbers))]


def _block(ledger: Ledger, row: Row) -> dict[str, Any]:
    own = list(ledger.store.rows("block = ?", (row.seq,)))
    return {
        "block": row.seq,
        "day": row.at,
        "hash": row.hash,
        "noise": row.body["noise"],
        "wishes": [_wish(place, wish, own) for place, wish in enumerate(row.body["wishes"])],
    }


def _wish(place: int, wish: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    draws = [row for row in rows if row.kind == "draw" and row.body["wish"] == place]
    commits = [row for row in rows if row.kind == "commit"]
    return {
        "name": wish.get("name", f"wish {place + 1}"),
        "mechanism": {key: value for key, value in wish.items() if key not in ("count", "name")},
        "reserved": wish["count"],
        "drawn": sum(row.body["count"] for row in draws),
        "lost": lost_draws([*draws, *commits]),
    }
