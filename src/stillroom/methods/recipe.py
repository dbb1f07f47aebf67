"""A recipe: one TOML file a run, checked when it is read, every default visible."""

from __future__ import annotations

import difflib
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from stillroom.data import Dataset, Split
from stillroom.data.catalogue import KNOWN
from stillroom.data.store import home, imported, load_parts
from stillroom.errors import BadInput
from stillroom.features import FEATURES
from stillroom.vocabulary import SMALLEST_DELTA


def _exact(value: Any) -> Fraction:
    """A share as it is written: 0.5 and "1/2" are both one half."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("should be a number or a fraction such as '1/2'")
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError("should be a number or a fraction such as '1/2'") from None


Exact = Annotated[Fraction, BeforeValidator(_exact)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class DataPart(_Part):
    """Which records, and which of them are public, sensitive and tested on."""

    source: str = Field(description="a known name, an imported name, a file or a folder")
    classes: int | list[str] | None = Field(
        None, description="for a file or folder: how many classes, or their names"
    )
    labels: str | None = Field(None, description="for an IDX file: the file of its labels")
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
    public: Exact = Field(
        Fraction(0), ge=0, lt=1, description="for rona: the share of the others that is public"
    )
    sensitive_classes: list[str] = Field(
        [], description="for rona: classes of which no record is public"
    )
    labelled: Exact = Field(
        Fraction(1), gt=0, le=1, description="for rona: the share of the public part with labels"
    )
    public_size: int = Field(
        ge=1, description="the declared number of sensitive units; a round guess, never a count"
    )
    person_column: str | None = Field(None, description="for a CSV file: whose record it is")
    unit: Literal["record", "person"] = Field("record", description="who is protected")
    max_records_per_person: int = Field(
        1, ge=1, description="for unit person: the public cap; surplus records are left out by hash"
    )


class FeaturesPart(_Part):
    """What a linear layer looks at."""

    name: str = Field(
        "edges",
        description=f"one of: {', '.join(FEATURES)}, scattering; auxiliary, for rona; or a public "
        "backbone as package.module:callable",
    )
    full_scale: float = Field(
        255.0, gt=0, allow_inf_nan=False, description="the largest value a pixel can have"
    )
    size: int | None = Field(
        None, ge=8, description="for a backbone: the side its pictures are brought to"
    )
    components: int | None = Field(
        None, ge=1, description="keep this many half-whitened directions; needs fitted_on"
    )
    fitted_on: str | None = Field(
        None, description="where directions come from: a public data set's name, sketch or public"
    )


class SketchPart(_Part):
    """Class statistics released once, and pictures drawn from them."""

    mu: Exact = Field(gt=0, description="how much it may tell; 1/10 alone is epsilon 0.34")
    coefficients: int = Field(196, ge=1, description="of the cosine transform that are kept")
    directions: int = Field(24, ge=1, description="along which classes may spread")
    centres: int = Field(4, ge=1, description="of each class")
    lloyd: int = Field(3, ge=1, description="steps of Lloyd's algorithm")
    radius: Exact = Field(Fraction(10), gt=0, description="the largest norm of a picture")
    residual: Exact = Field(Fraction(6), gt=0, description="the same around a centre")
    sharpen: float = Field(0.8, ge=0, le=1, description="share of the samples with more contrast")
    warp: float = Field(0.5, ge=0, le=1, description="share of the samples that are warped")
    samples: int = Field(10_000, ge=100, description="pictures drawn to fit features on")


class StudentPart(_Part):
    """A network that sees samples of the sketch only, labelled by the private model."""

    model: str = Field("student-50k", description="a name in the zoo, or package.module:callable")
    samples: int = Field(40_000, ge=100, description="pictures drawn from the sketch")
    epochs: int = Field(8, ge=1, description="passes over them")
    batch: int = Field(128, ge=2, description="pictures a step")
    learning_rate: float = Field(3e-3, gt=0, allow_inf_nan=False, description="the highest")
    start_seed: int = Field(0, description="of weights, order and samples; never of noise")


class TrainingPart(_Part):
    """Method direct: gradient descent on a linear layer, or on a whole network."""

    model: str = Field(
        "linear", description="linear: over the features; else a network, over the pictures"
    )
    weights: str | None = Field(
        None, description="for a network: public weights to start from, a file beside the recipe"
    )
    start_seed: int = Field(0, description="for a network: of its first weights and augmentation")
    steps: int = Field(60, ge=1, description="noisy gradient sums")
    rate: Exact = Field(Fraction(1, 2), description="the share of the records in a step")
    clip: Exact = Field(Fraction(1, 2), description="the largest norm of one record's gradient")
    normalise: bool = Field(False, description="scale every gradient to the clip")
    learning_rate: float = Field(8.0, gt=0, allow_inf_nan=False, description="length of a step")
    momentum: float = Field(0.9, ge=0, lt=1, description="how much of the last step goes on")
    average_from: int | None = Field(None, ge=0, description="average the weights after this step")
    ema: float | None = Field(
        None, ge=0, lt=1, description="for a network: how slowly averaged weights follow"
    )
    views: int = Field(1, ge=1, description="for a network: augmented views of each record")
    shift: int = Field(0, ge=0, description="for a network: the farthest shift of a view")
    mirror: bool = Field(False, description="for a network: whether views may be mirrored")
    ghost: bool = Field(False, description="for a network: ghost clipping; pays for wide layers")
    public_source: str | None = Field(
        None, description="for a network: labelled public records, a known or imported name"
    )
    public_epochs: int = Field(
        0, ge=0, description="for a network or rona: passes over public records before all steps"
    )
    public_share: float = Field(
        0.5, ge=0, lt=1, description="for a network or rona: the public gradient's part of a step"
    )


class RonaPart(_Part):
    """Method rona: a small student of a teacher that saw the sensitive records."""

    source: Literal["dp-trained", "ensemble", "plain"] = Field(
        "dp-trained", description="where the privacy comes from; plain is as-published only"
    )
    student: str = Field("student-10k", description="a name in the zoo, or package.module:callable")
    auxiliary: str = Field(
        "student-50k", description="the network of the auxiliary teacher, trained on public labels"
    )
    auxiliary_epochs: int = Field(6, ge=1, description="its steps, as passes over the public part")
    hint_layer: int | None = Field(
        None, ge=1, description="the teacher's layer that gives hints, counted from one"
    )
    guided_layer: int | None = Field(
        None, ge=1, description="the student's layer that follows them, counted from one"
    )
    hint_epochs: int = Field(0, ge=0, description="T_h, passes of hint learning")
    rounds: int = Field(2, ge=1, description="R, of self learning and then distillation")
    self_epochs: int = Field(2, ge=0, description="T_s, passes over the labelled public part")
    distillation_epochs: int = Field(4, ge=1, description="T_d, passes over what was asked")
    batch: int = Field(128, ge=2, description="S, records a step of hints and distillation")
    self_batch: int = Field(128, ge=2, description="S', records a step of self learning")
    queries: Exact = Field(
        Fraction(1, 2), gt=0, le=1, description="for plain: the share of the public part asked"
    )
    selection: Literal["k-centre", "random", "margin", "diverse"] = Field(
        "k-centre", description="how queries that cost something are chosen"
    )
    loss: Literal["logits", "softened"] = Field(
        "logits", description="what is learnt of scores: centred logits too, or probabilities only"
    )
    temperature: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="divides scores before the softmax; their spread, or 1, when left out",
    )
    learning_rate: float = Field(4e-3, gt=0, allow_inf_nan=False, description="the highest")
    views: int = Field(1, ge=1, description="of each public picture; the first is itself")
    turn: float = Field(0.0, ge=0, le=180, description="the farthest turn of a view, in degrees")
    shift: float = Field(0.0, ge=0, lt=1, description="its farthest shift, as a share of the side")
    scale: float = Field(0.0, ge=0, lt=1, description="its largest change of size, as a share")
    mirror: bool = Field(False, description="whether half of the views are turned left to right")
    composites: int = Field(
        0, ge=0, description="pictures put together from parts of public ones, for the teacher"
    )
    samples: int = Field(0, ge=0, description="pictures drawn from the sketch, for the teacher")
    start_seed: int = Field(0, description="of weights, order, views and picks; never of noise")


class TeachersPart(_Part):
    """Source ensemble: one teacher a shard of the sensitive records; each answer is charged."""

    count: int = Field(250, ge=2, description="teachers, one a shard")
    shard_cap: int = Field(ge=1, description="the most records of a shard; a public constant")
    ridge: float = Field(0.1, gt=0, description="penalty of a teacher's linear layer")
    votes: int = Field(500, ge=1, description="soft votes that are paid for, over all rounds")
    grouped: bool = Field(
        False, description="group public pictures by the student's features: one vote a group"
    )
    hints: int = Field(0, ge=0, description="hints that are paid for")
    hint_share: Exact = Field(
        Fraction(1, 10), gt=0, lt=1, description="of the budget, for hints where there are some"
    )
    temperature: float = Field(
        0.1, gt=0, allow_inf_nan=False, description="divides a teacher's scores before its vote"
    )
    threshold: Exact | None = Field(
        None, gt=0, le=1, description="answer only where this share of the teachers agrees"
    )
    threshold_noise: Exact = Field(
        Fraction(3), gt=0, description="noise of that test, in units of the votes' noise"
    )
    asked: int | None = Field(
        None, ge=1, description="with a threshold: queries that are tested; votes caps the answers"
    )


class PublishedPart(_Part):
    """Source plain: one ordinary teacher, and the paper's algorithm to the letter."""

    teacher: str = Field("conv-small", description="a name in the zoo, or package.module:callable")
    teacher_epochs: int = Field(6, ge=1, description="its steps, as passes over the public part")
    reading: Literal["literal", "residual"] = Field(
        "literal", description="noise on the loss, or on the clipped residual (sound)"
    )
    sigma: Exact = Field(Fraction(10), gt=0, description="noise, in units of the bound")
    bound: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="of a batch's loss; adaptive when left out"
    )


