"""The certificate: what was drawn, what that costs whom, and what the figure rests on.

Schema version 4. Some of it only the releaser can know: what the ledger recorded, what a test
counted, how long a model took. Everything else follows from that and from the bundle's own files,
by `completed`, which writer and verifier share: the verifier builds the whole document again and
compares.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

import stillroom
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import mechanism_from_json
from stillroom.gate.accounting import DELTAS, fold, pairs_of, price
from stillroom.gate.events import Line, lines_to_json
from stillroom.gate.ledger import Ledger, Purpose
from stillroom.gate.ledger.chain import Row
from stillroom.gate.ledger.verify import lost_draws
from stillroom.release import data_set, evaluation
from stillroom.release.compression import CompressionReport
from stillroom.release.controls import MODES, Claim, Control, check_controls
from stillroom.release.figures import Figures, nothing_proven
from stillroom.release.files import CERTIFICATE, digest
from stillroom.release.made import TUNING, Made, check_assumptions
from stillroom.release.model_file import model_section
from stillroom.release.samples import check_stated_samples, stated_samples
from stillroom.vocabulary import CHANGED_RECORD, Pair, Relation, Unit, check_delta

FORMAT = "stillroom certificate"
VERSION = 4
_PARTS = (
    *("dp-accounting", "numpy", "scipy", "numba", "torch", "opacus"),
    *("onnx", "onnxruntime", "safetensors"),
)
_COUNTS = ("reserved", "drawn", "lost")


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
    rows = _blocks(made.ledger, made.blocks)
    stated = {
        "method": made.method,
        "mode": made.mode,
        "purpose": str(made.ledger.purpose),
        "unit": str(made.unit),
        "delta": made.delta,
        "asked": made.asked,
        "tuning": made.tuning,
        "unproven": sorted({*map(str, made.unproven), *map(str, made.ledger.unproven)}),
        "blocks": [_block(made.ledger, row) for row in rows],
        "data_set": data_set.stated(made.ledger),
        "assumptions": dict(made.assumptions),
        "published": made.claim.to_json(),
        "public_knowledge": list(made.public_knowledge),
        "evaluation": None if made.evaluation is None else made.evaluation.to_json(),
        "controls": [control.to_json() for control in made.controls],
        "compression": None if made.compression is None else made.compression.to_json(),
        "samples": stated_samples(made.samples),
        "facts": dict(made.facts),
        "warnings": list(made.warnings),
        "versions": dict(versions()),
    }
    return completed(stated, contents)


def completed(
    stated: Mapping[str, Any],
    contents: Mapping[str, bytes],
    figures: Figures | None = None,
) -> dict[str, Any]:
    """The whole certificate that follows from what the releaser states.

    Args:
        stated: at least the fields that only the releaser can know; others are not looked at.
        contents: the model's files and the recipe, by file name.
        figures: how prices are found; the verifier's agree with another processor's.

    Raises:
        BadInput: something stated makes no sense.
        DoesNotVerify: an assumption failed, or what is stated contradicts itself.
        KeyError, TypeError, ValueError: a field is missing or malformed.
    """
    figures = figures or Figures()
    _check_words(stated)
    delta, pair = check_delta(stated["delta"]), Pair(Unit(stated["unit"]), Relation.ADD_OR_REMOVE)
    blocks = [_completed_block(block) for block in stated["blocks"]]
    noise = sorted({block["noise"] for block in blocks})
    valid = noise == ["os"]
    told = data_set.completed(stated["data_set"], blocks, figures, pair.unit)
    unproven = {Pair.parse(text) for text in stated["unproven"]} | data_set.unproven(told)
    lines = fold(line for block in blocks for line in _reserved(block))
    guarantees = guaranteed(lines, delta, unproven, figures, void=not valid)
    measured = evaluation.told(stated["evaluation"], blocks)
    model = model_section(contents)
    if measured is not None and len(measured["confusion"]) != len(model["classes"]):
        raise ValueError("the counts are those of other classes")
    controls = check_controls(
        [Control.from_json(control) for control in stated["controls"]],
        stated["purpose"],
        blocks,
        protected=None if measured is None else measured["protected"],
    )
    certificate = {
        "format": FORMAT,
        "version": VERSION,
        "status": "valid" if valid else "void",
        "purpose": stated["purpose"],
        "method": stated["method"],
        "mode": stated["mode"],
        "noise": noise[0] if len(noise) == 1 else "mixed",
        "unit": str(pair.unit),
        "delta": delta,
        "asked": stated["asked"],
        "headline": headline(guarantees, pair, delta),
        "guarantees": guarantees,
        "unproven": sorted(map(str, unproven)),
        "events": lines_to_json(lines),
        "blocks": blocks,
        "data_set": told,
        "assumptions": stated["assumptions"],
        "published": Claim.from_json(stated["published"]).to_json(),
        "tuning": stated["tuning"],
        "public_knowledge": list(stated["public_knowledge"]),
        "evaluation": measured,
        "controls": controls,
        "compression": _compression(stated["compression"], model),
        "samples": stated["samples"],
        "facts": stated["facts"],
        "unprotected": unprotected(unproven, measured, controls),
        "warnings": list(stated["warnings"]),
        "model": model,
        "versions": stated["versions"],
    }
    return {**certificate, "digest": digest(certificate)}


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


def unprotected(
    unproven: Collection[Pair],
    measured: Mapping[str, Any] | None,
    controls: Sequence[Mapping[str, Any]],
) -> list[str]:
    """What is told exactly: K1 wants it listed. Noisy counts, of controls too, were paid for."""
    told = []
    if CHANGED_RECORD in unproven:
        told.append(
            "a change of a record's content or class, which may give it another id or move it to "
            "another part"
        )
    if measured is None or measured["protected"]:
        return told
    told.append(f"accuracy and confusion counts, exact, on: {measured['records']}")
    if controls:
        told.append(f"accuracy of the models it is compared with, exact, on: {measured['records']}")
    return told + [
        f"accuracy of {control['name']}, which saw sensitive records without protection; no "
        "epsilon of this certificate covers it"
        for control in controls
        if control["private"]
    ]


def _check_words(stated: Mapping[str, Any]) -> None:
    """Every word is one of its kind, and the assumptions say how they stand."""
    asked = stated["asked"]
    if stated["mode"] not in MODES or stated["tuning"] not in TUNING:
        raise ValueError("an unknown mode or tuning")
    Purpose(stated["purpose"])
    if not (asked is None or (type(asked) is float and 0 < asked < math.inf)):
        raise ValueError("what was asked for is no epsilon")
    if not stated["assumptions"]:
        raise ValueError("a figure that rests on nothing")
    check_assumptions(stated["assumptions"], CERTIFICATE)
    lists = (stated["public_knowledge"], stated["warnings"])
    if not all(isinstance(text, str) and text for texts in lists for text in texts):
        raise ValueError("a sentence is missing")
    if not all(type(value) in (bool, int, float, str) for value in stated["facts"].values()):
        raise ValueError("a fact is no plain value")
    if not all(isinstance(value, str) and value for value in stated["versions"].values()):
        raise ValueError("a version is no text")
    if not {"stillroom", "dp-accounting"} <= set(stated["versions"]):
        raise ValueError("a version is missing")
    check_stated_samples(stated["samples"])


def _completed_block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block with the sums of its wishes."""
    date.fromisoformat(block["day"])
    if len(bytes.fromhex(block["hash"])) != 32 or block["noise"] not in ("os", "test"):
        raise ValueError("a block has no hash, or noise of an unknown kind")
    wishes = []
    for wish in block["wishes"]:
        counts = {key: wish[key] for key in _COUNTS}
        if not all(type(count) is int and count >= 0 for count in counts.values()):
            raise ValueError("not a count")
        if not counts["lost"] <= counts["drawn"] <= counts["reserved"]:
            raise DoesNotVerify(
                f"block {block['block']} in certificate.json drew more than it had reserved",
                where=CERTIFICATE,
                why="an answer nobody paid for makes every epsilon on the certificate false",
                remedy="ask whoever released it for an unchanged copy; do not use this one",
            )
        mechanism = mechanism_from_json(wish["mechanism"])
        wishes.append({"mechanism": mechanism.describe(), **counts})
    if not wishes:
        raise ValueError("a block without a wish")
    return {
        **{key: block[key] for key in ("block", "day", "hash", "noise")},
        "wishes": wishes,
        **{key: sum(wish[key] for wish in wishes) for key in _COUNTS},
    }


