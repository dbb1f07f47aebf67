"""Verify a bundle, recipe included: what the certificate says must be what its recipe comes to.

The release room builds again whatever follows from events, blocks and files. Here the recipe is
read as well, and what it fixes is derived from it: unit, delta, tuning, assumptions, warnings, what
it is compared with, and which mechanisms were reserved how often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

from stillroom.errors import DoesNotVerify, StillroomError
from stillroom.gate import Mechanism, mechanism_from_json
from stillroom.gate.ledger.chain import canonical
from stillroom.methods.base import Plan, Terms
from stillroom.methods.registry import method_named, parse
from stillroom.methods.wording import OF_ALL, stated_by, unproven_by
from stillroom.pipeline.pricing import requests_of
from stillroom.pipeline.run import PUBLIC_RECORDS, terms_of
from stillroom.recipe import Recipe
from stillroom.release import data_set
from stillroom.release.card import card_html
from stillroom.release.evaluation import tables_in
from stillroom.release.files import CARD, CERTIFICATE, RECIPE, number
from stillroom.release.manifest import does_not
from stillroom.release.verifier import ODD, Opened, certain, open_bundle, picture_of
from stillroom.sources import Facts, Request

LEAST_OF_ASKED = Fraction(1, 2)
"""Noise is found to a thousandth of its scale, so a release costs nearly what was asked for."""
_SOUGHT = ("sigma", "threshold_sigma")
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
        BadInput: there is no such folder.
        DoesNotVerify: something beside the old page does not fit.
    """
    bundle = _checked(open_bundle(folder, with_card=False))
    with certain(bundle.folder / CARD):
        picture = picture_of(bundle.certificate, bundle.contents[CARD], bundle.folder / CARD)
        return card_html(bundle.certificate, picture)


def _checked(bundle: Opened) -> Opened:
    """The bundle, its recipe compared with its certificate."""
    place = bundle.folder / CERTIFICATE
    for what in _contradictions(bundle):
        raise does_not(place, f"certificate.json does not say what recipe.toml comes to: {what}")
    return bundle


def _contradictions(bundle: Opened) -> Iterator[str]:
    """What the certificate says otherwise than the recipe, in words."""
    certificate = bundle.certificate
    try:
        recipe = parse(bundle.contents[RECIPE].decode("utf-8"))
        paid = certificate["blocks"][0]["wishes"][0]["reserved"]
        terms, facts = terms_of(recipe, certificate["facts"], paid), _facts(certificate)
        plan = method_named(recipe.method).plan(recipe, facts)
        expected = _expected(recipe, plan, terms, certificate)
        for name, value in expected.items():
            if canonical(certificate[name]) != canonical(value):
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
    model = certificate["model"]
    public = certificate["facts"].get(PUBLIC_RECORDS, 0)
    return Facts(tuple(model["shape"]), tuple(model["classes"]), public, width=1)


def _expected(
    recipe: Recipe, plan: Plan, terms: Terms, certificate: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a certificate, by their path, that its recipe decides."""
    unproven = {*unproven_by(recipe), *data_set.unproven(certificate["data_set"])}
    told = {
        **stated_by(recipe),
        "method": recipe.method,
        "purpose": recipe.purpose,
        "unproven": sorted(map(str, unproven)),
        "assumptions": {**terms.assumptions, **OF_ALL},
        "published": plan.claim.to_json(),
        "public_knowledge": list(terms.knowledge),
        "warnings": list(terms.warnings),
        "model": {**certificate["model"], "about": terms.about},
        "facts": {name: certificate["facts"].get(name) for name in sorted(terms.observed)},
    }
    if recipe.data.unit == "person":
        told["facts"]["persons"] = True
    measured = certificate["evaluation"]
    if measured is not None:
        told["evaluation"] = {**measured, "protected": not recipe.data.test_is_public}
    compared = plan.controls[: _figures_beside(recipe, certificate)]
    accuracies = [control["accuracy"] for control in certificate["controls"]]
    told["controls"] = [
        replace(control, accuracy=accuracy).to_json()
        for control, accuracy in zip_longest(compared, accuracies[: len(compared)])
    ]
    return told


def _figures_beside(recipe: Recipe, certificate: Mapping[str, Any]) -> int | None:
    """How many models it is compared with; None for all. Tables that were lost have no figure."""
    if certificate["evaluation"] is None:
        return 0
    return None if recipe.data.test_is_public else tables_in(certificate["blocks"])[1] - 1


def _other_presence(terms: Terms, certificate: Mapping[str, Any]) -> Iterator[str]:
    """What is there, and whether it should be."""
    compression, samples = certificate["compression"], certificate["samples"]
    if (None if compression is None else compression["teacher"]["name"]) != terms.teacher:
        yield "compression"
    if (0 if samples is None else samples["count"]) != terms.samples:
        yield "samples"


def _other_draws(
    recipe: Recipe, requests: Sequence[Request], certificate: Mapping[str, Any]
) -> Iterator[str]:
    """Mechanisms and numbers of answers against those the recipe would reserve."""
    drawn = [wish for block in certificate["blocks"] for wish in block["wishes"]]
    if len(certificate["blocks"]) != 1 or len(drawn) != len(requests):
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
    return {name: v for name, v in mechanism.describe().items() if name not in left_out}


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
