"""Certificates of versions 3 to 5: what is still checked of them, and the defects of version 3.

Version 5 is today's without sensitivity and specificity: all of it is derived again and compared.
Versions 3 and 4 had another form: of them files, manifest, signature, digest and prices are checked
as ever, events follow from blocks, and no stated epsilon is below what they cost. Recipe and card
of all three are not compared, since recipes and pages of their time were others. A certificate of
version 3 that is touched by a defect which was mended since does not verify; CHANGELOG describes
each of them under Privacy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stillroom.errors import DoesNotVerify
from stillroom.gate import NoisyCounts
from stillroom.gate.accounting import fold, pairs_of
from stillroom.gate.ledger.chain import canonical
from stillroom.release import data_set
from stillroom.release.figures import Figures
from stillroom.release.files import LISTED, MODEL, ONNX, RECIPE, digest, number, sha256
from stillroom.release.manifest import does_not
from stillroom.release.parties import COUNTS, completed_block, priced
from stillroom.release.record import PARTY, check_assumptions
from stillroom.release.sections.base import classifier_in
from stillroom.vocabulary import CHANGED_RECORD, Pair, Relation, Unit, check_delta

OLDEST, FIVE = 3, 5
NOT_COMPARED = "made by an older version: the recipe and the card are not compared"
WORD = {"certificate": "all of it but its files, its events and their prices"}
_LATER = ("norm", "sensitivity", "version")
"""How events of version 3 differ from today's; they are priced by what was reserved."""


_NEW_IN_SIX = ("positive", "measures")


def in_words_of_today(certificate: Mapping[str, Any]) -> Mapping[str, Any]:
    """A certificate of version 5 with what version 6 tells beside it; one of today as it is."""
    told = certificate["sections"].get("evaluation")
    if certificate["version"] != FIVE or told is None:
        return certificate
    classes = classifier_in(certificate["artefacts"])["classes"]
    positive = classes[1] if len(classes) == 2 else None
    sections = {**certificate["sections"], "evaluation": {**told, "positive": positive}}
    return {**certificate, "sections": sections}


def in_words_of(version: int, again: Mapping[str, Any]) -> Mapping[str, Any]:
    """What follows, as that version said it."""
    if version != FIVE:
        return again
    sections = dict(again["sections"])
    if "evaluation" in sections:
        told = sections["evaluation"].items()
        sections["evaluation"] = {name: v for name, v in told if name not in _NEW_IN_SIX}
    as_then = {**again, "version": FIVE, "sections": sections}
    return {**as_then, "digest": digest(as_then)}


def read(
    certificate: Mapping[str, Any], contents: Mapping[str, bytes], place: Path
) -> dict[str, Any]:
    """Check a certificate of version 3 or 4, and say it in the form of today's.

    Guarantee: no stated epsilon is below what the reserved answers cost.

    Raises:
        DoesNotVerify: something does not fit, or a defect that was mended since touches it.
        KeyError, TypeError, ValueError: a field is missing or malformed.
    """
    if certificate["digest"] != digest(certificate):
        raise does_not(place, "certificate.json was changed: its digest is another")
    model, first = certificate["model"], certificate["version"] == OLDEST
    files = {name: sha256(contents[name]) for name in (MODEL, ONNX, RECIPE)}
    own = (set(LISTED), files, len(contents[ONNX]))
    if (set(contents), model["files"], model["size"]) != own:
        raise does_not(place, "certificate.json belongs to another model or recipe")
    check_assumptions(certificate["assumptions"], str(place))
    if first:
        _refuse_defects(certificate, contents[RECIPE], place)
    party = _party(certificate)
    for name in ("noise", "events", "guarantees", "headline", "data_set"):
        stated, again = certificate[name], party[name]
        if name == "events" and first:
            stated, again = _bare(stated), _bare(again)
        if canonical(stated) != canonical(again):
            raise does_not(place, f"certificate.json does not fit together: its {name}")
    if certificate["status"] == "valid" and party["noise"] != "os":
        raise does_not(place, "certificate.json is valid with noise that is not")
    version = certificate["versions"]["stillroom"]
    return {
        **certificate,
        "method": {"name": certificate["method"], "package": "stillroom", "version": version},
        "asked": certificate.get("asked"),
        "facts": certificate.get("facts", {}),
        "artefacts": [{"name": "model", "kind": "classifier", **model}],
        "parties": [party],
        "sections": {},
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


def _party(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """What follows from the blocks; a stated figure is kept where it is not below their price."""
    first, told = certificate["version"] == OLDEST, certificate["data_set"]
    unit = Unit(certificate["headline"]["unit"] if first else certificate["unit"])
    figures = Figures.stated(certificate["guarantees"], told["totals"], larger=True)
    blocks = [_block(block) for block in certificate["blocks"]]
    lines = fold(line for block in blocks for line in data_set.reserved(block))
    if first:
        relations = {Relation(text) for text in certificate["unproven"]}
        unproven = {pair for pair in pairs_of(lines) if pair.relation in relations}
        _check_first_totals(certificate)
    else:
        told = data_set.completed(told, blocks, figures, unit)
        unproven = {Pair.parse(text) for text in certificate["unproven"]} | data_set.unproven(told)
    pair, delta = Pair(unit, Relation.ADD_OR_REMOVE), check_delta(certificate["delta"])
    return {"name": PARTY, "data_set": told, **priced(blocks, unproven, pair, delta, figures)}


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as it is told today: with names of wishes and a day."""
    today = {"steps": "records"}
    wishes = [
        {
            **wish,
            "name": f"wish {place + 1}",
            "mechanism": {
                today.get(name, name): value
                for name, value in wish["mechanism"].items()
                if name != "count"
            },
        }
        for place, wish in enumerate(block["wishes"])
    ]
    day = block.get("day") or block["at"][:10]
    whole = completed_block({**block, "day": day, "wishes": wishes})
    if any(whole[key] != block[key] for key in COUNTS):
        raise ValueError("the counts of a block do not add up")
    return whole


def _bare(events: Sequence[Mapping[str, Any]]) -> list[Any]:
    bare = [{name: v for name, v in event.items() if name not in _LATER} for event in events]
    return sorted(bare, key=canonical)


def _check_first_totals(certificate: Mapping[str, Any]) -> None:
    """Version 3 does not tell the events of other releases: the total is no less than this one."""
    totals = certificate["data_set"]["totals"]
    spent = {(total["for"], total["delta"]): number(total["spent"]) for total in totals}
    for line in certificate["guarantees"]:
        if spent.get((line["for"], line["delta"]), number("infinite")) < number(line["epsilon"]):
            raise ValueError("the data set's total is below this release")
