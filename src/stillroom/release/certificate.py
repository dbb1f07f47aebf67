"""The certificate: what was drawn, what that costs whom, and what the figure rests on.

Schema version 3. `guarantees` has one line a (unit, relation, delta), priced over all events of the
release's blocks together; `headline` is the line of the recipe; `blocks` says what was reserved,
drawn and lost; `data_set` is what everything so far has cost the same records (L6).
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import stillroom
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate.accounting import DELTAS, fold, pairs_of, price
from stillroom.gate.events import Line, lines_from_json, lines_to_json
from stillroom.gate.ledger import Ledger
from stillroom.gate.ledger.store import Row
from stillroom.gate.ledger.verify import lost_draws
from stillroom.release.controls import check_controls, no_claim
from stillroom.release.files import BOUND, CERTIFICATE, ONNX, digest, sha256, spelled
from stillroom.release.made import Evaluation, Made, check_assumptions
from stillroom.vocabulary import Guarantee, Pair, Relation

FORMAT = "stillroom certificate"
VERSION = 3
_PARTS = (
    *("dp-accounting", "numpy", "scipy", "numba", "torch", "opacus"),
    *("onnx", "onnxruntime", "safetensors"),
)


def certify(made: Made, contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The certificate of a release, from what its ledger really recorded.

    Guarantee: each epsilon is the price of every event of the release's blocks, lost ones included.
    Assumes: `made.blocks` are all the blocks the model has seen answers of.

    Args:
        made: the release.
        contents: the model's files and the recipe, by file name.

    Raises:
        BadInput: a control may not stand on it, or the compression is that of another model.
        DoesNotVerify: an assumption failed, a draw has no block, or more was drawn than reserved.
    """
    check_assumptions(made.assumptions, CERTIFICATE)
    protected = None if made.evaluation is None else made.evaluation.protected
    blocks = _blocks(made.ledger, made.blocks)
    told = [_block(made.ledger, row) for row in blocks]
    controls = check_controls(made.controls, made.ledger.purpose, told, protected=protected)
    noise = sorted({row.body["noise"] for row in blocks})
    void = noise != ["os"]
    lines = fold(line for row in blocks for line in lines_from_json(row.body["events"]))
    guarantees = price_all(lines, made.delta, void=void, unproven=made.unproven)
    pair = Pair(made.unit, Relation.ADD_OR_REMOVE)
    certificate = {
        "format": FORMAT,
        "version": VERSION,
        "status": "void" if void else "valid",
        "purpose": str(made.ledger.purpose),
        "method": made.method,
        "mode": made.mode,
        "noise": noise[0] if len(noise) == 1 else "mixed",
        "delta": made.delta,
        "headline": headline(guarantees, pair, made.delta),
        "guarantees": guarantees,
        "unproven": [str(relation) for relation in made.unproven],
        "events": lines_to_json(lines),
        "blocks": told,
        "data_set": _data_set(made.ledger),
        "assumptions": dict(made.assumptions),
        "published": (made.claim or no_claim(made.method)).to_json(),
        "tuning": made.tuning,
        "public_knowledge": list(made.public_knowledge),
        "evaluation": _evaluation(made.evaluation),
        "controls": controls,
        "compression": _compression(made, len(contents[ONNX])),
        "unprotected": _unprotected(made),
        "warnings": list(made.warnings),
        "model": {
            "about": made.model.about,
            "shape": list(made.model.shape),
            "classes": list(made.classes),
            "parameters": made.model.parameters,
            "size": len(contents[ONNX]),
            "files": {name: sha256(contents[name]) for name in BOUND},
        },
        "versions": _versions(),
    }
    return {**certificate, "digest": digest(certificate)}


def price_all(
    lines: Sequence[Line],
    delta: float,
    *,
    void: bool = False,
    unproven: Sequence[Relation] = (),
) -> list[dict[str, Any]]:
    """One line a pair and delta, for every pair that is proven in all events (E4, E5).

    Relations that the split of the data does not support have none.
    """
    return [
        _line(
            # Whoever knows the seed can subtract the noise (K6).
            Guarantee(pair, math.inf, at, "none", {"PLD": None, "RDP": math.inf})
            if void
            else cost.guarantee(at)
        )
        for pair in pairs_of(lines)
        if pair.relation not in unproven
        for cost in [price(lines, pair)]
        for at in sorted({*DELTAS, delta}, reverse=True)
    ]


def headline(guarantees: Iterable[Mapping[str, Any]], pair: Pair, delta: float) -> dict[str, Any]:
    """The line the recipe asked for; infinite where nothing is proven for its unit."""
    for line in guarantees:
        if (line["for"], line["delta"]) == (str(pair), delta):
            return dict(line)
    return _line(Guarantee(pair, math.inf, delta, "none", {"PLD": None, "RDP": math.inf}))