class EnginePart(_Part):
    """Where independent work runs."""

    kind: Literal["serial", "loky", "ray", "dask"] = Field("loky", description="cores or a cluster")
    workers: int | None = Field(None, ge=1, description="at a time; one a core by default")
    address: str | None = Field(None, description="of the cluster, for ray and dask")


class PrivacyPart(_Part):
    """How much may be told, and what was looked at before."""

    epsilon: float = Field(gt=0, allow_inf_nan=False, description="for this whole release")
    delta: float = Field(1e-5, ge=SMALLEST_DELTA, lt=1, description="chance that it fails")
    evaluation_sigma: Exact = Field(
        Fraction(6), gt=0, description="noise on each count of the charged evaluation"
    )
    on_exhausted: Literal["refuse", "stop"] = Field(
        "refuse", description="when the budget is short: draw nothing, or take the steps that fit"
    )
    tuning: Literal["none", "public", "charged", "undeclared"] = Field(
        "undeclared", description="how the numbers of this recipe were chosen"
    )


class Recipe(_Part):
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
        source = self.data.source
        beside = folder / source
        named = source in KNOWN or source in imported(home())
        found = beside.is_file() or (beside.is_dir() and not named)
        roles = {"id": self.data.id_column, "person": self.data.person_column}
        columns = {role: column for role, column in roles.items() if column}
        parts = load_parts(
            str(beside) if found else source,
            _given_classes(self.data.classes),
            labels=folder / self.data.labels if self.data.labels else None,
            columns=columns,
        )
        if self.data.split == "as-given":
            if set(parts) != {"train", "test"}:
                raise BadInput(
                    f"{source} has no official train and test parts",
                    where="data.split",
                    why="a split as given needs parts that were given",
                    remedy='use split = "fraction"',
                )
            return Split.as_given(
                parts["train"],
                parts["test"],
                public=self.data.public,
                key=self.data.key,
                sensitive_classes=self.data.sensitive_classes,
            )
        whole = parts.get("all") or parts["train"]
        shares = (self.data.public, self.data.test)
        if not self.data.sensitive_classes:
            return Split.by_fraction(whole, self.data.key, *shares)
        return Split.by_class(whole, self.data.key, self.data.sensitive_classes, *shares)


