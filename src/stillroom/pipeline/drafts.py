"""A commented recipe for somebody's own case, with usual public numbers."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from stillroom.data.picture_form import PictureForm
from stillroom.errors import BadInput
from stillroom.methods.registry import parse
from stillroom.pipeline.draft_sections import SECTIONS, Scale, aligned
from stillroom.pipeline.pricing import price
from stillroom.recipe.schema_file import with_schema

LEAST_SIGMA, USUAL_SIGMA, MOST_SIGMA = 2.25, 6.0, 200.0
PAGES = {
    "direct": "private-room.md",
    **{name: f"{name}.md" for name in ("rona", "dpdfd", "pg", "votes")},
}
LEAST_DELTA = 5
"""Delta is 1e-5, or below one over the declared size."""


@dataclass(frozen=True)
class Wishes:
    """What a draft is made of: answers of the operator, and the format of the data.

    Args:
        source: what the recipe calls its data.
        ledger: what it calls its ledger.
        shape: of one record, if known; it decides about features.
        classes: names, or how many; None where the data tell them.
        count: how many classes there are.
        unit: record or person.
        persons: the key that says whose a record is, and its value; none where the data say it.
        cap: records of a person that take part.
        id_column: of record ids.
        declared: how many sensitive units there are, about.
        epsilon: of the release.
        method: how the model learns.
        public: the share of the records that is public.
        test_is_public: whether the test part may be measured exactly.
        as_given: whether there are official train and test parts.
        form: what pictures are brought to.
        full_scale: the largest value of a pixel.
        entities: how many there are, for method votes.
        schema: of a table, a file; it names classes, ids and persons.
    """

    source: str
    ledger: str
    shape: tuple[int, ...] | None
    classes: int | tuple[str, ...] | None
    count: int
    unit: str
    declared: int
    epsilon: float
    method: str = "direct"
    persons: tuple[str, str] | None = None
    cap: int = 1
    id_column: str | None = None
    public: Fraction = field(default=Fraction(0))
    test_is_public: bool = False
    as_given: bool = False
    form: PictureForm | None = None
    full_scale: float = 255.0
    entities: int | None = None
    schema: str | None = None

    @property
    def scale(self) -> Scale:
        """What the numbers of a method depend on."""
        free = float(self.public / (1 - self.public)) * self.declared
        shape = self.shape if self.form is None or self.form.shape is None else self.form.shape
        entities = self.entities or 0
        table = self.schema is not None
        return Scale(shape, self.declared, int(free), self.full_scale, entities, self.unit, table)


def draft(wishes: Wishes, file: Path) -> str:
    """The text of a recipe that can be read and priced.

    Args:
        wishes: what it is for.
        file: where it will be.

    Raises:
        BadInput: no such recipe can be made: it says which wish does not go.
    """
    sigma = _sigma(wishes)
    while True:
        text = _text(wishes, file.name, sigma)
        try:
            price(parse(with_schema(text, file), "the draft"))
        except BadInput as misfit:
            if "evaluation_sigma" not in misfit.where or sigma >= MOST_SIGMA:
                raise
            sigma *= 1.5
        else:
            return text


def _sigma(wishes: Wishes) -> float:
    """Noise on a test's counts: less where few are tested, so that an accuracy can be told."""
    tested = wishes.declared / 4
    return min(USUAL_SIGMA, max(LEAST_SIGMA, round(tested / (10 * wishes.count), 2)))


def _text(wishes: Wishes, file: str, sigma: float) -> str:
    blocks = [_head(wishes, file), _data(wishes)]
    blocks += [section.text for section in SECTIONS[wishes.method](wishes.scale)]
    return "\n\n".join([*blocks, _privacy(wishes, sigma)]) + "\n"


