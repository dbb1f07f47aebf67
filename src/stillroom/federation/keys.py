"""Keys of one session: agreed by X25519, derived by HKDF-SHA256, stretched by AES-256-CTR.

Every key is derived for one purpose, which is named together with the digest of the plan. So no
keystream serves two sessions, two pairs or two purposes. Identity keys (Ed25519) sign every reply.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Words = npt.NDArray[np.unsignedinteger]

SIZE = 32
"""Bytes of a key, of a digest and of an element of the field."""
NONCE = 12


def fresh() -> bytes:
    """A new 256-bit key from the operating system."""
    return AESGCM.generate_key(256)


def stream(key: bytes, count: int) -> bytes:
    """The first bytes of a key's AES-256-CTR keystream.

    >>> stream(bytes(32), 4).hex()
    'dc95c078'
    """
    # The counter starts at 0 each time: a key has one keystream, and is used for one thing.
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(count))


def words(key: bytes, count: int, bits: int) -> Words:
    """The keystream as unsigned words of 32 or 64 bits."""
    return np.frombuffer(stream(key, count * bits // 8), dtype=f"<u{bits // 8}")


def derived(secret: bytes, purpose: str, plan: bytes, *positions: int) -> bytes:
    """The key of a secret for one purpose within one plan, and for some entities.

    >>> derived(bytes(32), "mask", bytes(32), 0, 1) == derived(bytes(32), "mask", bytes(32), 1, 0)
    False
    """
    numbers = b"".join(position.to_bytes(4, "little") for position in positions)
    info = b"stillroom secure sum, " + purpose.encode() + b"\0" + plan + numbers
    return HKDF(hashes.SHA256(), SIZE, None, info).derive(secret)


def agreed(own: X25519PrivateKey, other: bytes) -> bytes | None:
    """The secret of two key pairs; None where the other's public key cannot agree on one."""
    try:
        return own.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:  # a wrong length, or a point of low order
        return None


def public_of(private: X25519PrivateKey) -> bytes:
    """The public half of a session key."""
    return private.public_key().public_bytes_raw()


def boxed(key: bytes, content: bytes, bound: bytes) -> bytes:
    """Content that only holders of the key can read, bound to where it belongs."""
    nonce = fresh()[:NONCE]
    return nonce + AESGCM(key).encrypt(nonce, content, bound)


def unboxed(key: bytes, box: bytes, bound: bytes) -> bytes | None:
    """The content of a box; None if it is not the one that was made for this place.

    >>> key = fresh()
    >>> unboxed(key, boxed(key, b"share", b"a to b"), b"a to b")
    b'share'
    >>> unboxed(key, boxed(key, b"share", b"a to b"), b"a to c") is None
    True
    """
    try:
        return AESGCM(key).decrypt(box[:NONCE], box[NONCE:], bound)
    except (InvalidTag, ValueError):
        return None


def is_signed(text: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the owner of a public identity key signed the text."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def digest(*parts: bytes) -> bytes:
    """SHA-256 of parts, which stay apart.

    >>> digest(b"ab", b"c") == digest(b"a", b"bc")
    False
    """
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.digest()
