"""The verifier: is this bundle whole, and does it say no more than its events and files bear out?

It needs the accountants and nothing that trains or runs a model. Whatever follows from something
else in the bundle is built again and compared, so nothing of it is believed. What only the releaser
can know, and the ledger stays with the data, is listed in `WORD` and printed as the releaser's
word; a signature binds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stillroom
from stillroom.errors import DoesNotVerify, StillroomError
from stillroom.gate.accounting import fold
from stillroom.gate.events import lines_from_json
from stillroom.gate.ledger.chain import canonical
from stillroom.release import older
from stillroom.release.artefacts import WEIGHTS, main_file
from stillroom.release.card import card_html
from stillroom.release.certificate import FORMAT, VERSION, completed, versions
from stillroom.release.compact import check_compact
from stillroom.release.compact_parts import COMPACT
from stillroom.release.figures import Figures
from stillroom.release.files import CARD, CERTIFICATE, to_bytes
from stillroom.release.keys import read_public
from stillroom.release.manifest import check_signature, does_not, parsed, read_files
from stillroom.release.parties import COUNTS, blocks_of, guaranteed
from stillroom.release.promise import promise
from stillroom.release.sections import SECTIONS, not_checked
from stillroom.release.sections.samples import picture_of
from stillroom.vocabulary import Pair

WORD = {
    "blocks": "what the ledger reserved, drew and lost for this release, and when",
    "data_set": "the ledger's name, head, budgets and reasons, and what other releases drew",
    **{name: section.word for name, section in SECTIONS.items() if section.word},
    "facts": "what the method observed: see `facts` in certificate.json",
    "versions": "what it was made with",
}
"""What nobody else can check, by the field or section of the certificate it stands in."""

_UNFIT = {
    "guarantees": "an epsilon is not what the events cost",
    "headline": "the headline is not one of the guarantees",
    "events": "the events are not those of the blocks",
    "data_set": "the data set's total is not what all events cost",
    "evaluation": "the accuracy is not that of the counts",
    "unprotected": "the list of what is not protected is not complete",
    "artefacts": "it belongs to another model or recipe",
    "recipe": "it belongs to another model or recipe",
}
ODD = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
"""What reading a malformed document can end in."""
MOST_WISHES = 1000
"""Of all blocks of a certificate; a release has some ten."""


@dataclass(frozen=True)
class Opened:
    """A bundle that was found whole.

    Args:
        folder: where it is.
        contents: its files, by name.
        certificate: checked, all of it.
        signature: who signed it, in words.
        card: whether its page was compared, in words.
        recipe: whether its recipe was compared, in words; `pipeline.verify` does it.
    """

    folder: Path
    contents: Mapping[str, bytes]
    certificate: dict[str, Any]
    signature: str
    card: str
    recipe: str = "not compared"

    @property
    def older(self) -> bool:
        """Whether an earlier version made it: its recipe and card are not compared."""
        return bool(self.certificate["version"] < VERSION)

    def report(self) -> dict[str, Any]:
        """What was checked, as a document for `--json`."""
        with certain(self.folder / CERTIFICATE):
            told = _report(self.certificate)
        word = {"word": older.WORD} if self.older else {}
        compared = {"signature": self.signature, "card": self.card, "recipe": self.recipe}
        return {**told, **word, **compared}


def verify_bundle(folder: Path | str, key: Path | str | None = None) -> dict[str, Any]:
    """Check a bundle's files, signature, certificate and card, and price its events again.

    Guarantee: no stated epsilon is below what the stated events cost, and whatever follows from
    the events and the files does follow from them.
    Assumes: without a key, that nobody rewrote the whole bundle on purpose. What the recipe says is
    compared by `methods.verify`, which knows how to read it.

    Args:
        folder: the bundle.
        key: the file of a public key; the bundle must be signed by it.

    Returns what was checked, as a document for `--json`.

    Raises:
        BadInput: there is no such folder or key.
        DoesNotVerify: something does not fit; the message names the file.
    """
    return open_bundle(folder, key).report()


def open_bundle(
    folder: Path | str, key: Path | str | None = None, *, with_card: bool = True
) -> Opened:
    """The bundle in a folder, checked, with its card or without; else as `verify_bundle`."""
    folder = Path(folder)
    public = None if key is None else read_public(Path(key))
    manifest, contents = read_files(folder)
    signature = check_signature(folder, manifest, public)
    certificate = checked_certificate(folder, contents)
    card = older.NOT_COMPARED if certificate["version"] < VERSION else "not checked"
    if with_card and certificate["version"] == VERSION:
        with certain(folder / CARD):
            card = _check_card(certificate, contents[CARD], folder / CARD)
    return Opened(folder, contents, certificate, signature, card)


def checked_certificate(folder: Path, contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The certificate among a bundle's files, all of it but the card checked.

    Raises:
        DoesNotVerify: it is not what follows from what it states, or is void.
    """
    place = folder / CERTIFICATE
    certificate = parsed(contents[CERTIFICATE], place)
    with certain(place):
        _check_version(certificate, place)
        if to_bytes(certificate) != contents[CERTIFICATE]:
            raise does_not(place, "certificate.json is spelled in another way than it was written")
        old = certificate["version"] < older.FIVE
        blocks = certificate["blocks"] if old else blocks_of(certificate)
        if sum(len(block["wishes"]) for block in blocks) > MOST_WISHES:
            raise does_not(place, "certificate.json has more wishes than any release")
        if old:
            certificate = older.read(certificate, contents, place)
        else:
            told = older.in_words_of_today(certificate)
            again = completed(told, contents, _figures(certificate))
            _compare(certificate, older.in_words_of(certificate["version"], again), place)
    _check_compact_files(certificate, contents, folder)
    if certificate["status"] != "valid":
        raise DoesNotVerify(
            "the certificate is void: its noise did not come from the operating system",
            where=str(place),
            why="whoever knows the seed can subtract the noise, so epsilon is infinite",
            remedy="release again without a seed; use this bundle for tests only",
        )
    return certificate


