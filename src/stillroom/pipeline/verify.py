"""Verify a bundle, recipe included: what the certificate says must be what its recipe comes to.

The release room builds again whatever follows from events, blocks and files. Here the recipe is
read as well, and what it fixes is derived from it: unit, delta, tuning, assumptions, warnings, what
it is compared with, and which mechanisms were reserved how often.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

from stillroom.errors import BadInput, DoesNotVerify, StillroomError
from stillroom.gate import Mechanism, mechanism_from_json
from stillroom.gate.ledger.chain import canonical
from stillroom.methods.base import Plan, Terms
from stillroom.methods.registry import method_named, method_names, package_of, parse
from stillroom.methods.wording import assumptions_of, stated_by, unproven_by
from stillroom.pipeline.holders import holder_names, own_epsilon
from stillroom.pipeline.pricing import requests_of
from stillroom.pipeline.run import terms_of
from stillroom.recipe import Recipe
from stillroom.release import data_set
from stillroom.release.card import card_html
from stillroom.release.compact import ABOUT
from stillroom.release.compact_parts import COMPACT
from stillroom.release.files import CARD, CERTIFICATE, RECIPE, number
from stillroom.release.manifest import does_not
from stillroom.release.parties import blocks_of
from stillroom.release.sections.base import classifier_in
from stillroom.release.sections.evaluation import tables_in
from stillroom.release.sections.samples import drawable, picture_of
from stillroom.release.verifier import ODD, Opened, certain, open_bundle
from stillroom.sources import Facts, Request
from stillroom.sources.base import PUBLIC_RECORDS

LEAST_OF_ASKED = Fraction(1, 2)
"""Noise is found to a thousandth of its scale, so a release costs nearly what was asked for."""
_SOUGHT = ("sigma", "threshold_sigma", "steepness", "share", "keep", "flip", "scale")
"""What the recipe does not fix by itself: noise that was sought for its epsilon."""


def verify(folder: Path | str, key: Path | str | None = None) -> dict[str, Any]:
    """Check a bundle as a stranger can: files, signature, certificate, card and recipe.

    Guarantee: no stated epsilon is below what the stated events cost, and whatever follows from
    the recipe, the events and the files does follow from them.
    Arguments, result and errors are those of `verify_bundle`, which leaves the recipe out.
    """
    return _checked(open_bundle(folder, key)).report()


def new_card(folder: Path | str) -> str:
    """The page of a bundle, rendered by this version; everything else is verified first.

    Raises:
        BadInput: there is no such folder, or an older version made the bundle.
        DoesNotVerify: something beside the old page does not fit.
    """
    bundle = _checked(open_bundle(folder, with_card=False))
    if bundle.older:
        raise BadInput(
            "the certificate is of an older version",
            where=str(bundle.folder),
            why="this version makes cards of its own certificates alone",
            remedy="make the card with the version that made the bundle; `versions` names it",
        )
    with certain(bundle.folder / CARD):
        picture = picture_of(bundle.certificate, bundle.contents[CARD], bundle.folder / CARD)
        return card_html(bundle.certificate, picture)


def _checked(bundle: Opened) -> Opened:
    """The bundle, its recipe compared with its certificate where the method is installed."""
    if bundle.older:
        return bundle
    place, method = bundle.folder / CERTIFICATE, bundle.certificate["method"]
    with certain(bundle.folder / RECIPE):
        named = tomllib.loads(bundle.contents[RECIPE].decode("utf-8")).get("method", "direct")
    if named != method["name"]:
        raise does_not(place, "certificate.json names another method than recipe.toml")
    if named not in method_names():
        told = f"not compared: method {method['name']} of {method['package']} {method['version']}"
        return replace(bundle, recipe=f"{told} is not installed here")
    for what in _contradictions(bundle):
        raise does_not(place, f"certificate.json does not say what recipe.toml comes to: {what}")
    return replace(bundle, recipe="comes to what the certificate says")


def _contradictions(bundle: Opened) -> Iterator[str]:
    """What the certificate says otherwise than the recipe, in words."""
    certificate = bundle.certificate
    try:
        recipe = parse(bundle.contents[RECIPE].decode("utf-8"))
        if [party["name"] for party in certificate["parties"]] != holder_names(recipe):
            yield "parties"
            return
        paid = blocks_of(certificate)[0]["wishes"][0]["reserved"]
        terms, facts = terms_of(recipe, certificate["facts"], paid), _facts(certificate)
        plan = method_named(recipe.method).plan(recipe, facts)
        for name, value in _expected(recipe, terms, certificate).items():
            if canonical(certificate[name]) != canonical(value):
                yield name
        for name, value in _expected_sections(recipe, plan, certificate).items():
            if canonical(certificate["sections"].get(name)) != canonical(value):
                yield name
        yield from _other_presence(terms, certificate)
        requests = requests_of(recipe, plan, facts)
        yield from _other_draws(recipe, requests, certificate)
        yield from _other_price(recipe, requests, certificate)
    except DoesNotVerify:
        raise
    except (StillroomError, *ODD) as error:
        yield f"the recipe cannot be followed ({type(error).__name__})"


def _facts(certificate: Mapping[str, Any]) -> Facts:
    """What the certificate says about the data; widths are not compared."""
    model = classifier_in(certificate["artefacts"])
    public = certificate["facts"].get(PUBLIC_RECORDS, 0)
    return Facts(tuple(model["shape"]), tuple(model["classes"]), public, width=1)


def _expected(recipe: Recipe, terms: Terms, certificate: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a certificate, by their path, that its recipe decides."""
    method, package = certificate["method"], package_of(recipe.method)[0]
    told = {
        **stated_by(recipe),
        "method": {**method, "name": recipe.method, "package": package},
        "purpose": recipe.purpose,
        "parties": [
            {**party, "unproven": _unproven(recipe, party)} for party in certificate["parties"]
        ],
        "assumptions": {**terms.assumptions, **assumptions_of(recipe)},
        "public_knowledge": list(terms.knowledge),
        "warnings": list(terms.warnings),
        "artefacts": _artefacts(recipe, terms, certificate["artefacts"]),
        "facts": {name: certificate["facts"].get(name) for name in sorted(terms.observed)},
    }
    if recipe.data.unit == "person":
        told["facts"]["persons"] = True
    if type(told["facts"].get(PUBLIC_RECORDS, 0)) is not int:
        told["facts"][PUBLIC_RECORDS] = "a whole number"
    return told