def _given_classes(classes: int | list[str] | None) -> int | tuple[str, ...] | None:
    return tuple(classes) if isinstance(classes, list) else classes


def read(path: Path) -> tuple[Recipe, str]:
    """The recipe in a file, and its text.

    Raises:
        BadInput: the file cannot be read, or something in it does not fit; all faults are named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInput(
            "the recipe cannot be read",
            where=str(path),
            why="without a recipe there is nothing to do",
            remedy="check the path; `examples/` has recipes to start from",
        ) from None
    return parse(text, str(path)), text


def parse(text: str, where: str = "recipe") -> Recipe:
    """A recipe from its text."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(
            f"the recipe is not TOML: {error}",
            where=where,
            why="nothing can be read from it with certainty",
            remedy="mend the line it names",
        ) from None
    try:
        recipe = Recipe.model_validate(document)
    except ValidationError as error:
        faults = [_fault(fault) for fault in error.errors()]
        raise BadInput(
            "; ".join(faults),
            where=where,
            why="a run must be fixed by its recipe before anything is drawn",
            remedy="mend these lines; `stillroom recipe explain` shows every key and default",
        ) from None
    _refuse_misfits(recipe, where)
    return recipe


def _refuse_misfits(recipe: Recipe, where: str) -> None:
    """Keys that are fine by themselves and make no sense together."""
    features, training = recipe.features, recipe.training
    linear = training.model == "linear"
    only_networks = {
        "weights",
        "ema",
        "views",
        "shift",
        "mirror",
        "ghost",
        "public_source",
        "public_epochs",
    }
    if recipe.method == "rona":
        only_networks -= {"public_epochs"}
    misplaced = sorted(only_networks & training.model_fields_set)
    by_network = features.name in ("scattering", "auxiliary") or ":" in features.name
    known = features.name in FEATURES or by_network
    misfits = {
        f"features.name: there are no features {features.name!r}; use one of: "
        f"{', '.join(FEATURES)}, scattering, auxiliary, or package.module:callable": not known,
        "features: a network looks at the pictures themselves": not linear
        and bool(features.model_fields_set - {"full_scale"}),
        f"training.{', training.'.join(misplaced)}: only for a network": linear and bool(misplaced),
        "training.public_epochs: there is no public_source": training.public_epochs > 0
        and training.public_source is None
        and recipe.method == "direct",
        "training: a network has clips, not normalise; and ema, not average_from": not linear
        and (training.normalise or training.average_from is not None),
        "features.size belongs to a backbone, and a backbone to a features.size": (
            features.size is None
        )
        != (":" not in features.name),
        "features.components and features.fitted_on belong together": (features.components is None)
        != (features.fitted_on is None),
        f"features.components: `{features.name}` is used as it is": features.components is not None
        and features.name in FEATURES,
        "features.fitted_on: there is no [sketch]": features.fitted_on == "sketch"
        and recipe.sketch is None,
        "student: it learns from a [sketch], and there is none": recipe.student is not None
        and recipe.sketch is None,
        "data.unit: whole networks and sketches protect records, not persons": (
            not linear or recipe.sketch is not None
        )
        and recipe.data.unit == "person",
        **_rona_misfits(recipe),
    }
    found = [text for text, wrong in misfits.items() if wrong]
    if found:
        raise BadInput(
            "; ".join(found),
            where=where,
            why="a run must be fixed by its recipe before anything is drawn",
            remedy="mend these lines; `stillroom recipe explain` shows every key and default",
        )


