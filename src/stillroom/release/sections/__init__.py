"""The sections a certificate can have, in the order they are checked: one file and one line each.

The certificate, the verifier and the card go through this registry. A section with a plain name is
this package's; that of another package is called `package:name`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stillroom.release.sections import (
    broken_sum,
    compression,
    controls,
    evaluation,
    published,
    samples,
)
from stillroom.release.sections.base import Body, Core, Section

SECTIONS: Mapping[str, Section] = {
    section.name: section
    for section in (
        published.SECTION,
        evaluation.SECTION,
        controls.SECTION,
        compression.SECTION,
        samples.SECTION,
        broken_sum.SECTION,
    )
}
_NAME = re.compile(r"(?:[a-z0-9][a-z0-9_.-]*:)?[a-z0-9][a-z0-9_ -]*")


def stated(given: Mapping[str, Any]) -> dict[str, Body]:
    """What a record's sections state; a section of another package is handed over as its body."""
    return {
        name: SECTIONS[name].stated(value) if name in SECTIONS else value
        for name, value in given.items()
        if value is not None
    }


def complete(bodies: Mapping[str, Any], core: Core) -> None:
    """Complete every section that is known here, and keep the others as they are.

    Raises:
        BadInput, DoesNotVerify, KeyError, TypeError, ValueError: a section makes no sense.
    """
    for name, section in SECTIONS.items():
        body = section.completed(bodies.get(name), core)
        if body is not None:
            core.sections[name] = body
    for name in sorted(set(bodies) - set(SECTIONS)):
        if not _NAME.fullmatch(name) or not isinstance(bodies[name], dict):
            raise ValueError("a section has no name, or is no object")
        core.sections[name] = bodies[name]


def unprotected(core: Core) -> list[str]:
    """What the sections tell exactly."""
    return [told for section in SECTIONS.values() for told in section.unprotected(core)]


def not_checked(certificate: Mapping[str, Any]) -> list[str]:
    """The sections that are not known here, in words.

    >>> not_checked({"sections": {"votes:tally": {}}, "versions": {"votes": "1.2"}})
    ['not checked: section tally of votes 1.2']
    """
    told = []
    for name in sorted(set(certificate["sections"]) - set(SECTIONS)):
        package, _, own = name.rpartition(":")
        package = package or "stillroom"
        told.append(f"not checked: section {own} of {package} {certificate['versions'][package]}")
    return told
