"""Write a bundle: all of its files or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stillroom.durable import alive
from stillroom.errors import BadInput
from stillroom.release import files
from stillroom.release.card import card_html
from stillroom.release.certificate import certify
from stillroom.release.files import CARD, CERTIFICATE, MANIFEST, RECIPE, from_bytes, to_bytes
from stillroom.release.manifest import make_manifest
from stillroom.release.record import ReleaseRecord
from stillroom.release.verifier import verify_bundle


def write_bundle(
    record: ReleaseRecord,
    folder: Path | str,
    key: bytes | None = None,
    verify: Callable[[Path], object] = verify_bundle,
) -> dict[str, Any]:
    """Certify a release and write its bundle; return the certificate.

    Guarantee: the folder appears whole or not at all, and a valid bundle has passed the verifier.

    Args:
        record: the release.
        folder: where the bundle will be; new, or empty.
        key: the 32 bytes of a private Ed25519 key that signs the manifest.
        verify: what a valid bundle must pass before it is put in place.

    Raises:
        BadInput: the folder is not empty, or cannot be written.
        DoesNotVerify: an assumption failed, a draw has no block, or more was drawn than reserved.
        NumericalDoubt: the ONNX graph gives other answers than the model.
    """
    folder = Path(folder)
    _refuse_unless_empty(folder)
    contents = {RECIPE: record.recipe.encode()}
    for artefact in record.artefacts:
        contents |= artefact.files()
    contents[CERTIFICATE] = to_bytes(certify(record, contents))
    # Read back, so that the card is made of what every reader of the file will see.
    certificate = from_bytes(contents[CERTIFICATE])
    samples = record.sections.get("samples")
    contents[CARD] = card_html(certificate, None if samples is None else samples.png).encode()
    manifest = make_manifest(contents, key)
    _refuse_too_long(folder, contents)
    try:
        check = verify if certificate["status"] == "valid" else None
        _write(folder, {**contents, MANIFEST: to_bytes(manifest)}, check)
    except OSError as error:
        raise BadInput(
            f"the bundle cannot be written ({error.strerror})",
            where=str(folder),
            why="a bundle is whole or not there; what was drawn stays charged and is not lost",
            remedy="make room or choose another place, then run the same command again",
        ) from None
    return certificate


def _refuse_too_long(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        most = files.LARGEST.get(name, files.LARGEST_ARTEFACT)
        if len(content) > most:
            raise BadInput(
                f"{name} has {len(content)} bytes, more than {most}",
                where=str(folder / name),
                why="whoever verifies or uses a bundle reads no file longer than that",
                remedy="release a smaller model",
            )


def _refuse_unless_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(
            "there is already something at that place",
            where=str(folder),
            why="a bundle is never overwritten: someone may rely on it",
            remedy="name a new or an empty folder",
        )


def _write(
    folder: Path, contents: Mapping[str, bytes], check: Callable[[Path], object] | None
) -> None:
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    draft.mkdir()
    try:
        for name, content in contents.items():
            with (draft / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if check is not None:
            check(draft)
        _refuse_unless_empty(folder)
        try:
            os.rename(draft, folder)
        except OSError:
            # An empty folder that cannot be replaced, such as a mount point, is filled instead;
            # the manifest comes last, so that half a bundle never looks like a whole one.
            if not folder.is_dir():
                raise
            _refuse_unless_empty(folder)
            for name in contents:
                shutil.move(draft / name, folder / name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove the drafts of processes that were killed."""
    for draft in folder.parent.glob(f".{folder.name}.*.draft"):
        owner = draft.suffixes[-2].lstrip(".")
        if owner.isdigit() and not alive(int(owner)):
            shutil.rmtree(draft, ignore_errors=True)