def _reserved(block: Mapping[str, Any]) -> list[Line]:
    return [
        line
        for wish in block["wishes"]
        for line in mechanism_from_json(wish["mechanism"]).lines(wish["reserved"])
    ]


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
        "mechanism": {key: value for key, value in wish.items() if key not in ("count", "name")},
        "reserved": wish["count"],
        "drawn": sum(row.body["count"] for row in draws),
        "lost": lost_draws([*draws, *commits]),
    }


def _compression(told: Any, model: Mapping[str, Any]) -> dict[str, Any] | None:
    if told is None:
        return None
    report = CompressionReport.from_json(told)
    student = report.student
    own = (model["about"], model["parameters"], model["size"])
    if (student.name, student.parameters, student.size) != own:
        raise BadInput(
            "the compression report is that of another student",
            where="compression",
            why="its name, parameters or file size are not those of the released model",
            remedy="measure the model that is released",
        )
    return report.to_json()


@cache
def versions() -> Mapping[str, str]:
    """What this is, and what it works with here."""
    found = {"stillroom": stillroom.__version__, "python": platform.python_version()}
    for part in _PARTS:
        try:
            found[part] = version(part)
        except PackageNotFoundError:
            continue
    return MappingProxyType(found)


def _refused(what: str, ledger: Ledger) -> DoesNotVerify:
    return DoesNotVerify(
        f"no certificate: {what}",
        where=str(ledger.path),
        why="an answer nobody paid for makes every epsilon on the certificate false",
        remedy="check the ledger with `stillroom ledger verify`; until then release nothing",
    )
