"""A schema in a file beside a recipe becomes part of the recipe's text.

A recipe fixes a run and travels with the bundle, so nothing it depends on may stand elsewhere.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from stillroom.data.schema import Schema
from stillroom.errors import BadInput
from stillroom.recipe.reading import refuse_long_keys

_LINE = re.compile(
    r"""^[ \t]*schema[ \t]*=[ \t]*(?:"[^"\n]*"|'[^'\n]*')[ \t]*(?:#[^\n]*)?$""", re.M
)


def with_schema(text: str, recipe: Path) -> str:
    """The recipe's text with the schema that it names written out at its end.

    A text that names no file is left as it is, and so is one that is no TOML: whoever reads it next
    says what is wrong.

    Args:
        text: of the recipe.
        recipe: its file.

    Raises:
        BadInput: the schema cannot be read, or the recipe names it in another way than on a line
            of its own; or a key has many parts.
    """
    refuse_long_keys(text, str(recipe))
    file = _named(text)
    if file is None:
        return text
    schema = Schema.read(recipe.parent / file)
    lines = _LINE.findall(text)
    changed = _LINE.sub(f"# The schema of {Path(file).name} stands at the end.", text)
    changed = f"{changed.rstrip()}\n\n{schema.toml()}"
    if len(lines) != 1 or not _same(text, changed, schema):
        raise BadInput(
            "the recipe names its schema in a way that cannot be written out",
            where=f"{recipe}: data.schema",
            why="the schema becomes part of the recipe, which travels with the model",
            remedy=f'write schema = "{Path(file).name}" on a line of its own under [data]',
        )
    return changed


def _named(text: str) -> str | None:
    try:
        found = tomllib.loads(text)["data"]["schema"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def _same(text: str, changed: str, schema: Schema) -> bool:
    """Whether the schema is all that is different."""
    before: dict[str, Any] = tomllib.loads(text)
    try:
        after = tomllib.loads(changed)
    except ValueError:
        return False
    before["data"].pop("schema")
    return Schema.of(after["data"].pop("schema", None)) == schema and after == before