def _rona_misfits(recipe: Recipe) -> dict[str, bool]:
    data, features, rona = recipe.data, recipe.features, recipe.rona
    if rona is None or recipe.method != "rona":
        only = {"public", "labelled", "sensitive_classes"} & data.model_fields_set
        parts = [part for part in ("rona", "teachers", "published") if getattr(recipe, part)]
        return {
            "rona: method rona needs a [rona] part": recipe.method == "rona",
            f"{', '.join(parts)}: only for method rona": recipe.method != "rona" and bool(parts),
            f"data.{', data.'.join(sorted(only))}: only for method rona": bool(only),
            "mode: as-published is a mode of method rona": recipe.mode == "as-published",
            "features: auxiliary and fitted_on public belong to method rona": (
                features.name == "auxiliary" or features.fitted_on == "public"
            ),
        }
    teachers, hinted = recipe.teachers, rona.hint_epochs > 0
    gated = teachers is not None and teachers.threshold is not None
    return {
        "data.public: method rona needs a public part": data.public == 0,
        "data.unit: method rona protects records": data.unit == "person",
        "data.labelled: the paper's algorithm has the labels of all public records": (
            rona.source == "plain" and data.labelled < 1
        ),
        "student: method rona has its own, rona.student": recipe.student is not None,
        "training.model: the teacher of method rona is linear": recipe.training.model != "linear",
        "mode, rona.source: as-published and plain belong together": (recipe.mode == "as-published")
        != (rona.source == "plain"),
        "published: belongs to rona.source plain": (recipe.published is not None)
        != (rona.source == "plain"),
        "teachers: belongs to rona.source ensemble": (teachers is not None)
        != (rona.source == "ensemble"),
        "training, sketch: only for rona.source dp-trained": rona.source != "dp-trained"
        and ("training" in recipe.model_fields_set or recipe.sketch is not None),
        "data.labelled: the paper's algorithm has labels of all public records": data.labelled != 1
        and rona.source == "plain",
        "rona.composites: only for rona.source dp-trained": rona.composites > 0
        and rona.source != "dp-trained",
        "rona.queries: only for rona.source plain": "queries" in rona.model_fields_set
        and rona.source != "plain",
        "features.name: auxiliary is for rona.source dp-trained": features.name == "auxiliary"
        and rona.source != "dp-trained",
        "rona.samples: there is no [sketch]": rona.samples > 0 and recipe.sketch is None,
        "rona.hint_epochs: name hint_layer and guided_layer": hinted
        and (rona.hint_layer is None or rona.guided_layer is None),
        "teachers.hints and rona.hint_epochs belong together": teachers is not None
        and (teachers.hints > 0) != hinted,
        "teachers.asked, teachers.threshold_noise: there is no threshold": teachers is not None
        and not gated
        and bool({"asked", "threshold_noise"} & teachers.model_fields_set),
        "teachers.grouped: means over groups have no threshold": gated
        and teachers is not None
        and teachers.grouped,
    }


def _fault(fault: Any) -> str:
    place = ".".join(map(str, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        known = _keys(fault["loc"][:-1])
        near = difflib.get_close_matches(str(fault["loc"][-1]), known, n=1, cutoff=0.0)
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


def person_warnings(recipe: Recipe, data: Dataset) -> tuple[str, ...]:
    """A word for the certificate where records of one person are protected one by one only."""
    if data.persons is None or recipe.data.unit == "person":
        return ()
    return (
        "The records name persons, and this release protects single records only: a person with "
        "several records is protected less.",
    )
