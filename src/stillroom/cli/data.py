"""`stillroom data`: which data sets are at hand, what is in one, bringing one in, a schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stillroom.cli.printing import print_json, table

if TYPE_CHECKING:
    from stillroom.data.picture_form import PictureForm

app = typer.Typer(
    help="Data sets: list them, show one, import one, draft the schema of a table.",
    no_args_is_help=True,
)

EYES_ONLY = "exact figures, not private: for your eyes"

NameOrFile = Annotated[
    str,
    typer.Argument(
        help="A known name; a file: npz, CSV, IDX, CIFAR-10 batch or SVHN mat; or a folder: "
        "CIFAR-10 batches, both SVHN files, or pictures with one sub-folder per class."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ClassesText = Annotated[
    str | None,
    typer.Option(
        "--classes", help="For a file or folder: how many classes (10), or their names (cat,dog)."
    ),
]
Labels = Annotated[
    Path | None, typer.Option("--labels", help="For an IDX file: the file of its labels.")
]
LabelColumn = Annotated[
    str, typer.Option("--label-column", help="For a CSV file: the column of labels.")
]
IdColumn = Annotated[
    str | None, typer.Option("--id-column", help="For a CSV file: the column of record ids.")
]
PersonColumn = Annotated[
    str | None, typer.Option("--person-column", help="For a CSV file: whose record it is.")
]

PersonPattern = Annotated[
    str | None,
    typer.Option(
        "--person-pattern",
        help="For a folder of pictures: a regular expression whose one group is the person in a "
        "file's name, such as '^(person[0-9]+)_'.",
    ),
]
PersonList = Annotated[
    Path | None,
    typer.Option(
        "--persons",
        help="A CSV file with a column person, and file for a folder of pictures; else one line "
        "per record, in their order.",
    ),
]


SizeText = Annotated[
    str | None,
    typer.Option(
        "--size",
        help="For a folder of pictures: resize each to this side, or height x width (48x64).",
    ),
]
ModeText = Annotated[
    str | None,
    typer.Option("--mode", help="For a folder of pictures: convert each to grey or colour."),
]


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the data sets at hand and those that can be brought in.

    Example: stillroom data list
    """
    from stillroom.data.catalogue import KNOWN, present
    from stillroom.data.store import home, imported

    root = home()
    found = []
    for name in (*KNOWN, *imported(root)):
        ready = name not in KNOWN or KNOWN[name].fetch is None or bool(present(name, root))
        about = KNOWN[name].about if name in KNOWN else "imported"
        state = "ready" if ready else f"stillroom data import {name}"
        found.append({"name": name, "about": about, "ready": ready, "state": state})
    if as_json:
        print_json(found)
    else:
        rows = [(row["name"], row["about"], row["state"]) for row in found]
        table("", ("data set", "what it is", "state"), rows)


