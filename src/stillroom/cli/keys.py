"""`stillroom keys`: key pairs that sign bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Keys: make a pair that signs bundles.", no_args_is_help=True)


@app.callback()
def _keys() -> None:
    """Keys: make a pair that signs bundles."""


@app.command("make")
def make(
    path: Annotated[
        Path, typer.Argument(help="A new file for the private key; the public one ends in .pub.")
    ],
) -> None:
    """Make an Ed25519 key pair.

    Example: stillroom keys make release.key
    """
    from stillroom.release.keys import make_keys

    private, public = make_keys(path)
    typer.echo(f"private key: {private} (keep it: whoever has it can sign in your name)")
    typer.echo(f"public key: {public} (hand it out, by another way than the bundles)")
