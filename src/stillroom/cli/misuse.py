"""Words that are no command, or a command without its words: said as every other error."""

from __future__ import annotations

import click

from stillroom.errors import BadInput


def misused(error: click.UsageError) -> BadInput:
    """The error of a command line that cannot be understood.

    Args:
        error: what click says of it.
    """
    where = "stillroom" if error.ctx is None else error.ctx.command_path
    said, asked, near = error.format_message().strip().partition("Did you mean ")
    said = said.strip().rstrip(".")
    return BadInput(
        said[:1].lower() + said[1:],
        where=where,
        why="nothing was run, because it is not known what is wanted",
        remedy=f"{f'did you mean {near} ' if asked else ''}`{where} --help` shows what can be "
        "given, with examples",
    )
