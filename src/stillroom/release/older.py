"""Certificates of versions 3 and 4: what is still checked of them, and the defects of version 3.

Their files, manifest, signature, digest and prices are checked as ever: events follow from blocks,
and no stated epsilon is below what they cost. Recipe and card are not compared, since recipes and
pages of that time were others. A certificate of version 3 that is touched by a defect which was
mended since does not verify; CHANGELOG describes each of them under Privacy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stillroom.errors import DoesNotVerify
from stillroom.gate import NoisyCounts
from stillroom.gate.accounting import fold, pairs_of
from stillroom.gate.events import Line, lines_to_json
from stillroom.gate.ledger.store import canonical
from stillroom.release import data_set
from stillroom.release.figures import Figures
from stillroom.release.files import LISTED, MODEL, ONNX, RECIPE, digest, number, sha256
from stillroom.release.manifest import does_not
from stillroom.release.parties import COUNTS, check_counts, guaranteed, headline
from stillroom.release.record import PARTY, check_assumptions
from stillroom.vocabulary import CHANGED_RECORD, Pair, Relation, Unit, check_delta

OLDEST = 3
NOT_COMPARED = "made by an older version: the recipe and the card are not compared"
_LATER = ("norm", "sensitivity", "version")
"""How events of version 3 differ from today's; they are priced by what was reserved."""


def check(certificate: Mapping[str, Any], contents: Mapping[str, bytes], place: Path) -> None:
    """Check a certificate of version 3 or 4.

    Guarantee: no stated epsilon is below what the reserved answers cost.

    Raises:
        DoesNotVerify: something does not fit, or a defect that was mended since touches it.
        KeyError, TypeError, ValueError: a field is missing or malformed.
    """
    if certificate["digest"] != digest(certificate):
        raise does_not(place, "certificate.json was changed: its digest is another")
    model = certificate["model"]
    files = {name: sha256(contents[name]) for name in (MODEL, ONNX, RECIPE)}
    if set(contents) != set(LISTED) or model["files"] != files:
        raise does_not(place, "certificate.json belongs to another model or recipe")
    if model["size"] != len(contents[ONNX]):
        raise does_not(place, "certificate.json belongs to another model or recipe")
    check_assumptions(certificate["assumptions"], str(place))
    if certificate["version"] == OLDEST:
        _refuse_defects(certificate, contents[RECIPE], place)
    blocks = _blocks(certificate)
    if certificate["status"] == "valid" and {block["noise"] for block in blocks} != {"os"}:
        raise does_not(place, "certificate.json is valid with noise that is not")
    lines = _lines(blocks)
    told = lines_to_json(lines)
    if canonical(_bare(certificate, told)) != canonical(_bare(certificate, certificate["events"])):
        raise does_not(place, "the events in certificate.json are not those of its blocks")
    _check_prices(certificate, lines, place)
    _check_totals(certificate, blocks, place)


