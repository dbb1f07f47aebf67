"""The manifest: the hash and size of every file of a bundle, and who signed that list.

The signature covers the list; the digest covers list and signature, so that one changed byte of the
manifest itself is found too. Without a key this finds accidents, not forgery.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stillroom.documents import file_content
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate.ledger.chain import canonical
from stillroom.nearest import near_file
from stillroom.release import files, keys
from stillroom.release.files import MANIFEST, digest, sha256, to_bytes

FORMAT = "stillroom manifest"
VERSION = 1


def make_manifest(contents: Mapping[str, bytes], private: bytes | None) -> dict[str, Any]:
    """The manifest of these files, signed where a private key is given."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "files": {
            name: {"sha256": sha256(content), "size": len(content)}
            for name, content in contents.items()
        },
    }
    signature = None
    if private is not None:
        signature = {
            "algorithm": "Ed25519",
            "public_key": keys.public_of(private).hex(),
            "value": keys.sign(_message(body), private).hex(),
        }
    document = {**body, "signature": signature}
    return {**document, "digest": digest(document)}


def read_files(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and every file it lists, each with the hash it should have.

    Raises:
        BadInput: there is no such folder.
        DoesNotVerify: a file is missing, changed or too much; the message names it.
    """
    try:
        names = {file.name for file in folder.iterdir()}
    except OSError:
        raise BadInput(
            "there is no bundle at that place",
            where=str(folder),
            why="a bundle is a folder with a manifest",
            remedy=f"{near_file(folder)}check the path, and whether the folder may be read",
        ) from None
    if MANIFEST not in names and files.RUN_STATE in names:
        raise BadInput(
            "the folder is that of a run, not of its bundle",
            where=str(folder),
            why="it holds what an interrupted run needs to go on, and no model",
            remedy=f"{near_file(folder)}name the bundle's folder; if there is none, the run has "
            "not come to its end, and the same `stillroom release` goes on",
        )
    document = _manifest(folder)
    extra = sorted(names - {*document["files"], MANIFEST})
    if extra:
        raise does_not(folder / extra[0], "the file is not in the manifest")
    contents = {}
    for name, entry in document["files"].items():
        content = _content(folder / name)
        if (len(content), sha256(content)) != (entry["size"], entry["sha256"]):
            raise does_not(folder / name, f"{name} is not the file that was released")
        contents[name] = content
    return document, contents


def check_signature(folder: Path, document: Mapping[str, Any], public: bytes | None) -> str:
    """Who signed the manifest, in words.

    Args:
        folder: the bundle.
        document: its manifest.
        public: the key the reader trusts, if any.

    Raises:
        DoesNotVerify: the signature is wrong, missing, or another key's.
    """
    place, signature = folder / MANIFEST, document["signature"]
    if signature is None:
        if public is not None:
            raise does_not(
                place,
                "the bundle is not signed, and a key was given",
                "ask whoever released it for a signed copy; without --key, `verify` finds "
                "accidents only",
            )
        return "none: accidents are found, forgery is not: whoever rewrites all its files passes"
    try:
        own, value = bytes.fromhex(signature["public_key"]), bytes.fromhex(signature["value"])
        known = signature["algorithm"] == "Ed25519"
    except (KeyError, TypeError, ValueError):
        known = False
    body = {key: document[key] for key in ("format", "version", "files")}
    if known and keys.is_weak(own):
        raise does_not(place, "the key in the manifest is one that anyone can sign for")
    if not known or not keys.is_signed(_message(body), value, own):
        raise does_not(place, "the signature is not that of the key it names")
    if public is not None and own != public:
        raise does_not(
            place,
            "the bundle was signed by another key than the one given",
            "give the public key of whoever released it; if you did, do not use this bundle, and "
            "ask for an unchanged copy",
        )
    if public is None:
        return "valid, by the key in the bundle; give a key you trust to know whose it is"
    return "valid, by the key given"


UNCHANGED = "ask whoever released it for an unchanged copy; do not use this one"


def does_not(file: Path, what: str, remedy: str = UNCHANGED) -> DoesNotVerify:
    """The error for a bundle that is not what it claims to be; it names the file."""
    return DoesNotVerify(
        what,
        where=str(file),
        why="a bundle that was changed after its release cannot vouch for its epsilon",
        remedy=remedy,
    )


def parsed(content: bytes, file: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        DoesNotVerify: it is none.
    """
    try:
        return files.from_bytes(content)
    except ValueError:
        raise does_not(
            file,
            f"{file.name} is not a JSON object of plain text with each key once, of a reasonable "
            "length and depth",
        ) from None


def _message(body: Mapping[str, Any]) -> bytes:
    # The first line keeps a signature from being taken for one over something else.
    return f"{FORMAT} {VERSION}\n{canonical(body)}".encode()


def _manifest(folder: Path) -> dict[str, Any]:
    place = folder / MANIFEST
    content = _content(place)
    document = parsed(content, place)
    try:
        known = document["format"] == FORMAT and type(document["version"]) is int
        if not known or document["version"] != VERSION:
            raise does_not(place, "the manifest is of an unknown format or version")
        # Compared as bytes too: a changed blank has the same meaning and another file.
        if document["digest"] != digest(document) or to_bytes(document) != content:
            raise does_not(place, "the manifest was changed")
        listed = set(document["files"])
        others = listed - set(files.ALWAYS)
        whole = len(others) + len(files.ALWAYS) == len(listed) <= files.MOST_FILES
        if not others or not whole or not all(map(files.ARTEFACT.fullmatch, others)):
            raise does_not(place, "the manifest does not list the files of a bundle")
        for entry in document["files"].values():
            if type(entry["size"]) is not int or not isinstance(entry["sha256"], str):
                raise does_not(place, "the manifest does not list sizes and hashes")
        _ = document["signature"]
    except (KeyError, TypeError, ValueError):
        raise does_not(place, "the manifest is incomplete") from None
    return document


def _content(file: Path) -> bytes:
    if file.is_symlink() or not file.is_file():
        raise does_not(file, f"{file.name} is missing, or is not a file")
    try:
        return file_content(file, files.LARGEST.get(file.name, files.LARGEST_ARTEFACT))
    except OSError as error:
        raise does_not(file, f"{file.name} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise does_not(file, f"{file.name} is no file of a bundle: {error}") from None
