"""The verifier: is this bundle whole, and is the epsilon in it what its events cost?

It needs the accountants and nothing that trains or runs a model. It cannot know what the ledger,
which stays with the data, really holds: draws and totals are the releaser's word, bound by the
signature and by the ledger's head.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stillroom.errors import DoesNotVerify, StillroomError
from stillroom.gate import mechanisms
from stillroom.gate.accounting import fold
from stillroom.gate.events import Line, lines_from_json
from stillroom.release.certificate import FORMAT, VERSION, headline, price_all
from stillroom.release.compression import CompressionReport
from stillroom.release.controls import MODES, Claim, Control, check_controls
from stillroom.release.files import BOUND, CARD, CERTIFICATE, ONNX, digest, number, sha256
from stillroom.release.keys import read_public
from stillroom.release.made import check_assumptions
from stillroom.release.manifest import check_signature, does_not, parsed, read_files
from stillroom.vocabulary import Pair, Relation, check_delta

_CLOSE = 1e-3
"""How far two versions of an accountant may differ before a figure counts as another one."""

_ODD = (ArithmeticError, AttributeError, RecursionError)
"""What else reading a malformed document can end in."""


def verify_bundle(folder: Path | str, key: Path | str | None = None) -> dict[str, Any]:
    """Check a bundle's files, signature and certificate, and price its events again.

    Guarantee: no stated epsilon is below what the stated events cost.
    Assumes: without a key, that nobody rewrote the whole bundle on purpose.

    Args:
        folder: the bundle.
        key: the file of a public key; the bundle must be signed by it.

    Returns what was checked, as a document for `--json`.

    Raises:
        BadInput: there is no such folder or key.
        DoesNotVerify: something does not fit; the message names the file.
    """
    folder = Path(folder)
    public = None if key is None else read_public(Path(key))
    manifest, contents = read_files(folder)
    signature = check_signature(folder, manifest, public)
    place = folder / CERTIFICATE
    certificate = parsed(contents[CERTIFICATE], place)
    try:
        if (certificate["format"], certificate["version"]) != (FORMAT, VERSION):
            raise does_not(place, "the certificate is of an unknown format or version")
        if certificate["digest"] != digest(certificate):
            raise does_not(place, "certificate.json was changed: its digest is another")
        for name in BOUND:
            if certificate["model"]["files"][name] != sha256(contents[name]):
                raise does_not(place, f"certificate.json belongs to another {name}")
        if certificate["model"]["size"] != len(contents[ONNX]):
            raise does_not(place, f"certificate.json states another size of {ONNX}")
        if certificate["digest"].encode() not in contents[CARD]:
            raise does_not(folder / CARD, "card.html belongs to another certificate")
        return {**_check(certificate, place), "signature": signature}
    except DoesNotVerify:
        raise
    except (StillroomError, LookupError, TypeError, ValueError, *_ODD) as error:
        raise does_not(
            place, f"certificate.json cannot be read with certainty ({type(error).__name__})"
        ) from None


def _check(certificate: Mapping[str, Any], place: Path) -> dict[str, Any]:
    _check_standing(certificate, place)
    check_assumptions(certificate["assumptions"], str(place))
    _check_company(certificate, place)
    lines = _check_events(certificate, place)
    unproven = tuple(Relation(name) for name in certificate["unproven"])
    again = price_all(lines, check_delta(certificate["delta"]), unproven=unproven)
    stated = {(line["for"], line["delta"]): line for line in certificate["guarantees"]}
    if set(stated) != {(line["for"], line["delta"]) for line in again}:
        raise does_not(place, "certificate.json does not state an epsilon for what is proven")
    for true in again:
        _compare(stated[true["for"], true["delta"]], true, place)
    top = certificate["headline"]
    pair = Pair.parse(top["for"])
    if top != headline(certificate["guarantees"], pair, certificate["delta"]):
        raise does_not(place, "the headline of certificate.json is not one of its guarantees")
    _check_total(certificate, place)
    blocks = certificate["blocks"]
    return {
        "verifies": True,
        "status": certificate["status"],
        "method": certificate["method"],
        "mode": certificate["mode"],
        "purpose": certificate["purpose"],
        "model": {name: certificate["model"][name] for name in ("about", "parameters", "size")},
        "headline": top,
        "guarantees": [
            {**stated[true["for"], true["delta"]], "priced_again": true["epsilon"]}
            for true in again
        ],
        **{key: sum(block[key] for block in blocks) for key in ("reserved", "drawn", "lost")},
        "data_set": certificate["data_set"],
        "tuning": certificate["tuning"],
        "assumptions": certificate["assumptions"],
        "unprotected": certificate["unprotected"],
        "warnings": certificate["warnings"],
        "certificate": certificate["digest"],
    }


def _check_standing(certificate: Mapping[str, Any], place: Path) -> None:
    sources = {certificate["noise"], *(block["noise"] for block in certificate["blocks"])}
    if certificate["status"] == "void" or sources != {"os"}:
        raise DoesNotVerify(
            "the certificate is void: its noise did not come from the operating system",
            where=str(place),
            why="whoever knows the seed can subtract the noise, so epsilon is infinite",
            remedy="release again without a seed; use this bundle for tests only",
        )
    if certificate["status"] != "valid" or certificate["mode"] not in MODES:
        raise does_not(place, "certificate.json has an unknown status or mode")


def _check_company(certificate: Mapping[str, Any], place: Path) -> None:
    """The claim, the controls and the compression, as far as they can be checked by themselves."""
    Claim.from_json(certificate["published"])
    evaluation = certificate["evaluation"]
    check_controls(
        [Control(**control) for control in certificate["controls"]],
        certificate["purpose"],
        certificate["blocks"],
        protected=None if evaluation is None else evaluation["protected"],
    )
    told, model = certificate["compression"], certificate["model"]
    if told is None:
        return
    report = CompressionReport.from_json(told)
    if report.to_json() != told:
        raise does_not(place, "the ratios in certificate.json are not those of its entries")
    if (report.student.parameters, report.student.size) != (model["parameters"], model["size"]):
        raise does_not(place, "the compression in certificate.json is that of another model")


def _check_events(certificate: Mapping[str, Any], place: Path) -> tuple[Line, ...]:
    """The events, which must be those of what the blocks reserved."""
    lines = fold(lines_from_json(certificate["events"]))
    reserved: list[Line] = []
    for block in certificate["blocks"]:
        for wish in block["wishes"]:
            counts = [wish["reserved"], wish["drawn"], wish["lost"]]
            if not all(type(count) is int and count >= 0 for count in counts):
                raise ValueError("not a count")
            if not wish["lost"] <= wish["drawn"] <= wish["reserved"]:
                raise does_not(place, f"block {block['block']} drew more than it had reserved")
            mechanism = mechanisms.mechanism_from_json(wish["mechanism"])
            reserved += mechanism.lines(wish["reserved"])
        for key in ("reserved", "drawn", "lost"):
            if block[key] != sum(wish[key] for wish in block["wishes"]):
                raise does_not(place, f"the counts of block {block['block']} do not add up")
    if not reserved or lines != fold(reserved):
        raise does_not(place, "the events in certificate.json are not those of its blocks")
    return lines


def _check_total(certificate: Mapping[str, Any], place: Path) -> None:
    """The data set has paid for this release at least (L6)."""
    data = certificate["data_set"]
    if any(block["block"] > data["position"] for block in certificate["blocks"]):
        raise does_not(place, "certificate.json names a block beyond the ledger's head")
    spent = {(total["for"], total["delta"]): total["spent"] for total in data["totals"]}
    for line in certificate["guarantees"]:
        total = spent.get((line["for"], line["delta"]))
        if total is not None and number(total) < number(line["epsilon"]) * (1 - _CLOSE) - 1e-6:
            raise does_not(place, "the data set's total in certificate.json is below this release")


def _compare(stated: Mapping[str, Any], true: Mapping[str, Any], place: Path) -> None:
    where = f"{true['for']} at delta {true['delta']:g}"
    if number(stated["epsilon"]) < number(true["epsilon"]) * (1 - _CLOSE) - 1e-6:
        raise does_not(
            place, f"the epsilon in certificate.json for {where} is less than the events cost"
        )
    # A better accountant may find less than was stated. The Renyi figure, though, is arithmetic on
    # a fixed grid: where it differs, it is the price of other events.
    was, now = number(stated["RDP"]), number(true["RDP"])
    if was != now and not abs(was - now) <= _CLOSE * now + 1e-6:
        raise does_not(place, f"the events in certificate.json are not those priced for {where}")
