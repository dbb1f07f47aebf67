"""Ed25519 key pairs for manifests: a private file for its owner alone, a public one to hand out."""

from __future__ import annotations

import errno
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from stillroom.documents import file_content
from stillroom.durable import sweep, taking_turns, write_whole
from stillroom.errors import BadInput
from stillroom.nearest import near_file

_LARGEST_FILE = 1 << 16
_WEAK = frozenset(
    int.from_bytes(bytes.fromhex(y), "little")
    for y in (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    )
)
"""The y of every point whose order divides eight, in each of its spellings.

Multiplied by a hash, such a point vanishes once in eight times or always: whoever likes can make
a signature that verifies, and nobody has a private half (RFC 8032 leaves the check to its users).
"""


def public_path(path: Path) -> Path:
    """Where the public half of a private key lies.

    >>> public_path(Path("release.key")).name
    'release.key.pub'
    """
    return path.with_name(path.name + ".pub")


def make_keys(path: Path) -> tuple[Path, Path]:
    """A new key pair: the private half at `path`, the public half beside it.

    Guarantee: no file with anything in it is overwritten; the private one can be read by its owner
    alone; both are whole or absent. A pair that was cut off between its halves is completed.

    Raises:
        BadInput: a file is there already, or the place cannot be written to.

    >>> import tempfile
    >>> private, public = make_keys(Path(tempfile.mkdtemp()) / "release.key")
    >>> message = b"a manifest"
    >>> is_signed(message, sign(message, read_private(private)), read_public(public))
    True
    """
    private, public = path, public_path(path)
    try:
        with taking_turns(private):
            sweep(private)
            sweep(public)
            if _has_content(public):
                raise FileExistsError(errno.EEXIST, "there is already a public half")
            if _has_content(private):
                key = Ed25519PrivateKey.from_private_bytes(read_private(private))
            else:
                key = Ed25519PrivateKey.generate()
                pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
                write_whole(private, pem)
            shown = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            write_whole(public, shown, mode=0o644)
    except OSError as error:
        raise BadInput(
            f"the key pair cannot be written ({error.strerror})",
            where=str(path),
            why="an existing key is never overwritten: bundles signed by it would lose their proof",
            remedy="name a new file in a folder that can be written to",
        ) from None
    return private, public


def _has_content(path: Path) -> bool:
    """Whether there is more than the empty file that a crash may have left."""
    return path.exists() and path.stat().st_size > 0


def read_private(path: Path) -> bytes:
    """The 32 bytes of a private key.

    Raises:
        BadInput: there is none, or others can read it.
    """
    content = _read(path)
    if path.stat().st_mode & 0o077:
        raise BadInput(
            "the private key can be read by others",
            where=str(path),
            why="whoever has it can sign in its owner's name",
            remedy=f"chmod 600 {path}",
        )
    try:
        key = load_pem_private_key(content, password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "private")
    return key.private_bytes_raw()


def read_public(path: Path) -> bytes:
    """The 32 bytes of a public key.

    Raises:
        BadInput: there is none, or one that anyone can sign for.
    """
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path, "public")
    public = key.public_bytes_raw()
    if is_weak(public):
        raise BadInput(
            "the public key is one that anyone can sign for",
            where=str(path),
            why="it is a point of low order, to which no private key belongs",
            remedy="ask whoever signs for the real public key",
        )
    return public


def is_weak(public: bytes) -> bool:
    """Whether a public key is a point of low order, for which anyone can sign.

    >>> is_weak(bytes([1] + 31 * [0])), is_weak(public_of(bytes(32)))
    (True, False)
    """
    return int.from_bytes(public, "little") & ~(1 << 255) in _WEAK


def sign(message: bytes, private: bytes) -> bytes:
    """The signature of a message."""
    return Ed25519PrivateKey.from_private_bytes(private).sign(message)


def public_of(private: bytes) -> bytes:
    """The public half of a private key."""
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def is_signed(message: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the owner of a public key signed the message; a weak key has no owner."""
    if is_weak(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(path: Path) -> bytes:
    try:
        return file_content(path, _LARGEST_FILE)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(
            f"the key cannot be read ({reason})",
            where=str(path),
            why="without it nothing can be signed or compared",
            remedy=f"{near_file(path)}check the path, or make a pair with `stillroom keys make`",
        ) from None


def _no_key(path: Path, half: str) -> BadInput:
    other = "the public half ends in .pub" if half == "public" else "the private half has no .pub"
    return BadInput(
        f"the file holds no {half} Ed25519 key",
        where=str(path),
        why="signatures of bundles are Ed25519 signatures",
        remedy=f"{other}; make a pair with `stillroom keys make`",
    )
