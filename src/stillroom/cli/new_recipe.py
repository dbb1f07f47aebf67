"""`stillroom recipe new`: a commented recipe for one's own data, by questions or by flags."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stillroom.cli.asking import Asker
from stillroom.cli.data import ClassesText, IdColumn, ModeText, SizeText, classes_of, form_of

if TYPE_CHECKING:
    from fractions import Fraction

    from stillroom.data.formats import Format
    from stillroom.data.picture_form import PictureForm

MethodName = Literal["direct", "rona", "dpdfd", "pg", "votes"]
OPEN = ("rona", "votes")
"""Methods that learn on public records."""
PERSON_FLAGS = "--person-column, --person-pattern or --persons"


def new(
    data: Annotated[
        str | None,
        typer.Option("--data", help="A file, a folder of pictures, or a data set by name."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The recipe's file; never overwritten.")
    ] = None,
    classes: ClassesText = None,
    unit: Annotated[
        Literal["record", "person"] | None, typer.Option(help="Who is protected.")
    ] = None,
    person_column: Annotated[
        str | None, typer.Option(help="For a CSV file: the column of persons.")
    ] = None,
    person_pattern: Annotated[
        str | None, typer.Option(help="For pictures: finds the person in a file's name.")
    ] = None,
    persons: Annotated[Path | None, typer.Option(help="A CSV file of persons.")] = None,
    max_records: Annotated[
        int | None, typer.Option(help="For persons: how many records of each take part.")
    ] = None,
    id_column: IdColumn = None,
    schema: Annotated[
        Path | None, typer.Option(help="For a CSV file: its schema; see `data schema`.")
    ] = None,
    size: SizeText = None,
    mode: ModeText = None,
    full_scale: Annotated[float, typer.Option(help="The largest value of a pixel.")] = 255.0,
    declared_size: Annotated[
        int | None, typer.Option(help="Sensitive records or persons, about; a round guess.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="For the whole release.")] = None,
    method: Annotated[MethodName | None, typer.Option(help="How the model learns.")] = None,
    public: Annotated[
        str | None, typer.Option(help="The share of the records that is public, such as 2/5.")
    ] = None,
    test_is_public: Annotated[
        bool, typer.Option("--test-is-public", help="The test part may be measured exactly.")
    ] = False,
    entities: Annotated[int | None, typer.Option(help="For method votes: how many.")] = None,
) -> None:
    """Write a commented recipe for your data; at a terminal it asks for what is not given.

    It looks at the format of the data only: names of columns and classes, sizes of some pictures.

    Example: stillroom recipe new

    Example: stillroom recipe new --data scans --unit record --declared-size 5000 --epsilon 3 -o
    scans.toml
    """
    from stillroom.cli.printing import write_new
    from stillroom.data.formats import proposed_form
    from stillroom.pipeline.drafts import Wishes, draft, written_beside

    asker = Asker()
    if output is not None:
        _refuse_existing(output)
    found_name = asker.text("--data", data, "Data: a file, a folder, or a name")
    if found_name is None:
        for flag, given in (
            ("-o", output),
            ("--unit", unit),
            ("--declared-size", declared_size),
            ("--epsilon", epsilon),
        ):
            asker.text(flag, None if given is None else str(given), "")
        raise asker.refusal()
    found = _looked_at(found_name)
    if schema is None:
        _refuse_unfit_table(found, found_name, {id_column, person_column})
    named = found.classes if found.kind in ("name", "pictures") else None
    if schema is not None:
        found, named = _by_schema(found, schema)
    given_classes = classes_of(classes)
    if named is None and given_classes is None:
        given_classes = classes_of(
            asker.text("--classes", None, "Classes: how many, or their names with commas")
        )
    form = _form(asker, found, form_of(size, mode), proposed_form(found))
    chosen_method = asker.choice(
        "--method", method, "Method", ("direct", "rona", "dpdfd", "pg", "votes"), usual="direct"
    )
    chosen_unit = asker.choice(
        "--unit", unit, "Who is protected: a record, or a person with all records",
        ("record", "person"),
    )  # fmt: skip
    whose = {"person_column": person_column, "person_pattern": person_pattern}
    whose["persons"] = None if persons is None else str(persons)
    key = _persons(asker, found, whose, needed=chosen_unit == "person")
    cap = 1
    if chosen_unit == "person":
        cap = asker.number("--max-records", max_records, "Records of a person, at most", 1) or 1
    share = _share(asker, public, chosen_method or "direct")
    guess = _guess(found, share) if chosen_unit == "record" else None
    kind = f"Sensitive {chosen_unit or 'record'}s, about (a round guess, never the count)"
    declared = asker.number("--declared-size", declared_size, kind, guess, required=True)
    spent = asker.real("--epsilon", epsilon, "Epsilon of this release, such as 3")
    if chosen_method == "votes":
        entities = asker.number("--entities", entities, "Entities", None, required=True)
    if asker.at_terminal and not test_is_public:
        told = asker.choice("", None, "Is the test part public", ("no", "yes"), usual="no")
        test_is_public = told == "yes"
    _refuse_charged_votes(chosen_method, test_is_public)
    place = asker.text("-o", None if output is None else str(output), "Recipe's file")
    if asker.missing:
        raise asker.refusal()
    recipe = Path(str(place))
    _refuse_existing(recipe)
    named_beside = found_name
    if found.kind != "name":
        named_beside = written_beside(found_name, recipe)
    if key is not None and key[0] == "persons":
        key = ("persons", written_beside(key[1], recipe))
    stem = Path(found_name).stem or "data"
    wishes = Wishes(
        source=named_beside,
        ledger=f"{stem}-ledgers" if chosen_method == "votes" else f"{stem}-ledger.sqlite",
        shape=_shape(found),
        classes=named if found.kind == "pictures" and given_classes is None else given_classes,
        count=_count(given_classes, named),
        unit=str(chosen_unit),
        declared=int(declared or 1),
        epsilon=float(spent or 1),
        method=str(chosen_method),
        persons=key,
        cap=cap,
        id_column=id_column,
        public=share,
        test_is_public=test_is_public,
        as_given=found.parts,
        form=form,
        full_scale=full_scale,
        entities=entities,
        schema=None if schema is None else written_beside(str(schema), recipe),
    )
    write_new(recipe, "recipe", draft(wishes, recipe))
    typer.echo(f"looked at: {found.looked_at}; nothing of a single record stands in the recipe")
    if form is not None:
        typer.echo(f"pictures are brought to {form.words} while they are read")
    typer.echo(f"written: {recipe}")
    typer.echo(f"Check it: stillroom recipe check {recipe}")


def _refuse_existing(recipe: Path) -> None:
    from stillroom.errors import BadInput

    if recipe.exists():
        raise BadInput(
            "there is already a file at the recipe's place",
            where=str(recipe),
            why="an existing file is never overwritten",
            remedy="give another name with -o, or move that file away",
        )


def _refuse_charged_votes(method: str | None, test_is_public: bool) -> None:
    from stillroom.errors import BadInput

    if method == "votes" and not test_is_public:
        raise BadInput(
            "method votes needs a public test part",
            where="--test-is-public",
            why="entities pay for votes, and nobody for a charged evaluation",
            remedy="give --test-is-public if it is so, or choose --method rona",
        )


def _looked_at(source: str) -> Format:
    from stillroom.data.formats import format_of

    return format_of(source, Path())


def _shape(found: Format) -> tuple[int, ...] | None:
    return (found.side, found.side) if found.mixed and found.side else found.shape


def _count(given: int | tuple[str, ...] | None, named: tuple[str, ...] | None) -> int:
    if isinstance(given, int):
        return given
    return len(given or named or ("", ""))


def _by_schema(found: Format, schema: Path) -> tuple[Format, tuple[str, ...]]:
    """The format of a table as its schema says it, and the classes."""
    from dataclasses import replace

    from stillroom.data.schema import Schema

    read = Schema.read(schema)
    shape = (len(read.columns),)
    return replace(found, shape=shape, persons=read.person is not None), read.classes


def _refuse_unfit_table(found: Format, name: str, roles: set[str | None]) -> None:
    """Without a schema a table is numbers, a column `label`, and columns of ids and persons."""
    from stillroom.errors import BadInput

    if found.kind != "table":
        return
    if found.columns.count("label") != 1:
        raise BadInput(
            "the table has not exactly one column called 'label'",
            where=f"{name}, line 1",
            why="that is where a recipe looks for the class of a record",
            remedy=f"call it label in the first line; or draft a schema, `stillroom data schema "
            f"{name} --label-column NAME > schema.toml`, fill it in, and give --schema schema.toml",
        )
    texts = [column for column in found.texts if column not in {"label", *roles}]
    if texts:
        shown = ", ".join(texts[:6]) + (" and others" if len(texts) > 6 else "")
        raise BadInput(
            f"columns hold text: {shown}",
            where=name,
            why="a linear layer looks at numbers; which categories there are must be public",
            remedy="name them, if they are ids or persons: --id-column, --person-column; or draft "
            f"a schema, `stillroom data schema {name} > schema.toml`, fill it in, and give "
            "--schema schema.toml",
        )


def _form(
    asker: Asker, found: Format, given: PictureForm | None, proposed: PictureForm | None
) -> PictureForm | None:
    """What pictures are brought to: as told, or as proposed where they are not alike."""
    if given is not None or proposed is None:
        return given
    assert proposed.size is not None
    sizes = asker.text(
        "--size", None, "Pictures have several sizes or modes. Side", str(proposed.size[0])
    )
    mode = asker.choice("--mode", None, "Mode", ("grey", "colour"), usual=str(proposed.mode))
    return form_of(sizes, mode)


def _persons(
    asker: Asker, found: Format, whose: dict[str, str | None], *, needed: bool
) -> tuple[str, str] | None:
    """The key that says whose a record is; none where the data say it."""
    given = [(name, value) for name, value in whose.items() if value is not None]
    if given or not needed or found.persons:
        return given[0] if given else None
    usual = {"table": "person_column", "pictures": "person_pattern"}.get(found.kind, "persons")
    questions = {
        "person_column": "Column of persons",
        "person_pattern": "Pattern of the person in a file's name, such as ^(person[0-9]+)_",
        "persons": "CSV file with a column person, one line per record",
    }
    told = asker.text(PERSON_FLAGS, None, questions[usual])
    return None if told is None else (usual, told)


def _share(asker: Asker, given: str | None, method: str) -> Fraction:
    from fractions import Fraction

    from stillroom.errors import BadInput

    needed = method in OPEN
    if not needed and given is None:
        return Fraction(0)
    if not needed:
        raise BadInput(
            f"method {method} has no public part",
            where="--public",
            why="it learns from the sensitive records alone, so public ones would lie idle",
            remedy="leave --public out, or choose --method rona",
        )
    text = asker.text("--public", given, "Share of the records that is public", "2/5")
    try:
        share = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise BadInput(
            "the public share is no number between 0 and 1",
            where="--public",
            why=f"method {method} learns on public records",
            remedy="give a share such as 2/5",
        )
    return share


def _guess(found: Format, public: Fraction) -> int | None:
    from stillroom.data.formats import rounded

    if not found.about:
        return None
    trained = 1.0 if found.parts else 0.8
    return max(1, rounded(int(found.about * trained * float(1 - public))))