def _head(wishes: Wishes, file: str) -> str:
    lines = [
        "# A draft by `stillroom recipe new`. Read it through, and change what is not so.",
        "#",
        "# What a release would meet; pays nothing:  stillroom recipe check " + file,
        f"# Makes the ledger, and asks for a budget:  stillroom release {file} -o model",
        "# Every key, and its default:               stillroom recipe explain " + file,
        "",
    ]
    about = "a folder: one ledger per entity" if wishes.method == "votes" else "of these records"
    keys = [
        ("method", _quoted(wishes.method), f"docs/{PAGES[wishes.method]} says what it does"),
        ("ledger", _quoted(wishes.ledger), about),
    ]
    return "\n".join([*lines, *aligned(keys)])


def _data(wishes: Wishes) -> str:
    many = "persons" if wishes.unit == "person" else "records"
    keys = [("source", _quoted(wishes.source), "beside this file, or a name")]
    if wishes.form is not None:
        keys += [_key(pair, "each picture is brought to it") for pair in _pairs(wishes.form)]
    if wishes.schema is not None:
        keys.append(("schema", _quoted(wishes.schema), "columns, classes, ids and persons"))
    if isinstance(wishes.classes, int):
        keys.append(("classes", str(wishes.classes), "how many; labels are 0, 1, 2 and so on"))
    elif wishes.classes is not None:
        named = ", ".join(map(_quoted, wishes.classes))
        keys.append(("classes", f"[{named}]", "a label outside is refused"))
    if wishes.id_column is not None:
        keys.append(("id_column", _quoted(wishes.id_column), "of record ids"))
    if wishes.persons is not None:
        name, value = wishes.persons
        keys.append((name, _quoted(value), "whose a record is"))
    keys.append(("unit", _quoted(wishes.unit), f"one {wishes.unit} more or less is hidden"))
    if wishes.unit == "person":
        cost = "the sketch pays for it" if _has_sketch(wishes) else "docs/persons.md: what it costs"
        keys.append(("max_records_per_person", str(wishes.cap), cost))
    size = f"sensitive {many}, about: declared, never counted"
    keys.append(("declared_size", str(wishes.declared), size))
    if wishes.public:
        keys.append(
            ("public", _quoted(str(wishes.public)), "of what is not tested on; free to use")
        )
    if wishes.as_given:
        keys.append(("split", '"as-given"', "the official train and test parts"))
    else:
        keys.append(("test", '"1/5"', "by a keyed hash of the ids"))
    public = str(wishes.test_is_public).lower()
    told = "measured exactly, unprotected" if wishes.test_is_public else "counted with noise"
    keys.append(("test_is_public", public, told))
    return "\n".join(["[data]", *aligned(keys)])


def _privacy(wishes: Wishes, sigma: float) -> str:
    exponent = max(LEAST_DELTA, len(str(wishes.declared)))
    keys = [
        ("epsilon", f"{wishes.epsilon:g}", "for this whole release"),
        ("delta", f"1e-{exponent}", "the chance that the promise fails"),
    ]
    if not wishes.test_is_public:
        keys.append(("evaluation_sigma", f"{sigma:.4g}", "noise on each count of the test"))
    tuning = "stillroom's own numbers; undeclared once you try others on these data"
    keys.append(("tuning", '"public"', tuning))
    return "\n".join(["[privacy]", *aligned(keys)])


def _has_sketch(wishes: Wishes) -> bool:
    return any(section.name == "sketch" for section in SECTIONS[wishes.method](wishes.scale))


def _pairs(form: PictureForm) -> list[str]:
    """Its size and its mode, each as a key and a value."""
    sized = [replace(form, mode=None).words] if form.size else []
    return [*sized, f'mode = "{form.mode}"'] if form.mode else sized


def _key(pair: str, about: str) -> tuple[str, str, str]:
    name, _, value = pair.partition(" = ")
    return name, value, about


def _quoted(text: str) -> str:
    """A text of TOML."""
    return json.dumps(text, ensure_ascii=False)


def written_beside(source: str, recipe: Path) -> str:
    """What a recipe calls a file or folder: its path from the recipe's folder on."""
    return Path(os.path.relpath(source, recipe.absolute().parent)).as_posix()