@contextmanager
def certain(place: Path) -> Iterator[None]:
    """Whatever reading a file of a bundle ends in, it does not verify.

    Raises:
        DoesNotVerify: in place of any error; it names the file.
    """
    name = place.name
    try:
        yield
    except DoesNotVerify as error:
        if error.where == str(place):
            raise
        raise does_not(place, f"{name}: {error.what}") from None
    except StillroomError as error:
        raise does_not(place, f"{name} makes no sense: {error.what}") from None
    except ODD as error:
        raise does_not(
            place, f"{name} cannot be read with certainty ({type(error).__name__})"
        ) from None


def _check_version(certificate: Mapping[str, Any], place: Path) -> None:
    if certificate["format"] != FORMAT or type(certificate["version"]) is not int:
        raise does_not(place, "certificate.json is of an unknown format")
    if 0 < certificate["version"] < older.OLDEST:
        raise DoesNotVerify(
            f"the certificate is of version {certificate['version']}, whose epsilons could be too "
            "small",
            where=str(place),
            why="faults in prices and in what leaves were mended since; CHANGELOG names them under "
            "Privacy",
            remedy="ask whoever released it to release again",
        )
    if not 0 < certificate["version"] <= VERSION:
        raise does_not(place, "certificate.json is of an unknown version")


def _figures(certificate: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Figures]:
    made_with, here = certificate["versions"], versions()
    same = all(made_with[part] == here[part] for part in ("stillroom", "dp-accounting"))
    return lambda party: Figures.stated(
        party["guarantees"], party["data_set"]["totals"], larger=not same
    )


_INSIDE = ("parties", "sections")


def _fields(certificate: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Every field of the core, of a party and of the sections, by its place and name."""
    core = {name: value for name, value in certificate.items() if name not in _INSIDE}
    found: dict[tuple[str, ...], Any] = {(name,): value for name, value in core.items()}
    for place, party in enumerate(certificate["parties"]):
        found |= {("parties", str(place), name): value for name, value in party.items()}
    return found | {("sections", name): body for name, body in certificate["sections"].items()}


def _compare(certificate: Mapping[str, Any], again: Mapping[str, Any], place: Path) -> None:
    """The whole document against the one that follows from what it states."""
    stated, derived = _fields(certificate), _fields(again)
    for path in sorted({*stated, *derived} - {("digest",)}, key=lambda path: path[::-1]):
        name = path[-1]
        if path not in stated or path not in derived:
            raise does_not(place, f"certificate.json has a field too many or too few: {name}")
        # As text: True and 1 are equal, and are two statements.
        if canonical(stated[path]) != canonical(derived[path]):
            what = _UNFIT.get(name, f"its {name} does not follow from the rest")
            raise does_not(place, f"certificate.json does not fit together: {what}")
    if certificate.get("digest") != again["digest"]:
        raise does_not(place, "certificate.json was changed: its digest is another")


def _check_compact_files(
    certificate: Mapping[str, Any], contents: Mapping[str, bytes], folder: Path
) -> None:
    """A compact file has the weights of its model, to the bit."""
    for artefact in certificate["artefacts"]:
        if artefact.get("make") == COMPACT:
            file, model = main_file(artefact), f"{artefact['of']}{WEIGHTS}"
            with certain(folder / file):
                try:
                    check_compact(contents[file], contents[model])
                except ValueError as error:
                    what = f"{file} does not hold the weights of {model}: {error}"
                    raise does_not(folder / file, what) from None


def _check_card(certificate: Mapping[str, Any], card: bytes, place: Path) -> str:
    """Whether the page says what the certificate says: it is rendered again."""
    if certificate["versions"]["stillroom"] != stillroom.__version__:
        return "not checked: another version made it; `stillroom card` makes it again"
    if card != card_html(certificate, picture_of(certificate, card, place)).encode():
        raise does_not(place, "card.html does not show what the certificate says")
    return "shows what the certificate says"


def _report(certificate: Mapping[str, Any]) -> dict[str, Any]:
    there = {"blocks", "data_set", "versions", *certificate["sections"]}
    there |= {"facts"} if certificate["facts"] else set()
    return {
        "verifies": True,
        "promise": promise(certificate, yours=False),
        "evaluation": certificate["sections"].get("evaluation"),
        **{name: certificate[name] for name in REPORTED},
        "parties": [_party(party, certificate["delta"]) for party in certificate["parties"]],
        **{key: sum(block[key] for block in blocks_of(certificate)) for key in COUNTS},
        "word": {name: text for name, text in WORD.items() if name in there},
        "not_checked": not_checked(certificate),
        "certificate": certificate["digest"],
    }


REPORTED = (
    *("status", "method", "mode", "purpose", "asked", "headline", "artefacts", "tuning"),
    *("assumptions", "unprotected", "warnings", "facts"),
)


def _party(party: Mapping[str, Any], delta: float) -> dict[str, Any]:
    lines = fold(lines_from_json(party["events"]))
    again = guaranteed(lines, delta, [Pair.parse(text) for text in party["unproven"]])
    return {
        **{name: party[name] for name in ("name", "headline", "data_set")},
        "guarantees": [
            {**line, "priced_again": mine["epsilon"]}
            for line, mine in zip(party["guarantees"], again, strict=True)
        ],
    }