def report(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """What was checked, in the form of today's report."""
    lines = _lines(_blocks(certificate))
    again = guaranteed(lines, certificate["delta"], _unproven(certificate, lines))
    same = ("status", "mode", "purpose", "headline", "tuning", "assumptions", "unprotected")
    made_with = certificate["versions"]["stillroom"]
    guarantees = [
        {**line, "priced_again": mine["epsilon"]}
        for line, mine in zip(certificate["guarantees"], again, strict=True)
    ]
    return {
        "verifies": True,
        **{name: certificate[name] for name in (*same, "warnings")},
        "method": {"name": certificate["method"], "package": "stillroom", "version": made_with},
        "asked": certificate.get("asked"),
        "facts": certificate.get("facts", {}),
        "artefacts": [{"name": "model", "kind": "classifier", **certificate["model"]}],
        "parties": [
            {
                "name": PARTY,
                **{name: certificate[name] for name in ("headline", "data_set")},
                "guarantees": guarantees,
            }
        ],
        **{key: sum(block[key] for block in certificate["blocks"]) for key in COUNTS},
        "word": {"certificate": "all but its files, its events and their prices"},
        "not_checked": [NOT_COMPARED],
        "certificate": certificate["digest"],
    }


def _refuse_defects(certificate: Mapping[str, Any], recipe: bytes, place: Path) -> None:
    for defect in _defects(certificate, tomllib.loads(recipe.decode())):
        raise DoesNotVerify(
            "the certificate is of version 3 and has a defect that was mended since: " + defect,
            where=str(place),
            why="an epsilon on it is smaller than the true one, or was never proven; CHANGELOG "
            "describes it under Privacy",
            remedy="ask whoever released it to release again",
        )


def _defects(certificate: Mapping[str, Any], recipe: Mapping[str, Any]) -> list[str]:
    """The defects that touch a certificate of version 3, by the names CHANGELOG gives them."""
    mechanisms = [wish["mechanism"] for block in certificate["blocks"] for wish in block["wishes"]]
    several = any(one["mechanism"] == NoisyCounts.name and one["steps"] != 1 for one in mechanisms)
    stated = {line["for"] for line in certificate["guarantees"]}
    # Only a column of ids is named in a recipe; all other ids were made from content.
    from_content = "id_column" not in recipe.get("data", {})
    network = recipe.get("training", {}).get("model", "linear") != "linear"
    found = {
        "a person's tested records in one cell": several,
        "record/change with ids made from content": str(CHANGED_RECORD) in stated and from_content,
        "whole networks": network or "real arithmetic" in certificate["assumptions"],
    }
    return [name for name, touches in found.items() if touches]


def _blocks(certificate: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks, their mechanisms as they are described today."""
    blocks = []
    for block in certificate["blocks"]:
        wishes: list[dict[str, Any]] = [
            {"mechanism": _mechanism(wish["mechanism"]), **check_counts(wish, block["block"])}
            for wish in block["wishes"]
        ]
        if any(block[key] != sum(wish[key] for wish in wishes) for key in COUNTS) or not wishes:
            raise ValueError("the counts of a block do not add up")
        blocks.append({**block, "wishes": wishes})
    return blocks


def _mechanism(described: Mapping[str, Any]) -> dict[str, Any]:
    today = {"steps": "records"}
    return {today.get(name, name): v for name, v in described.items() if name != "count"}


def _lines(blocks: Sequence[Mapping[str, Any]]) -> tuple[Line, ...]:
    return fold(line for block in blocks for line in data_set.reserved(block))


def _bare(certificate: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[Any]:
    left_out = _LATER if certificate["version"] == OLDEST else ()
    bare = [{name: v for name, v in event.items() if name not in left_out} for event in events]
    return sorted(bare, key=canonical)


def _unproven(certificate: Mapping[str, Any], lines: Sequence[Line]) -> set[Pair]:
    if certificate["version"] > OLDEST:
        own = {Pair.parse(text) for text in certificate["unproven"]}
        return own | data_set.unproven(certificate["data_set"])
    relations = {Relation(text) for text in certificate["unproven"]}
    return {pair for pair in pairs_of(lines) if pair.relation in relations}


def _figures(certificate: Mapping[str, Any]) -> Figures:
    totals = certificate["data_set"]["totals"]
    return Figures.stated(certificate["guarantees"], totals, larger=True)


def _check_prices(certificate: Mapping[str, Any], lines: Sequence[Line], place: Path) -> None:
    delta, top = check_delta(certificate["delta"]), certificate["headline"]
    again = guaranteed(lines, delta, _unproven(certificate, lines), _figures(certificate))
    if canonical(again) != canonical(certificate["guarantees"]):
        raise does_not(place, "an epsilon in certificate.json is not what the events cost")
    pair = Pair(Unit(certificate.get("unit", top["unit"])), Relation.ADD_OR_REMOVE)
    if canonical(headline(again, pair, delta)) != canonical(top):
        raise does_not(place, "the headline of certificate.json is not one of its guarantees")


def _check_totals(
    certificate: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], place: Path
) -> None:
    told = certificate["data_set"]
    if certificate["version"] > OLDEST:
        unit = Unit(certificate["unit"])
        again = data_set.completed(told, blocks, _figures(certificate), unit)
        fits = canonical(again) == canonical(told)
    else:
        # It does not tell the events of other releases, so only their part can be compared.
        spent = {(total["for"], total["delta"]): number(total["spent"]) for total in told["totals"]}
        fits = all(
            number(line["epsilon"]) <= spent.get((line["for"], line["delta"]), number("infinite"))
            for line in certificate["guarantees"]
        )
    if not fits:
        raise does_not(place, "the data set's total in certificate.json is not what events cost")
