"""The numbers a draft of a recipe gives to each method, by the size of the data.

They are those of examples/ and benchmarks/recipes, which were chosen on public data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Numbers = Sequence[tuple[str, str, str]]
"""Keys, values, and what they mean."""
NARROWEST = 24
"""Characters before a comment."""
MANY = 10_000
"""Units from which longer trainings and richer features pay."""
LEAST_SIDE, LEAST_EDGES = 12, 4
SKETCHED = 48


def aligned(keys: Numbers, head: tuple[str, str] | None = None) -> list[str]:
    """Lines of a recipe, with what they mean in one column.

    >>> aligned([("steps", "60", "noisy sums"), ("rate", "1", "everyone")])
    ['steps = 60               # noisy sums', 'rate = 1                 # everyone']
    """
    pairs = [(f"{key} = {value}", about) for key, value, about in keys]
    lines = pairs if head is None else [head, *pairs]
    wide = max(NARROWEST, *(len(text) for text, _ in lines))
    return [f"{text:<{wide}} # {about}" for text, about in lines]


@dataclass(frozen=True)
class Scale:
    """What the numbers depend on.

    Args:
        shape: of one record, if known.
        units: sensitive records or persons, as declared.
        public: public records, about.
        full_scale: the largest value of a pixel.
        entities: for method votes.
        unit: record or person.
        table: whether a schema says what the columns are.
    """

    shape: tuple[int, ...] | None
    units: int
    public: int
    full_scale: float
    entities: int
    unit: str
    table: bool = False

    @property
    def many(self) -> bool:
        """Whether there are enough for longer trainings."""
        return self.units >= MANY

    @property
    def pictures(self) -> bool:
        """Whether a record is a picture that has edges."""
        return (
            self.shape is not None
            and len(self.shape) in (2, 3)
            and min(self.shape[:2]) >= LEAST_EDGES
        )

    @property
    def rich(self) -> bool:
        """Whether wavelets whose directions come from a sketch are worth their price."""
        shape = self.shape
        plain = shape is not None and (len(shape) == 2 or (len(shape) == 3 and shape[2] == 3))
        return plain and self.pictures and self.many and min((shape or (0,))[:2]) >= LEAST_SIDE


@dataclass(frozen=True)
class Part:
    """A section of a draft.

    Args:
        name: of the section.
        about: what it is, in a few words.
        keys: its keys.
    """

    name: str
    about: str
    keys: Numbers

    @property
    def text(self) -> str:
        """As it stands in the recipe."""
        return "\n".join(aligned(self.keys, head=(f"[{self.name}]", self.about)))


def _features(scale: Scale, *, rich: bool) -> Part:
    white = ("full_scale", f"{scale.full_scale:g}", "the largest value a pixel can have")
    if scale.table:
        keys = [("name", '"table"', "each row from its own record and the schema alone")]
    elif rich:
        keys = [
            ("name", '"scattering"', "fixed wavelets, record by record"),
            white,
            ("components", "512", "directions that are kept"),
            ("fitted_on", '"sketch"', "no public picture is needed"),
        ]
    elif scale.pictures:
        keys = [("name", '"edges"', "pooled edges and pixels, record by record"), white]
    else:
        keys = [("name", '"pixels"', "the numbers of a record, at one length"), white]
    return Part("features", "what a linear layer looks at", keys)


def _training(scale: Scale) -> Part:
    """Many records stand longer and more steps against the same noise."""
    steps, clip, rate = ("100", '"3/10"', "100.0") if scale.many else ("60", '"1/2"', "8.0")
    whole = scale.units <= 100_000
    keys = [
        ("steps", steps, "noisy gradient sums; more steps have more noise each"),
        ("rate", "1" if whole else '"1/4"', f"the share of the {scale.unit}s in each step"),
        ("clip", clip, f"the largest norm of one {scale.unit}'s gradient"),
        ("learning_rate", rate, "length of a step"),
        ("momentum", "0.9", "how much of the last step goes on"),
    ]
    return Part("training", "a linear layer, through the gate", keys)


def _sketch(scale: Scale, *, small: bool) -> Part:
    keys = [("mu", '"1/10"' if scale.many else '"3/10"', "how much it may tell")]
    if small:
        numbers = scale.shape or (8, 8)
        kept = min(SKETCHED if not scale.many else 2 * SKETCHED, numbers[0] * numbers[1])
        keys += [
            ("coefficients", str(kept), "of a picture's cosine transform"),
            ("directions", str(min(12, kept)), "along which classes may spread"),
            ("centres", "1", "of each class"),
        ]
    return Part("sketch", "class statistics, released once", keys)


def _direct(scale: Scale) -> list[Part]:
    sketch = [_sketch(scale, small=False)] if scale.rich else []
    return [_features(scale, rich=scale.rich), *sketch, _training(scale)]


def _rona(scale: Scale) -> list[Part]:
    batch = max(8, min(128, scale.public // 10))
    training = _training(scale)
    helped = Part(
        training.name,
        "the teacher: a linear layer, through the gate",
        [*training.keys, ("public_share", "0.1", "of public labels in each step, free")],
    )
    keys = [
        ("student", '"mobile-10k"', "what is handed over; a name in the zoo, or your own"),
        ("auxiliary", '"mobile-50k"', "a larger network, public labels only"),
        ("rounds", "4", "of self learning, then distillation"),
        ("batch", str(batch), "public records per step"),
        ("self_batch", str(batch), "the same, of self learning"),
        ("views", "4", "of each public picture; asking is free"),
        ("shift", "0.1", "the farthest shift of a view, as a share"),
    ]
    student = Part("rona", "a student taught on public pictures", keys)
    return [_features(scale, rich=False), helped, student]


def _dpdfd(scale: Scale) -> list[Part]:
    each = 2000 if scale.many else 800
    keys = [
        ("student", '"wavelet-70k"', "what is handed over; a name in the zoo, or your own"),
        ("rounds", "10" if scale.many else "4", "of fresh made-up queries; each has"),
        ("samples", str(each), "pictures of the sketch,"),
        ("structured", str(each // 2), "random shapes,"),
        ("mixed", str(each), "and both joined"),
    ]
    student = Part("dpdfd", "a student that never saw a real picture", keys)
    rich = scale.rich
    parts = [_features(scale, rich=rich), _sketch(scale, small=True), _training(scale)]
    return [*parts, student]


def _pg(scale: Scale) -> list[Part]:
    models = max(20, min(10_000, scale.units // 5))
    cap = max(8, 3 * scale.units // models)
    shards = [
        ("models", str(models), f"one per shard; a {scale.unit} is in one of them"),
        ("shard_cap", str(cap), "records per shard; a surplus is dropped by hash"),
        ("start", '"sketch"', "models start from samples of it"),
        ("learning_rate", "2.0", "of a step on a shard"),
    ]
    publish = [
        ("rounds", "4", "publish, train on from there, publish again"),
        ("clip", "1.0", "the longest move of a model"),
    ]
    return [
        _features(scale, rich=False),
        _sketch(scale, small=True),
        Part("collection", "one linear layer per shard", shards),
        Part("pg", "the noisy mean of how far they moved", publish),
    ]


def _votes(scale: Scale) -> list[Part]:
    largest = max(4, 2 * scale.units // max(1, scale.entities))
    entities = [
        ("count", str(scale.entities), "each with its own records, teacher and ledger"),
        ("largest", str(largest), "records of one; a surplus is dropped by hash"),
    ]
    asked = [("queries", str(max(1, scale.public // 4)), "public records that are voted on")]
    student = [("model", '"student-10k"', "what is handed over; a name in the zoo, or your own")]
    return [
        _features(scale, rich=False),
        Part("entities", "many holders, who pool nothing", entities),
        Part("votes", "only their noisy sum is opened", asked),
        Part("student", "learns what the votes say", student),
    ]


SECTIONS: Mapping[str, Callable[[Scale], list[Part]]] = {
    "direct": _direct,
    "rona": _rona,
    "dpdfd": _dpdfd,
    "pg": _pg,
    "votes": _votes,
}
"""Method -> its sections."""