def _unproven(recipe: Recipe, party: Mapping[str, Any]) -> list[str]:
    """What neither the recipe's split nor the party's ids support."""
    return sorted(map(str, {*unproven_by(recipe), *data_set.unproven(party["data_set"])}))


def _artefacts(
    recipe: Recipe, terms: Terms, stated: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What is to be released, with what the recipe decides of it; no more and no less."""
    by_name = {artefact["name"]: artefact for artefact in stated}
    model = {**by_name.get("model", {}), "name": "model", "kind": "classifier"}
    model["about"] = terms.about
    model.pop("pictures", None)
    if recipe.data.form is not None:
        model["pictures"] = recipe.data.form.to_json()
    found = [model]
    if terms.generator is not None:
        same = {name: model.get(name) for name in ("shape", "classes")}
        own = {**by_name.get("generator", {}), "name": "generator", "kind": "generator", **same}
        found.append({**own, **terms.generator})
    if terms.compact:
        own = {**by_name.get(COMPACT, {}), "name": COMPACT, "kind": "parameters"}
        found.append({**own, "about": ABOUT, "make": COMPACT, "of": "model"})
    return found


def _expected_sections(
    recipe: Recipe, plan: Plan, certificate: Mapping[str, Any]
) -> dict[str, Any]:
    """What the recipe decides of the sections; None where there is to be none."""
    sections = certificate["sections"]
    measured = sections.get("evaluation")
    if measured is not None:
        measured = {**measured, "protected": not recipe.data.test_is_public}
    compared = plan.controls[: _figures_beside(recipe, certificate)]
    stated = sections.get("controls", {"models": []})["models"]
    accuracies = [control["accuracy"] for control in stated]
    models = [
        replace(control, accuracy=accuracy).to_json()
        for control, accuracy in zip_longest(compared, accuracies[: len(compared)])
    ]
    return {
        "published": plan.claim.to_json(),
        "evaluation": measured,
        "controls": {"models": models} if models else None,
    }


def _figures_beside(recipe: Recipe, certificate: Mapping[str, Any]) -> int | None:
    """How many models it is compared with; None for all. Tables that were lost have no figure."""
    if "evaluation" not in certificate["sections"]:
        return 0
    return None if recipe.data.test_is_public else tables_in(blocks_of(certificate))[1] - 1


def _other_presence(terms: Terms, certificate: Mapping[str, Any]) -> Iterator[str]:
    """What is there, and whether it should be."""
    compression, samples = (certificate["sections"].get(n) for n in ("compression", "samples"))
    if (None if compression is None else compression["teacher"]["name"]) != terms.teacher:
        yield "compression"
    shown = terms.samples if drawable(classifier_in(certificate["artefacts"])["shape"]) else 0
    if (0 if samples is None else samples["count"]) != shown:
        yield "samples"


def _other_draws(
    recipe: Recipe, requests: Sequence[Request], certificate: Mapping[str, Any]
) -> Iterator[str]:
    """Mechanisms and numbers of answers against those that each party would reserve."""
    for party in certificate["parties"]:
        own = (request.to(party["name"]) for request in requests)
        wanted = [request for request in own if request is not None]
        yield from _other_draws_of(recipe, wanted, party["blocks"])


def _other_draws_of(
    recipe: Recipe, requests: Sequence[Request], blocks: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    drawn = [wish for block in blocks for wish in block["wishes"]]
    named = [wish["name"] for wish in drawn] == [request.name for request in requests]
    if len(blocks) != 1 or not named:
        yield "what was reserved"
        return
    for place, (wish, request) in enumerate(zip(drawn, requests, strict=True)):
        stop = place == 0 and recipe.privacy.on_exhausted == "stop"
        less = stop and wish["reserved"] < request.count
        # A width follows from networks that are not looked at here, and changes no price.
        free = (*(_SOUGHT if request.sought else ()), *(("width",) if request.wide else ()))
        stated, planned = mechanism_from_json(wish["mechanism"]), request.at(Fraction(1))
        if _without(stated, *free) != _without(planned, *free) or not (
            wish["reserved"] == request.count or less
        ):
            yield f"what was reserved of {planned.name}"


def _without(mechanism: Mechanism, *left_out: str) -> dict[str, Any]:
    """The description of a mechanism, and of one that it runs, without some fields."""

    def told(body: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: told(value) if isinstance(value, dict) else value
            for name, value in body.items()
            if name not in left_out
        }

    return told(mechanism.describe())


def _other_price(
    recipe: Recipe, requests: Sequence[Request], certificate: Mapping[str, Any]
) -> Iterator[str]:
    """What it cost against what the recipe asks for."""
    if recipe.mode == "as-published":
        return
    asked, spent = recipe.privacy.epsilon, number(certificate["headline"]["epsilon"])
    sought = any(request.sought for request in requests)
    whole = sought and recipe.privacy.on_exhausted == "refuse"
    if not (float(LEAST_OF_ASKED) * asked if whole else 0) <= spent <= asked:
        yield f"it asks for epsilon {asked:g}"
    for party in certificate["parties"]:
        own = own_epsilon(recipe, party["name"])
        if number(party["headline"]["epsilon"]) > own:
            yield f"{party['name']} has an epsilon of {own:g}"
