"""Every way to change a document that keeps it well-formed, and a forger who fits all hashes."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from stillroom.release.card import card_html
from stillroom.release.files import CARD, CERTIFICATE, MANIFEST, digest, to_bytes
from stillroom.release.manifest import make_manifest

Step = str | int
Changed = tuple[str, tuple[Step, ...], dict[str, Any]]

_NUMBER = re.compile(r"\d+(/\d+)?")
_EMPTY = {str: "", list: [], dict: {}, int: 0, float: 0.0, bool: False}


def paths(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Every field, however deep."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*path, key))
    if isinstance(value, list):
        for place, inner in enumerate(value):
            yield from paths(inner, (*path, place))


def pattern(path: tuple[Step, ...]) -> str:
    """The field's name, whichever line of a list it stands in.

    >>> pattern(("parties", 0, "name"))
    'parties[].name'
    """
    return "".join("[]" if isinstance(s, int) else f".{s}" for s in path).lstrip(".")


def at(document: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values that could stand in the same place."""
    if type(value) in _EMPTY and value != _EMPTY[type(value)]:
        yield "emptied", _EMPTY[type(value)]
    if value is not None:
        yield "nothing", None
    if isinstance(value, bool):
        yield "turned", not value
    elif isinstance(value, (int, float)):
        for factor in (0.5, 0.999, 1.001, 2):
            scaled = type(value)(value * factor)
            if scaled != value:
                yield f"times {factor}", scaled
        yield "one more", value + 1
        yield "one less", value - 1
        yield "another type", float(value) if isinstance(value, int) else str(value)
        if value in (0, 1):
            yield "a truth value", bool(value)
    elif isinstance(value, str):
        for mark in ("\n", "\x1b[2K", "‮", " and more"):
            yield f"with {mark!r}", value + mark
        if _NUMBER.fullmatch(value) and Fraction(value):
            yield from (("halved", str(Fraction(value) / 2)), ("doubled", str(Fraction(value) * 2)))
        if re.fullmatch(r"[0-9a-f]{32,}", value):
            yield "another hash", value[::-1]


def mutations(document: dict[str, Any]) -> Iterator[Changed]:
    """The document changed in one place, in every way."""
    for path in paths(document):
        *above, last = path
        old = at(document, path)

        def changed(edit, above=tuple(above)) -> dict[str, Any]:
            other = copy.deepcopy(document)
            edit(at(other, above))
            return other

        yield "deleted", path, changed(lambda inside, last=last: inside.pop(last))
        for how, value in _others(old):
            yield (
                how,
                path,
                changed(lambda inside, last=last, value=value: inside.__setitem__(last, value)),
            )
        if isinstance(last, int):
            twice = copy.deepcopy(old)
            yield (
                "doubled",
                path,
                changed(lambda inside, last=last, twice=twice: inside.insert(last, twice)),
            )
        siblings = at(document, tuple(above))
        names = list(siblings) if isinstance(siblings, dict) else list(range(len(siblings)))
        after = names[names.index(last) + 1 :]
        if after and type(siblings[after[0]]) is type(old) and siblings[after[0]] != old:
            yield (
                "swapped",
                path,
                changed(
                    lambda inside, last=last, other=after[0]: (
                        inside.update({last: inside[other], other: inside[last]})
                        if isinstance(inside, dict)
                        else inside.__setitem__(
                            slice(last, other + 1), [inside[other], inside[last]]
                        )
                    )
                ),
            )
        if isinstance(old, dict):
            yield (
                "a field more",
                path,
                changed(lambda inside, last=last: inside[last].update(note="trust me")),
            )


def forge(bundle: Path, certificate: dict[str, Any], picture: bytes | None) -> None:
    """Put a certificate into a bundle, with a card and hashes that fit it."""
    certificate["digest"] = digest(certificate)
    (bundle / CERTIFICATE).write_bytes(to_bytes(certificate))
    with suppress(Exception):  # what makes no sense has no card
        (bundle / CARD).write_text(card_html(certificate, picture))
    rehash(bundle)


def rehash(bundle: Path) -> None:
    """Make the manifest fit the files as they are."""
    files = [file for file in sorted(bundle.iterdir()) if file.name != MANIFEST]
    contents = {file.name: file.read_bytes() for file in files}
    (bundle / MANIFEST).write_bytes(to_bytes(make_manifest(contents, None)))
