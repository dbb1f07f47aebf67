"""Certificates of one session's three parties, by an authority that exists for that session only.

MPyC unpickles what its peers send: a stranger who could connect could run code. So both ends of a
connection show a certificate. Never use those of MPyC's demos: their authority's private key is
public.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = datetime.timedelta(days=1)
"""A session is over long before; a clock may be wrong by as much."""
AUTHORITY = "mpyc_ca.crt"
"""The name under which MPyC looks for it."""


def write_certificates(folders: list[Path]) -> None:
    """Write key, certificate and authority of each party where MPyC looks for them.

    The authority's private key is never written. Keys have mode 0600, folders 0700.

    Args:
        folders: one per party, in their order; there is nothing in them yet.

    Raises:
        OSError: a folder cannot be written to.
    """
    authority = ec.generate_private_key(ec.SECP256R1())
    name = _name("stillroom session")
    root = _signed(name, authority.public_key(), name, authority, None)
    for party, folder in enumerate(folders):
        key = ec.generate_private_key(ec.SECP256R1())
        title = f"MPyC party {party}"
        shown = _signed(_name(title), key.public_key(), name, authority, title)
        place = folder / ".config"
        place.mkdir(mode=0o700)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write(place / f"party_{party}.key", secret)
        _write(place / f"party_{party}.crt", shown.public_bytes(serialization.Encoding.PEM))
        _write(place / AUTHORITY, root.public_bytes(serialization.Encoding.PEM))


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(content)


def _name(title: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
    title: str | None,
) -> x509.Certificate:
    """A certificate for a party's title, or for the authority itself."""
    now = datetime.datetime.now(datetime.UTC)
    draft = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFE)
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=title is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if title is not None:
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        draft = draft.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(title)]), critical=False
        ).add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    return draft.sign(signer, hashes.SHA256())
