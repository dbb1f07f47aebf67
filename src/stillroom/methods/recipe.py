"""A recipe: one TOML file a run, checked when it is read, every default visible."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError

from stillroom.data import Split
from stillroom.data.loading import load_split
from stillroom.documents import file_content
from stillroom.errors import BadInput
from stillroom.methods.recipe_misfits import refuse_misfits
from stillroom.methods.recipe_parts import (
    DataPart,
    EnginePart,
    FeaturesPart,
    Part,
    PrivacyPart,
    PublishedPart,
    RonaPart,
    SketchPart,
    StudentPart,
    TeachersPart,
    TrainingPart,
)

LARGEST = 1 << 20
MOST_FAULTS = 20
LONGEST_KEY = 60


class Recipe(Part):
    """Everything a run depends on but the noise.

    >>> text = '[data]\\nsource = "digits"\\npublic_size = 1440\\n[privacy]\\nepsilon = 2'
    >>> parse(text).training.steps
    60
    """

    method: Literal["direct", "rona"] = Field("direct", description="how the model learns")
    mode: Literal["certified", "as-published"] = Field(
        "certified", description="sound, or a paper's algorithm as it was printed"
    )
    ledger: str = Field(
        "ledger.sqlite", description="the ledger of these records, beside the recipe"
    )
    purpose: Literal["release", "benchmark", "audit"] = Field(
        "release", description="what the ledger is for"
    )
    data: DataPart
    features: FeaturesPart = FeaturesPart()
    training: TrainingPart = TrainingPart()
    sketch: SketchPart | None = Field(None, description="class statistics, released once")
    student: StudentPart | None = Field(
        None, description="hand over a network that saw samples of the sketch only"
    )
    rona: RonaPart | None = Field(None, description="the student of method rona")
    teachers: TeachersPart | None = Field(None, description="for rona's source ensemble")
    published: PublishedPart | None = Field(None, description="for rona's source plain")
    engine: EnginePart = EnginePart()
    privacy: PrivacyPart

    def split(self, folder: Path) -> Split:
        """The records the recipe names, in their parts; file names are beside the recipe."""
        return load_split(
            self.data.source,
            folder,
            classes=self.data.classes,
            labels=self.data.labels,
            columns={"id": self.data.id_column, "person": self.data.person_column},
            split=self.data.split,
            key=self.data.key,
            public=self.data.public,
            test=self.data.test,
            sensitive_classes=self.data.sensitive_classes,
        )


def read(path: Path) -> tuple[Recipe, str]:
    """The recipe in a file, and its text.

    Raises:
        BadInput: the file cannot be read, or something in it does not fit; all faults are named.
    """
    try:
        text = file_content(path, LARGEST).decode("utf-8")
    except (OSError, ValueError):
        raise BadInput(
            f"the recipe cannot be read, or is no plain text of at most {LARGEST} bytes",
            where=str(path),
            why="without a recipe there is nothing to do",
            remedy="check the path; `examples/` has recipes to start from",
        ) from None
    return parse(text, str(path)), text


def parse(text: str, where: str = "recipe") -> Recipe:
    """A recipe from its text."""
    _refuse_long_keys(text, where)
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
    try:
        recipe = Recipe.model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False)
        faults = [_fault(fault) for fault in found[:MOST_FAULTS]]
        if len(found) > len(faults):
            faults.append(f"and {len(found) - len(faults)} more")
        raise BadInput(
            "; ".join(faults),
            where=where,
            why="a run must be fixed by its recipe before anything is drawn",
            remedy="mend these lines; `stillroom recipe explain` shows every key and default",
        ) from None
    refuse_misfits(recipe, where)
    return recipe


def _refuse_long_keys(text: str, where: str) -> None:
    """A key of many parts takes a reader of TOML the square of their number."""
    quoted = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'")
    several_lines = '"""' in text or "'''" in text
    dotted = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){9}")
    if several_lines or dotted.search(quoted.sub("q", text)):
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
            _refuse_unprintable(part, where, f"{place}.{_shown(name)}" if place else _shown(name))


def _shown(key: object) -> str:
    """A key for a message: whatever stands in a file must not rule a terminal."""
    text = str(key)[:LONGEST_KEY]
    return text if text.isprintable() else ascii(text)


def _fault(fault: Any) -> str:
    place = ".".join(map(_shown, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        known = _keys(fault["loc"][:-1])
        near = difflib.get_close_matches(_shown(fault["loc"][-1]), known, n=1, cutoff=0.0)
        return f"{place}: unknown key; the nearest known one is {near[0]!r}"
    if fault["type"] == "missing":
        return f"{place}: is missing"
    return f"{place}: {fault['msg'].lower()}"


def _keys(place: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Recipe
    for step in place:
        annotation = model.model_fields[str(step)].annotation
        kinds = [annotation, *get_args(annotation)]  # an optional part is a union with None
        model = next(k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel))
    return list(model.model_fields)


def explain(recipe: Recipe) -> list[tuple[str, str, str, str]]:
    """Every key: its name, its value, whether that is the default, and what it means."""
    lines = []
    for name, field in Recipe.model_fields.items():
        value = getattr(recipe, name)
        if isinstance(value, BaseModel):
            for inner, inner_field in type(value).model_fields.items():
                given = "given" if inner in value.model_fields_set else "default"
                about = inner_field.description or ""
                lines.append((f"{name}.{inner}", str(getattr(value, inner)), given, about))
        else:
            given = "given" if name in recipe.model_fields_set else "default"
            lines.append((name, str(value), given, field.description or ""))
    return lines
