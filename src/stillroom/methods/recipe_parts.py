"""The tables of a recipe: every key with its default, its range and what it means."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from stillroom.documents import exact
from stillroom.features import FEATURES
from stillroom.vocabulary import SMALLEST_DELTA

MOST = 1_000_000_000
"""The largest size, such as that of the sensitive part."""
MOST_DRAWS = 100_000
"""The largest number of draws of a kind; their price takes seconds to compute."""
MOST_EPOCHS = 10_000
"""The largest number of passes over records."""
MOST_PER_PERSON = 1_000_000
MOST_PICTURES = 10_000_000
MOST_NUMBERS = 65_536
"""The largest number of coordinates."""
MOST_VIEWS = 1000
LARGEST_RATE = 1e12
"""Of a learning rate, a temperature and the like, none of which changes a price."""
SMALLEST_RATE = Fraction(1, 10**5)
LARGEST_EPSILON = 100.0
"""Beyond some ten an epsilon promises next to nothing."""
SMALLEST, LARGEST = Fraction(1, 10**12), Fraction(10**12)
"""Of a share, a norm or a scale of noise that is not 0."""
LONGEST = 40


def _exact(value: Any) -> Fraction:
    """A share as it is written: 0.5 and "1/2" are both one half."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("should be a number or a fraction such as '1/2'")
    if isinstance(value, str) and len(value) > LONGEST:
        raise ValueError(f"should be a number of at most {LONGEST} characters")
    try:
        found = exact(value)
    except ValueError:
        raise ValueError("should be a number or a fraction such as '1/2'") from None
    if found and not SMALLEST <= abs(found) <= LARGEST:
        raise ValueError("should be 0, or lie between 1e-12 and 1e12")
    return found