def _line(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "for": str(guarantee.pair),
        "unit": str(guarantee.pair.unit),
        "relation": str(guarantee.pair.relation),
        "delta": guarantee.delta,
        "epsilon": spelled(guarantee.epsilon),
        "accountant": guarantee.accountant,
        "PLD": spelled(guarantee.by_accountant["PLD"]),
        "RDP": spelled(guarantee.by_accountant["RDP"]),
    }


def _blocks(ledger: Ledger, numbers: Sequence[int]) -> list[Row]:
    ledger.store.check_chain()
    known = {row.seq: row for row in ledger.store.rows("kind = 'block'")}
    missing = sorted(set(numbers) - set(known))
    if missing or not numbers:
        raise _refused(
            f"the release names block {missing[0]}, which is none" if missing else "no block",
            ledger,
        )
    for row in ledger.store.rows("kind = 'draw'"):
        if row.block not in known:
            raise _refused(f"the draw in row {row.seq} has no block", ledger)
    return [known[number] for number in sorted(set(numbers))]


def _block(ledger: Ledger, row: Row) -> dict[str, Any]:
    own = list(ledger.store.rows("block = ?", (row.seq,)))
    wishes = [_wish(place, wish, own) for place, wish in enumerate(row.body["wishes"])]
    if any(wish["drawn"] > wish["reserved"] for wish in wishes):
        raise _refused(f"block {row.seq} drew more than it had reserved", ledger)
    return {
        "block": row.seq,
        "at": row.at,
        "hash": row.hash,
        "noise": row.body["noise"],
        "recipe_hash": row.body["recipe"],
        "wishes": wishes,
        **{key: sum(wish[key] for wish in wishes) for key in ("reserved", "drawn", "lost")},
    }


def _wish(place: int, wish: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    draws = [row for row in rows if row.kind == "draw" and row.body["wish"] == place]
    commits = [row for row in rows if row.kind == "commit"]
    return {
        "mechanism": dict(wish),
        "reserved": wish["count"],
        "drawn": sum(row.body["count"] for row in draws),
        "lost": lost_draws([*draws, *commits]),
    }


def _data_set(ledger: Ledger) -> dict[str, Any]:
    changes = [row.body for row in ledger.store.rows("kind = 'budget'")]
    head = ledger.head()
    return {
        "ledger": ledger.id,
        "position": head.seq,
        "head": str(head),
        "blocks": sum(1 for _ in ledger.store.rows("kind = 'block'")),
        "totals": [
            {
                "for": str(spent.budget.pair),
                "delta": spent.budget.delta,
                "budget": spent.budget.epsilon,
                "spent": spelled(spent.epsilon),
                "share": spelled(spent.share),
                "reasons": [
                    {"epsilon": body["epsilon"], "delta": body["delta"], "reason": body["reason"]}
                    for body in changes
                    if body["pair"] == str(spent.budget.pair)
                ],
            }
            for spent in ledger.standing()
        ],
    }


def _evaluation(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    confusion = evaluation.confusion
    return {
        "accuracy": float(evaluation.accuracy),
        "confusion": None if confusion is None else [[int(n) for n in row] for row in confusion],
        "records": evaluation.records,
        "protected": evaluation.protected,
    }


def _compression(made: Made, size: int) -> dict[str, Any] | None:
    if made.compression is None:
        return None
    student = made.compression.student
    if (student.parameters, student.size) != (made.model.parameters, size):
        raise BadInput(
            "the compression report is that of another student",
            where="compression",
            why="its parameters and file size are not those of the released model",
            remedy="measure the model that is released",
        )
    return made.compression.to_json()


def _unprotected(made: Made) -> list[str]:
    """What is told exactly: K1 wants it listed. Noisy counts, of controls too, were paid for."""
    evaluation = made.evaluation
    told = []
    if Relation.CHANGE in made.unproven:
        told.append("a change of a record's class, which may move it to the public part")
    if evaluation is None or evaluation.protected:
        return told
    told += [f"accuracy and confusion counts, exact, on: {evaluation.records}"]
    if made.controls:
        told.append(f"accuracy of the models it is compared with, exact, on: {evaluation.records}")
    return told + [
        f"accuracy of {control.name}, which saw sensitive records without protection; no epsilon "
        "of this certificate covers it"
        for control in made.controls
        if control.private
    ]


def _versions() -> dict[str, str]:
    found = {"stillroom": stillroom.__version__, "python": platform.python_version()}
    for part in _PARTS:
        try:
            found[part] = version(part)
        except PackageNotFoundError:
            continue
    return found


def _refused(what: str, ledger: Ledger) -> DoesNotVerify:
    return DoesNotVerify(
        f"no certificate: {what}",
        where=str(ledger.path),
        why="an answer nobody paid for makes every epsilon on the certificate false",
        remedy="check the ledger with `stillroom ledger verify`; until then release nothing",
    )
