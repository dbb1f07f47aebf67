"""The sections that every recipe has: data, features, engine, privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from stillroom.data.loading import MODEL
from stillroom.data.persons import groups_of
from stillroom.data.picture_form import LARGEST_SIDE as LARGEST_PICTURE
from stillroom.data.picture_form import Mode, PictureForm
from stillroom.features import FEATURES
from stillroom.recipe.section import LARGEST_RATE, MOST_NUMBERS, Exact, Section
from stillroom.vocabulary import SMALLEST_DELTA, Pair, Unit

MOST_UNITS = 1_000_000_000
MOST_PER_PERSON = 1_000_000
LARGEST_EPSILON = 100.0
"""Beyond some ten an epsilon promises next to nothing."""
OF_A_MODEL = {"unit": "entity", "declared_size": 1, "test_is_public": True}
"""What follows where there are no records: one model is protected, and nobody is tested on."""
LARGEST_SIDE, LARGEST_SHAPE = 1 << 16, 1 << 24
Side = Annotated[int, Field(ge=1, le=LARGEST_PICTURE)]


class DataSection(Section):
    """Which records, and which of them are sensitive and tested on."""

    source: str = Field(
        description="a known name, an imported name, a file or a folder; model, where there are "
        "no records but a model's file in [plain]"
    )
    classes: int | list[str] | None = Field(
        None, description="for a file, folder or model: how many classes, or their names"
    )
    shape: (
        Annotated[
            list[Annotated[int, Field(ge=1, le=LARGEST_SIDE)]], Field(min_length=1, max_length=3)
        ]
        | None
    ) = Field(
        None,
        description="for a model: of one record: height, width and channels, or features",
    )
    test_source: str | None = Field(
        None, description="for a model: a public data set to test the student on"
    )
    labels: str | None = Field(None, description="for an IDX file: the file of its labels")
    size: Side | Annotated[list[Side], Field(min_length=2, max_length=2)] | None = Field(
        None,
        description="for a folder of pictures: the side, or height and width, each one is resized "
        "to while it is read",
    )
    mode: Mode | None = Field(
        None, description="for a folder of pictures: what each one is converted to while it is read"
    )
    id_column: str | None = Field(None, description="for a CSV file: the column of record ids")
    split: Literal["fraction", "as-given"] = Field(
        "fraction", description="by keyed hash of the ids, or the official train and test parts"
    )
    key: str = Field("stillroom", min_length=1, description="the public key of the split")
    test: Exact = Field(
        Fraction(1, 5), description="the share that is tested on, where the split is by fraction"
    )
    test_is_public: bool = Field(
        False, description="whether the test part may be measured exactly, without protection"
    )
    declared_size: int = Field(
        ge=1,
        le=MOST_UNITS,
        description="the declared number of sensitive units; a round guess, never a count",
    )
    person_column: str | None = Field(None, description="for a CSV file: whose record it is")
    person_pattern: str | None = Field(
        None,
        description="for a folder of pictures: a regular expression whose one group is the person "
        "in a file's name",
    )
    persons: str | None = Field(
        None,
        description="a CSV file with a column person: and a column file, for a folder of pictures; "
        "else one line per record, in their order",
    )
    unit: Literal["record", "person", "entity", "label"] = Field(
        "record",
        description="who is protected; entity, the whole, where there is only a model; label, the "
        "class of a record, where everything else of it is declared public",
    )
    max_records_per_person: int = Field(
        1,
        ge=1,
        le=MOST_PER_PERSON,
        description="for unit person: the public cap; surplus records are left out by hash",
    )

    @model_validator(mode="wrap")
    @classmethod
    def _with_what_follows(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Of a model alone some keys can have one value only, and need not be given."""
        if not isinstance(given, Mapping) or given.get("source") != MODEL:
            return handler(given)
        section = handler({**OF_A_MODEL, **given})
        section.model_fields_set.difference_update(OF_A_MODEL.keys() - given.keys())
        return section

    def misfits(self) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        alone, given = self.source == MODEL, self.model_fields_set
        told = {name: getattr(self, name) for name in OF_A_MODEL}
        of_persons = ("person_column", "person_pattern", "persons")
        of_records = ("labels", "size", "mode", "id_column", "split", "key", "test", *of_persons)
        left_over = [name for name in of_records if name in given]
        return {
            "data.unit: where there is only a model, the unit is the entity, the model as a whole; "
            "records are certified by source trained or ensemble, which need them": alone
            and self.unit != "entity",
            "data.declared_size, data.test_is_public: there are no records": alone
            and self.unit == "entity"
            and told != OF_A_MODEL,
            f"data.{', data.'.join(left_over)}: there are no records": alone and bool(left_over),
            "data.public: there are no records": alone and self.public_share > 0,
            "data.shape, data.classes: say what the model is given and what it tells apart": alone
            and (self.shape is None or self.classes is None),
            f"data.shape: more than {LARGEST_SHAPE:,} numbers": math.prod(self.shape or ())
            > LARGEST_SHAPE,
            'data.unit: entity is for source = "model"': not alone and self.unit == "entity",
            "data.person_pattern: not a regular expression with exactly one group, in brackets": (
                self.person_pattern is not None and groups_of(self.person_pattern) != 1
            ),
            f"data.{', data.'.join(of_persons)}: say in one way only whose a record is": (
                sum(getattr(self, name) is not None for name in of_persons) > 1
            ),
            'data.shape, data.test_source: only for source = "model"': not alone
            and (self.shape is not None or self.test_source is not None),
        }

    @property
    def form(self) -> PictureForm | None:
        """What pictures are brought to while they are read, in training and in `predict`."""
        return PictureForm.of(self.size, self.mode)

    @property
    def public_share(self) -> Fraction:
        """The share of the records outside the test part that is public."""
        return Fraction(0)

    @property
    def withheld(self) -> tuple[str, ...]:
        """The classes of which no record is public."""
        return ()

    @property
    def labelled_share(self) -> Fraction:
        """The share of the public part whose labels are used."""
        return Fraction(0)

    @property
    def pair(self) -> Pair:
        """Whom the recipe's epsilon protects: a record or person more or less, a model, a label."""
        return Pair.of(Unit(self.unit))