Exact = Annotated[Fraction, BeforeValidator(_exact)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Part(BaseModel):
    """A table of a recipe: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class DataPart(Part):
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
        ge=1,
        le=MOST,
        description="the declared number of sensitive units; a round guess, never a count",
    )
    person_column: str | None = Field(None, description="for a CSV file: whose record it is")
    unit: Literal["record", "person"] = Field("record", description="who is protected")
    max_records_per_person: int = Field(
        1,
        ge=1,
        le=MOST_PER_PERSON,
        description="for unit person: the public cap; surplus records are left out by hash",
    )


class FeaturesPart(Part):
    """What a linear layer looks at."""

    name: str = Field(
        "edges",
        description=f"one of: {', '.join(FEATURES)}, scattering; auxiliary, for rona; or a public "
        "backbone as package.module:callable",
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


class SketchPart(Part):
    """Class statistics released once, and pictures drawn from them."""

    mu: Exact = Field(gt=0, description="how much it may tell; 1/10 alone is epsilon 0.34")
    coefficients: int = Field(
        196, ge=1, le=MOST_NUMBERS, description="of the cosine transform that are kept"
    )
    directions: int = Field(24, ge=1, le=MOST_NUMBERS, description="along which classes may spread")
    centres: int = Field(4, ge=1, le=1000, description="of each class")
    lloyd: int = Field(3, ge=1, le=100, description="steps of Lloyd's algorithm")
    radius: Exact = Field(Fraction(10), gt=0, description="the largest norm of a picture")
    residual: Exact = Field(Fraction(6), gt=0, description="the same around a centre")
    sharpen: float = Field(0.8, ge=0, le=1, description="share of the samples with more contrast")
    warp: float = Field(0.5, ge=0, le=1, description="share of the samples that are warped")
    samples: int = Field(
        10_000, ge=100, le=MOST_PICTURES, description="pictures drawn to fit features on"
    )


class StudentPart(Part):
    """A network that sees samples of the sketch only, labelled by the private model."""

    model: str = Field("student-50k", description="a name in the zoo, or package.module:callable")
    samples: int = Field(
        40_000, ge=100, le=MOST_PICTURES, description="pictures drawn from the sketch"
    )
    epochs: int = Field(8, ge=1, le=MOST_EPOCHS, description="passes over them")
    batch: int = Field(128, ge=2, le=MOST_PICTURES, description="pictures a step")
    learning_rate: float = Field(3e-3, gt=0, le=LARGEST_RATE, description="the highest")
    start_seed: Seed = Field(0, description="of weights, order and samples; never of noise")


class TrainingPart(Part):
    """Method direct: gradient descent on a linear layer, or on a whole network."""

    model: str = Field(
        "linear", description="linear: over the features; else a network, over the pictures"
    )
    weights: str | None = Field(
        None, description="for a network: public weights to start from, a file beside the recipe"
    )
    start_seed: Seed = Field(0, description="for a network: of its first weights and augmentation")
    steps: int = Field(60, ge=1, le=MOST_DRAWS, description="noisy gradient sums")
    rate: Exact = Field(
        Fraction(1, 2), ge=SMALLEST_RATE, le=1, description="the share of the records in a step"
    )
    clip: Exact = Field(
        Fraction(1, 2), gt=0, description="the largest norm of one record's gradient"
    )
    normalise: bool = Field(False, description="scale every gradient to the clip")
    learning_rate: float = Field(8.0, gt=0, le=LARGEST_RATE, description="length of a step")
    momentum: float = Field(0.9, ge=0, lt=1, description="how much of the last step goes on")
    average_from: int | None = Field(
        None, ge=0, le=MOST_DRAWS, description="average the weights after this step"
    )
    ema: float | None = Field(
        None, ge=0, lt=1, description="for a network: how slowly averaged weights follow"
    )
    views: int = Field(
        1, ge=1, le=MOST_VIEWS, description="for a network: augmented views of each record"
    )
    shift: int = Field(0, ge=0, le=4096, description="for a network: the farthest shift of a view")
    mirror: bool = Field(False, description="for a network: whether views may be mirrored")
    ghost: bool = Field(False, description="for a network: ghost clipping; pays for wide layers")
    public_source: str | None = Field(
        None, description="for a network: labelled public records, a known or imported name"
    )
    public_epochs: int = Field(
        0,
        ge=0,
        le=MOST_EPOCHS,
        description="for a network or rona: passes over public records before all steps",
    )
    public_share: float = Field(
        0.5, ge=0, lt=1, description="for a network or rona: the public gradient's part of a step"
    )


class RonaPart(Part):
    """Method rona: a small student of a teacher that saw the sensitive records."""

    source: Literal["dp-trained", "ensemble", "plain"] = Field(
        "dp-trained", description="where the privacy comes from; plain is as-published only"
    )
    student: str = Field("student-10k", description="a name in the zoo, or package.module:callable")
    auxiliary: str = Field(
        "student-50k", description="the network of the auxiliary teacher, trained on public labels"
    )
    auxiliary_epochs: int = Field(
        6, ge=1, le=MOST_EPOCHS, description="its steps, as passes over the public part"
    )
    hint_layer: int | None = Field(
        None, ge=1, le=1000, description="the teacher's layer that gives hints, counted from one"
    )
    guided_layer: int | None = Field(
        None, ge=1, le=1000, description="the student's layer that follows them, counted from one"
    )
    hint_epochs: int = Field(0, ge=0, le=MOST_EPOCHS, description="T_h, passes of hint learning")
    rounds: int = Field(2, ge=1, le=1000, description="R, of self learning and then distillation")
    self_epochs: int = Field(
        2, ge=0, le=MOST_EPOCHS, description="T_s, passes over the labelled public part"
    )
    distillation_epochs: int = Field(
        4, ge=1, le=MOST_EPOCHS, description="T_d, passes over what was asked"
    )
    batch: int = Field(
        128, ge=2, le=MOST_PICTURES, description="S, records a step of hints and distillation"
    )
    self_batch: int = Field(
        128, ge=2, le=MOST_PICTURES, description="S', records a step of self learning"
    )
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
        le=LARGEST_RATE,
        description="divides scores before the softmax; their spread, or 1, when left out",
    )
    learning_rate: float = Field(4e-3, gt=0, le=LARGEST_RATE, description="the highest")
    views: int = Field(
        1, ge=1, le=MOST_VIEWS, description="of each public picture; the first is itself"
    )
    turn: float = Field(0.0, ge=0, le=180, description="the farthest turn of a view, in degrees")
    shift: float = Field(0.0, ge=0, lt=1, description="its farthest shift, as a share of the side")
    scale: float = Field(0.0, ge=0, lt=1, description="its largest change of size, as a share")
    mirror: bool = Field(False, description="whether half of the views are turned left to right")
    composites: int = Field(
        0,
        ge=0,
        le=MOST_PICTURES,
        description="pictures put together from parts of public ones, for the teacher",
    )
    samples: int = Field(
        0, ge=0, le=MOST_PICTURES, description="pictures drawn from the sketch, for the teacher"
    )
    start_seed: Seed = Field(0, description="of weights, order, views and picks; never of noise")


class TeachersPart(Part):
    """Source ensemble: one teacher a shard of the sensitive records; each answer is charged."""

    count: int = Field(250, ge=2, le=MOST_DRAWS, description="teachers, one a shard")
    shard_cap: int = Field(
        ge=1, le=MOST, description="the most records of a shard; a public constant"
    )
    ridge: float = Field(
        0.1, gt=0, le=LARGEST_RATE, description="penalty of a teacher's linear layer"
    )
    votes: int = Field(
        500, ge=1, le=MOST_DRAWS, description="soft votes that are paid for, over all rounds"
    )
    grouped: bool = Field(
        False, description="group public pictures by the student's features: one vote a group"
    )
    hints: int = Field(0, ge=0, le=MOST_DRAWS, description="hints that are paid for")
    hint_share: Exact = Field(
        Fraction(1, 10), gt=0, lt=1, description="of the budget, for hints where there are some"
    )
    temperature: float = Field(
        0.1, ge=1e-6, le=1e6, description="divides a teacher's scores before its vote"
    )
    threshold: Exact | None = Field(
        None, gt=0, le=1, description="answer only where this share of the teachers agrees"
    )
    threshold_noise: Exact = Field(
        Fraction(3), gt=0, description="noise of that test, in units of the votes' noise"
    )
    asked: int | None = Field(
        None,
        ge=1,
        le=MOST_DRAWS,
        description="with a threshold: queries that are tested; votes caps the answers",
    )


class PublishedPart(Part):
    """Source plain: one ordinary teacher, and the paper's algorithm to the letter."""

    teacher: str | None = Field(
        None,
        description="a name in the zoo, or package.module:callable; rona.auxiliary when left out",
    )
    teacher_epochs: int = Field(
        6, ge=1, le=MOST_EPOCHS, description="its steps, as passes over the public part"
    )
    reading: Literal["literal", "residual"] = Field(
        "literal", description="noise on the loss, or on the clipped residual (sound)"
    )
    sigma: Exact = Field(Fraction(10), gt=0, description="noise, in units of the bound")
    bound: float | None = Field(
        None, gt=0, le=LARGEST_RATE, description="of a batch's loss; adaptive when left out"
    )


class EnginePart(Part):
    """Where independent work runs."""

    kind: Literal["serial", "loky", "ray", "dask"] = Field("loky", description="cores or a cluster")
    workers: int | None = Field(
        None, ge=1, le=10_000, description="at a time; one a core by default"
    )
    address: str | None = Field(None, description="of the cluster, for ray and dask")


class PrivacyPart(Part):
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
