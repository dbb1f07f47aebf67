"""The card: one self-contained page that says in plain words what the certificate says.

The words are in templates/; here are the figures that the page needs and the certificate has not.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from stillroom.release import formatting
from stillroom.release.artefacts import main_file
from stillroom.release.compact_parts import COMPACT
from stillroom.release.files import number
from stillroom.release.parties import MANY
from stillroom.release.promise import by_prior, in_three, promise
from stillroom.release.sections import SECTIONS, not_checked

if TYPE_CHECKING:
    from jinja2 import Template

UNITS = {
    "record": "one record",
    "person": "one person, with all records of that person",
    "entity": "one whole model or participant, with all records behind it",
    "label": "the class of one record, of which all else is public",
}
RELATIONS = {
    "add-or-remove": "was used or not",
    "change": "had this content or another",
}

_PUBLIC = "the names of the classes, the recipe, and everything else that was declared public"


def card_html(certificate: Mapping[str, Any], picture: bytes | None = None) -> str:
    """The page for a certificate.

    Guarantee: no script, nothing loaded from elsewhere; all text of others is escaped; every
    epsilon is rounded up.

    Args:
        certificate: what the page says.
        picture: the sheet of samples drawn from a sketch or a generator, a PNG file.
    """
    parties, bound = certificate["parties"], number(certificate["headline"]["epsilon"])
    parts = [(s.name, s.place, s.shown(certificate)) for s in SECTIONS.values()]
    return _page().render(
        c=certificate,
        many=len(parties) > MANY,
        picture=None if picture is None else b64encode(picture).decode(),
        finite=math.isfinite(bound),
        promise=in_three(promise(certificate)),
        sure=by_prior(certificate),
        artefacts=[(one, one["files"][main_file(one)]["size"]) for one in certificate["artefacts"]],
        compact=_compact(certificate["artefacts"]),
        draws=any(one["kind"] == "generator" for one in certificate["artefacts"]),
        sized=" or ".join(main_file(one) for one in certificate["artefacts"]),
        parts=[part for part in parts if part[2] is not None],
        protected=_protected(parties),
        open_things=_open_things(certificate),
        lost=sum(block["lost"] for party in parties for block in party["blocks"]),
        not_checked=not_checked(certificate),
    )


def _compact(artefacts: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """Each compact file, and the artefact whose weights it has."""
    by_name = {one["name"]: one for one in artefacts}
    return [(one, by_name[one["of"]]) for one in artefacts if one.get("make") == COMPACT]


def _protected(parties: Any) -> list[str]:
    told = {
        f"{party['name'] + ': ' if 1 < len(parties) <= MANY else ''}{UNITS[line['unit']]}: "
        f"whether it {RELATIONS[line['relation']]}": None
        for party in parties
        for line in party["guarantees"]
    }
    return list(told)


def _open_things(certificate: Mapping[str, Any]) -> list[str]:
    units = {line["unit"] for party in certificate["parties"] for line in party["guarantees"]}
    if units == {"entity"}:
        return [
            *certificate["unprotected"],
            "what the records behind the model tell elsewhere, such as through another model that "
            "was trained on them, or this one trained further",
            _PUBLIC,
        ]
    if units == {"label"}:
        return [
            "the records themselves: their content, and that they were used, is declared public",
            *certificate["unprotected"],
            _PUBLIC,
        ]
    return [
        *([] if units else ["the records the model was trained on"]),
        *certificate["unprotected"],
        "what is true of the data as a whole, such as what a typical example of a class looks like",
        _PUBLIC,
        *(
            []
            if "person" in units
            else ["a person who has several records among the data, as one person"]
        ),
    ]


@cache
def _page() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader("stillroom.release"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.globals.update(units=UNITS, relations=RELATIONS, room_told=formatting.ROOM_LEFT)
    pages.filters.update(
        duration=formatting.duration,
        epsilon=formatting.epsilon,
        share=formatting.share,
        file_size=formatting.file_size,
        room_left=formatting.room_left,
    )
    return pages.get_template("page.html")
