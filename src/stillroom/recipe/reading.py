"""From a TOML text to the recipe of its method, with every fault named at once."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from stillroom.documents import file_content, has_long_keys
from stillroom.errors import BadInput
from stillroom.nearest import near_file
from stillroom.recipe.base import Recipe
from stillroom.recipe.section import shown_key

LARGEST_FILE = 1 << 20
MOST_FAULTS = 20

KindOf = Callable[[str], type[Recipe]]
"""The recipe class of a method, by the method's name."""


def read_text(path: Path) -> str:
    """The text of a recipe's file.

    Raises:
        BadInput: it cannot be read.
    """
    try:
        return file_content(path, LARGEST_FILE).decode("utf-8")
    except FileNotFoundError:
        raise BadInput(
            "there is no such recipe",
            where=str(path),
            why="without a recipe there is nothing to do",
            remedy=f"{near_file(path)}check the path, or write one: `stillroom recipe new`",
        ) from None
    except (OSError, ValueError):
        raise BadInput(
            f"the recipe cannot be read, or is no plain text of at most {LARGEST_FILE} bytes",
            where=str(path),
            why="without a recipe there is nothing to do",
            remedy="name the recipe's file, saved as plain text in UTF-8",
        ) from None


def parse(text: str, kind_of: KindOf, where: str = "recipe") -> Recipe:
    """A recipe from its text.

    Raises:
        BadInput: something in it does not fit; all faults are named.
    """
    refuse_long_keys(text, where)
    try:
        document = tomllib.loads(text)
        _refuse_unprintable(document, where)
    except (ValueError, RecursionError) as error:
        told = isinstance(error, tomllib.TOMLDecodeError)
        raise BadInput(
            f"the recipe is not TOML: {error if told else 'too long a number, or nested too deep'}",
            where=where,
            why="nothing can be read from it with certainty",
            remedy="mend the line it names" if told else "write plain tables of short values",
        ) from None
    kind = kind_of(document.get("method", "direct"))
    try:
        recipe = kind.model_validate(document)
    except ValidationError as error:
        found = _without_new_names(kind, error.errors(include_url=False))
        faults = [_fault(kind, fault) for fault in found[:MOST_FAULTS]]
        if len(found) > len(faults):
            faults.append(f"and {len(found) - len(faults)} more")
        raise _unfit(kind, faults, where) from None
    misfits = [text for text, wrong in recipe.misfits().items() if wrong]
    if misfits:
        raise _unfit(kind, misfits, where)
    return recipe


def _unfit(kind: type[Recipe], faults: list[str], where: str) -> BadInput:
    return BadInput(
        "; ".join(faults),
        where=where,
        why="a run must be fixed by its recipe before anything is drawn",
        remedy="mend these lines; `stillroom recipe explain --method "
        f"{kind.model_fields['method'].default}` shows every key and default",
    )


def refuse_long_keys(text: str, where: str) -> None:
    """Refuse what takes a reader of TOML too long, before anything is read.

    Raises:
        BadInput: there is a key of many parts, or a text in three quotes.
    """
    if has_long_keys(text):
        raise BadInput(
            "the recipe has a key of ten or more parts, or a text in three quotes",
            where=where,
            why="no recipe needs either",
            remedy="write one key per line, under the name of its table; and texts in one quote",
        )


def _refuse_unprintable(value: Any, where: str, place: str = "") -> None:
    """Names and sources stand on the certificate, which is one line of plain text each."""
    if isinstance(value, str) and not value.isprintable():
        raise BadInput(
            f"{place}: a text has line breaks or characters that cannot be printed",
            where=where,
            why="it is shown on the certificate and in terminals, where it could hide something",
            remedy="write it in one line of plain text",
        )
    if isinstance(value, (dict, list)):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            inner = f"{place}.{shown_key(name)}" if place else shown_key(name)
            _refuse_unprintable(part, where, inner)


def _without_new_names(kind: type[Recipe], faults: list[Any]) -> list[Any]:
    """A key that is there under an older name is not missing as well."""
    places = {".".join(map(shown_key, fault["loc"])) for fault in faults}
    there = {new for old, new in kind.renamed.items() if old in places}
    return [f for f in faults if ".".join(map(shown_key, f["loc"])) not in there]


def _fault(kind: type[Recipe], fault: Any) -> str:
    place = ".".join(map(shown_key, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        if place in kind.renamed:
            return f"{place}: is now called {kind.renamed[place]!r}"
        known = [
            field.alias or name
            for name, field in _section(kind, fault["loc"][:-1]).model_fields.items()
        ]
        near = difflib.get_close_matches(shown_key(fault["loc"][-1]), known, n=1, cutoff=0.0)
        return f"{place}: unknown key; the nearest known one is {near[0]!r}"
    if fault["type"] == "missing":
        about = _about(kind, fault["loc"])
        return f"{place}: is missing{f' ({about})' if about else ''}"
    # Very small bounds are spelled out with all their noughts.
    said = re.sub(r"\b0\.0{4,}\d+", lambda number: f"{float(number[0]):g}", fault["msg"])
    return f"{place}: {said.lower()}"


def _about(kind: type[BaseModel], place: tuple[int | str, ...]) -> str:
    """What a key means, where it has words of its own."""
    field = _section(kind, place[:-1]).model_fields.get(str(place[-1]))
    return "" if field is None else field.description or ""


def _section(kind: type[BaseModel], place: tuple[int | str, ...]) -> type[BaseModel]:
    for step in place:
        inner = _section_in(kind.model_fields[str(step)].annotation)
        assert inner is not None
        kind = inner
    return kind


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """The section that a field is, perhaps an optional one: a union with None."""
    kinds = [annotation, *get_args(annotation)]
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


def explain(recipe: Recipe) -> list[tuple[str, str, str, str]]:
    """Every key: its name, its value, whether that is the default, and what it means."""
    lines = []
    for name, field in type(recipe).model_fields.items():
        value = getattr(recipe, name)
        if isinstance(value, BaseModel):
            for inner, inner_field in type(value).model_fields.items():
                given = "given" if inner in value.model_fields_set else "default"
                about = inner_field.description or ""
                key = inner_field.alias or inner
                lines.append((f"{name}.{key}", _shown(getattr(value, inner)), given, about))
        else:
            given = "given" if name in recipe.model_fields_set else "default"
            lines.append((name, _shown(value), given, field.description or ""))
    return lines


def explain_kind(kind: type[Recipe]) -> list[tuple[str, str, str, str]]:
    """Every key that a recipe of this kind may have, with its default."""
    lines = []
    for name, field in kind.model_fields.items():
        inner = _section_in(field.annotation)
        if inner is None:
            lines.append(_told(name, field, "default"))
            continue
        whole = not field.is_required() and field.default is None
        own = f"in [{name}], if there is one" if whole else "default"
        lines += [_told(f"{name}.{key}", part, own) for key, part in inner.model_fields.items()]
    return lines


def _told(name: str, field: FieldInfo, default: str) -> tuple[str, str, str, str]:
    about = field.description or ""
    if field.is_required():
        return name, "", "must be given", about
    return name, _shown(field.get_default(call_default_factory=True)), default, about


def _shown(value: Any) -> str:
    """A value as one would write it; several with commas."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