class DataWithPublicPart(DataSection):
    """Which records, and which of them are public, sensitive and tested on."""

    public: Exact = Field(
        Fraction(0), ge=0, lt=1, description="the share of the others that is public"
    )
    sensitive_classes: list[str] = Field([], description="classes of which no record is public")
    labelled: Exact = Field(
        Fraction(1), gt=0, le=1, description="the share of the public part with labels"
    )

    @property
    def public_share(self) -> Fraction:
        return self.public

    @property
    def withheld(self) -> tuple[str, ...]:
        return tuple(self.sensitive_classes)

    @property
    def labelled_share(self) -> Fraction:
        return self.labelled


class FeaturesSection(Section):
    """What a linear layer looks at."""

    name: str = Field(
        "edges",
        description=f"one of: {', '.join(FEATURES)}, scattering; auxiliary, where there are public "
        "records; or a public backbone as package.module:callable",
    )
    full_scale: float = Field(
        255.0, gt=0, le=LARGEST_RATE, description="the largest value a pixel can have"
    )
    size: int | None = Field(
        None, ge=8, le=4096, description="for a backbone: the side its pictures are brought to"
    )
    components: int | None = Field(
        None,
        ge=1,
        le=MOST_NUMBERS,
        description="keep this many half-whitened directions; needs fitted_on",
    )
    fitted_on: str | None = Field(
        None, description="where directions come from: a public data set's name, sketch or public"
    )

    def misfits(self) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        by_network = self.name in ("scattering", "auxiliary") or ":" in self.name
        return {
            f"features.name: there are no features {self.name!r}; use one of: "
            f"{', '.join(FEATURES)}, scattering, auxiliary, or package.module:callable": not (
                self.name in FEATURES or by_network
            ),
            "features.size belongs to a backbone, and a backbone to a features.size": (
                self.size is None
            )
            != (":" not in self.name),
            "features.components and features.fitted_on belong together": (self.components is None)
            != (self.fitted_on is None),
            f"features.components: `{self.name}` is used as it is": self.components is not None
            and self.name in FEATURES,
        }


class EngineSection(Section):
    """Where independent work runs."""

    kind: Literal["serial", "loky", "ray", "dask"] = Field("loky", description="cores or a cluster")
    workers: int | None = Field(
        None, ge=1, le=10_000, description="at a time; one per core by default"
    )
    address: str | None = Field(None, description="of the cluster, for ray and dask")


class PrivacySection(Section):
    """How much may be told, and what was looked at before."""

    epsilon: float = Field(gt=0, le=LARGEST_EPSILON, description="for this whole release")
    delta: float = Field(1e-5, ge=SMALLEST_DELTA, lt=1, description="chance that it fails")
    evaluation_sigma: Exact = Field(
        Fraction(6), gt=0, description="noise on each count of the charged evaluation"
    )
    evaluation_records_per_person: int = Field(
        1,
        ge=1,
        le=MOST_PER_PERSON,
        description="for unit person: records of a person that are tested, by hash",
    )
    on_exhausted: Literal["refuse", "stop"] = Field(
        "refuse", description="when the budget is short: draw nothing, or take the steps that fit"
    )
    tuning: Literal["none", "public", "charged", "undeclared"] = Field(
        "undeclared", description="how the numbers of this recipe were chosen"
    )