@app.command("show")
def show(
    name_or_file: NameOrFile,
    classes: ClassesText = None,
    labels: Labels = None,
    label_column: LabelColumn = "label",
    id_column: IdColumn = None,
    person_column: PersonColumn = None,
    person_pattern: PersonPattern = None,
    persons: PersonList = None,
    size: SizeText = None,
    mode: ModeText = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="For a CSV file: the file of its schema.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the shape, classes and size of a data set.

    Example: stillroom data show digits
    """
    import numpy as np

    from stillroom.data.catalogue import KNOWN
    from stillroom.data.loading import persons_of
    from stillroom.data.schema import Schema
    from stillroom.data.store import load_parts

    columns = {"label": label_column, "id": id_column, "person": person_column}
    parts = load_parts(
        name_or_file,
        classes_of(classes),
        labels=labels,
        columns=columns,
        schema=None if schema is None else Schema.read(schema),
        persons=persons_of(person_pattern, persons),
        form=form_of(size, mode),
    )
    first = next(iter(parts.values()))
    counts = {
        part: np.bincount(dataset.y, minlength=len(first.classes)).tolist()
        for part, dataset in parts.items()
    }
    facts: dict[str, Any] = {
        "name": name_or_file,
        "shape": list(first.shape),
        "type": str(first.x.dtype),
        "classes": list(first.classes),
        "records": {part: len(dataset) for part, dataset in parts.items()},
        "per_class": counts,
    }
    if first.persons is not None:
        facts["persons"] = {part: len(set(d.persons or ())) for part, d in parts.items()}
    if name_or_file not in KNOWN:
        facts["note"] = EYES_ONLY
    if as_json:
        print_json(facts)
        return
    typer.echo(f"{name_or_file}: records of shape {first.shape}, {first.x.dtype}")
    rows = list(zip(first.classes, *counts.values(), strict=True))
    rows += [(kind, *facts[kind].values()) for kind in ("records", "persons") if kind in facts]
    table("", ("class", *parts), rows)
    if "note" in facts:
        typer.echo(EYES_ONLY)


@app.command("import")
def import_(
    name_or_file: NameOrFile,
    name: Annotated[
        str | None, typer.Option("--name", help="For a file or folder: what to call it.")
    ] = None,
    classes: ClassesText = None,
    labels: Labels = None,
    label_column: LabelColumn = "label",
    id_column: IdColumn = None,
    person_column: PersonColumn = None,
    person_pattern: PersonPattern = None,
    persons: PersonList = None,
    size: SizeText = None,
    mode: ModeText = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an imported data set of that name.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring a known data set, or your own file or folder, into the data home.

    Example: stillroom data import mnist

    Example: stillroom data import scans/ --name scans --person-pattern '^(person[0-9]+)_'

    Example: stillroom data import scans/ --name scans --size 64 --mode grey

    Example: stillroom data import visits.csv --name visits --classes well,ill --id-column visit
    """
    from stillroom.cli.progress import waiting
    from stillroom.data.catalogue import KNOWN, obtain
    from stillroom.data.loading import persons_of
    from stillroom.data.store import home, load_parts, save
    from stillroom.errors import BadInput

    root = home()
    if name_or_file in KNOWN:
        known = KNOWN[name_or_file]
        brought_by = f" with {known.client}" if known.client else ""
        with waiting(f"Bringing {known.name}{brought_by}; this can take minutes"):
            parts: Mapping[str, object] = obtain(known.name, root) or {"all": None}
        _told(known.name, parts, known.classes, root, as_json)
        return
    if name is None:
        raise BadInput(
            "the imported data set needs a name",
            where="--name",
            why="it is found by its name from then on",
            remedy=f"give one: stillroom data import {name_or_file} --name NAME --classes 10; "
            f"or use a known name: {', '.join(KNOWN)}",
        )
    columns = {"label": label_column, "id": id_column, "person": person_column}
    owners, form = persons_of(person_pattern, persons), form_of(size, mode)
    with waiting(f"Reading {name_or_file}"):
        read = load_parts(
            name_or_file,
            classes_of(classes),
            labels=labels,
            columns=columns,
            persons=owners,
            form=form,
        )
        save(read, name, root, replace=replace, form=form)
    _told(name, read, next(iter(read.values())).classes, root, as_json)
    if form is not None and not as_json:
        typer.echo(f"In a recipe, under [data]: {form.words}")


@app.command("schema")
def schema(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header line.", metavar="FILE")],
    label_column: LabelColumn = "label",
    id_column: IdColumn = None,
    person_column: PersonColumn = None,
) -> None:
    """Draft the schema of a table, to be filled in: ranges and lists are never measured.

    Looked at are the names of the columns, and whether cells of the first 1,000 rows are numbers.

    Example: stillroom data schema visits.csv --label-column state > visits-schema.toml
    """
    from stillroom.data.schema_draft import Draft

    typer.echo(Draft.of(file, label_column, id_column, person_column).toml(), nl=False)


def classes_of(text: str | None) -> int | tuple[str, ...] | None:
    """How many classes, or their names."""
    if text is None:
        return None
    if text.strip().isdecimal():
        # Nine digits are far too many classes already, and any more may be too long to be read.
        return int(text.strip()[:9])
    return tuple(name.strip() for name in text.split(","))


def form_of(size: str | None, mode: str | None) -> PictureForm | None:
    """What pictures are brought to.

    Raises:
        BadInput: there is no such size or mode.
    """
    from stillroom.data.picture_form import PictureForm
    from stillroom.errors import BadInput

    sides = None if size is None else size.lower().split("x")
    if sides is not None and not all(s.isascii() and s.isdigit() and len(s) < 6 for s in sides):
        raise BadInput(
            "the size is no number, and no two numbers",
            where="--size",
            why="every picture is brought to that size",
            remedy="give one side, such as 64, or height x width, such as 48x64",
        )
    numbers = None if sides is None else [int(side) for side in sides]
    return PictureForm.of(numbers * 2 if numbers and len(numbers) == 1 else numbers, mode)


def _told(
    name: str, parts: Mapping[str, object], classes: tuple[str, ...], root: Path, as_json: bool
) -> None:
    if as_json:
        facts = {"name": name, "parts": list(parts), "classes": list(classes), "home": str(root)}
        print_json(facts)
    else:
        typer.echo(f"{name} is ready: {', '.join(parts)}; {len(classes)} classes.")
        typer.echo(f"Look at it: stillroom data show {name}")
