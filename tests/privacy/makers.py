"""Every maker of a Bounded value, with neighbours that move it as far as we could find.

A maker yields pairs of values on neighbouring data sets: random ones, and adversarial ones (all
records equal, all in one cell, at the clip, turned around, cancelling, in front and at the end).
`search.py` compares how far each pair is apart with what the maker declares.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from torch import nn

from privacy.entity_makers import ENTITY_MAKERS
from stillroom.data import Dataset, digits
from stillroom.engine import Engine
from stillroom.features import FEATURES, pixels
from stillroom.features.basis import Basis
from stillroom.models.flat_weights import flatten
from stillroom.models.weight_training import WeightTraining
from stillroom.parameters import GroupedWeights, ParameterGrid
from stillroom.private import (
    Clip,
    Ensemble,
    EnsemblePlan,
    Hints,
    LinearPersons,
    LinearRecords,
    SketchClip,
    SketchRecords,
    cap_records,
    confusion,
)
from stillroom.private.head_models import HeadPlan, HeadShards
from stillroom.private.label_gradients import LabelledRecords
from stillroom.private.network_clip import NetworkClip
from stillroom.private.network_persons import NetworkPersons
from stillroom.private.networks import NetworkRecords
from stillroom.private.output_gradients import PlainTeachers, TermBound
from stillroom.private.parameter_collection import CollectionPlan, NetworkShards
from stillroom.private.parameter_slices import ParameterSlices, PublishedModel
from stillroom.private.plain import PlainTeacher, bounded_loss
from stillroom.vocabulary import Bounded, Pair, Sealed, Unit

Found = tuple[Pair, Bounded, Bounded]
ADDED = Pair.parse("record/add-or-remove")
CHANGED = Pair.parse("record/change")
PERSON_ADDED = Pair.parse("person/add-or-remove")
PERSON_CHANGED = Pair.parse("person/change")
LABEL_CHANGED = Pair.parse("label/change")
CLASSES = 4
SERIAL = Engine("serial")


def around(value: Callable[..., Bounded], x, y, newcomers, added=ADDED, changed=CHANGED):
    """A unit more in front and at the end, one less, and one that becomes another."""
    whole = value(x, y)
    for new_x, new_y in newcomers:
        for at in (0, len(y)):
            more = value(np.insert(x, at, new_x, axis=0), np.insert(y, at, new_y))
            yield added, whole, more
        for place in {0, len(y) // 2, len(y) - 1} if len(y) else ():
            other_x, other_y = x.copy(), y.copy()
            other_x[place], other_y[place] = new_x, new_y
            yield changed, whole, value(other_x, other_y)
            yield added, whole, value(np.delete(x, place, axis=0), np.delete(y, place))


# -- gradients of a linear layer ------------------------------------------------------------


WEIGHTED = (0.25, 1.0, 0.001, 0.5)
"""Class weights: a record that changes its class swings between two lengths as well."""


def weighted_linear_sum() -> Iterator[Found]:
    """The same where gradients are multiplied before they are clipped."""
    yield from linear_sum(WEIGHTED)


def linear_sum(class_weights: tuple[float, ...] | None = None) -> Iterator[Found]:
    """One record's clipped gradient, beside few others and beside several blocks of them."""
    rng = np.random.default_rng(1)
    for size, steep, clip in (
        (0, 50.0, Clip(Fraction(1, 2))),
        (7, 0.1, Clip(Fraction(1, 10))),
        (9, 50.0, Clip(Fraction(1, 2), normalise=True)),
        (520, 3.0, Clip(Fraction(1, 3))),
    ):
        rows = rng.normal(size=(size, 12)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.001
        weights = rng.normal(size=(CLASSES, 12)).astype(np.float32) * np.float32(steep)
        far = (weights[0] - weights[1]) / np.linalg.norm(weights[0] - weights[1]) * 0.999
        labels = rng.integers(0, CLASSES, size)

        def value(x, y, weights=weights, clip=clip):
            records = LinearRecords(x, y, CLASSES, class_weights)
            return records.clipped_sum(weights, clip, None)

        newcomers = [(far, 1), (-far, 1), (far * 0.01, 2), (np.full(12, np.nan), 0)]
        yield from around(value, rows, labels, newcomers)
        if size:
            # All records equal to one that is at the clip, and one of them turned around.
            same, ones = np.repeat(far[None], size, axis=0), np.ones(size, dtype=np.int64)
            yield from around(value, same, ones, [(-far, 1), (far, 1)])


def features_of_pictures() -> Iterator[Found]:
    """From pictures to the sum: no record's features may know of others."""
    x, y = digits().x[:40].astype(np.float64), digits().y[:40] % CLASSES
    for name, features in FEATURES.items():
        width = features(x[:1]).shape[1]
        weights = np.zeros((CLASSES, width), dtype=np.float32)
        clip = Clip(Fraction(1, 5))

        def value(x, y, name=name, weights=weights, clip=clip):
            return LinearRecords(FEATURES[name](x), y, CLASSES).clipped_sum(weights, clip, None)

        strange = [(x[3] * 1000, 1), (np.zeros_like(x[0]), 2), (np.full_like(x[0], 1e300), 3)]
        yield from around(value, x, y, strange)


def weighted_persons_sum() -> Iterator[Found]:
    """The same where gradients are multiplied before they are added and clipped."""
    yield from persons_sum(WEIGHTED)


def persons_sum(class_weights: tuple[float, ...] | None = None) -> Iterator[Found]:
    """A person's records: equal, cancelling, nearly cancelling, and more of them than the cap."""
    rng = np.random.default_rng(2)
    most, size = 4, 60
    rows = rng.normal(size=(size, 10)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.001
    labels, owners = rng.integers(0, CLASSES, size), np.array([f"p{i // 3}" for i in range(size)])
    weights = rng.normal(size=(CLASSES, 10)).astype(np.float32) * np.float32(20)
    far = (weights[0] - weights[1]) / np.linalg.norm(weights[0] - weights[1]) * 0.999
    near = far + rng.normal(size=10) * 1e-3
    near *= 0.999 / np.linalg.norm(near)
    groups = {
        "equal": ([far] * 4, [1] * 4),
        "turned": ([-far] * 4, [1] * 4),
        "cancelling": ([far, -far, near, -near], [1] * 4),
        "too many": ([far] * 7, [1] * 7),
        "one": ([far], [1]),
    }
    for clip in (Clip(Fraction(1, 2)), Clip(Fraction(1, 7), normalise=True)):

        def value(x, y, who, clip=clip):
            ids = [f"{owner}/{row.tobytes().hex()}" for owner, row in zip(who, x, strict=True)]
            kept = cap_records(list(who), ids, most)
            own = list(who[kept])
            records = LinearPersons(x[kept], y[kept], CLASSES, own, most, class_weights)
            return records.clipped_sum(weights, clip, None)

        whole = value(rows, labels, owners)
        with_one = {}
        for name, (own, classes) in groups.items():
            for at in (0, size):
                x = np.insert(rows, [at] * len(own), own, axis=0).astype(np.float32)
                y = np.insert(labels, [at] * len(own), classes)
                with_one[name] = value(x, y, np.insert(owners, [at] * len(own), "new"))
                yield PERSON_ADDED, whole, with_one[name]
        for one in with_one.values():
            yield PERSON_CHANGED, with_one["equal"], one
        gone = owners != "p7"
        yield PERSON_ADDED, whole, value(rows[gone], labels[gone], owners[gone])


# -- gradients of a network -----------------------------------------------------------------


def weighted_network_sum() -> Iterator[Found]:
    """The same where losses are multiplied."""
    yield from network_sum(WEIGHTED)


def network_sum(class_weights: tuple[float, ...] | None = None) -> Iterator[Found]:
    """A small network with kinks; `test_network_slack.py` searches the whole zoo."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))
    weights, clip = 4 * flatten(network), NetworkClip(Fraction(1, 4))
    rng = np.random.default_rng(3)
    for size, ghost in ((0, False), (63, False), (64, True), (130, True)):
        x = rng.normal(size=(size, 6)).astype(np.float32)
        y = rng.integers(0, CLASSES, size)

        def value(x, y, ghost=ghost):
            options = {"ghost": ghost, "class_weights": class_weights}
            records = NetworkRecords(torch.from_numpy(x), y, CLASSES, network, **options)
            return records.clipped_sum(weights, clip, None, step=1)

        large = np.full(6, 30.0)
        yield from around(value, x, y, [(large, 0), (-large, 2), (np.full(6, 3e38), 1)])
        if size:
            # Turned around by its label: the last layer's bias follows the sign.
            same = np.repeat(large[None].astype(np.float32), size, axis=0)
            yield from around(value, same, np.zeros(size, dtype=np.int64), [(large, 1)])


def weighted_network_persons() -> Iterator[Found]:
    """The same where losses are multiplied, and a person's records have several weights."""
    yield from network_persons(WEIGHTED)


def network_persons(class_weights: tuple[float, ...] | None = None) -> Iterator[Found]:
    """Persons of a network: equal records, cancelling ones, and lengths that drown the rest."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))
    weights, clip, most = 4 * flatten(network), NetworkClip(Fraction(1, 4)), 5
    rng = np.random.default_rng(5)
    large = np.full(6, 30.0, dtype=np.float32)
    # Gradients of 1e19 and more, whose sum is what rounding leaves of them.
    huge = np.full(6, 1e19, dtype=np.float32)
    groups = {
        "equal": ([large] * 5, [0] * 5),
        "turned": ([large] * 5, [1] * 5),
        "cancelling": ([large, large, -large, -large], [0, 1, 0, 2]),
        "drowning": ([huge, huge, huge, huge, large], [0, 1, 2, 3, 0]),
        "not finite": ([np.full(6, np.inf), large, large], [0, 0, 0]),
        "no gradient": ([np.full(6, 3e38), large, large], [1, 0, 0]),
        "one": ([large], [0]),
    }
    for size, ghost in ((0, False), (62, False), (64, True), (131, True)):
        x = rng.normal(size=(size, 6)).astype(np.float32)
        y, owners = rng.integers(0, CLASSES, size), np.array([f"p{i // 3}" for i in range(size)])

        def value(x, y, who, ghost=ghost):
            about = (torch.from_numpy(x), y, CLASSES, network, list(who), most)
            options = {"ghost": ghost, "class_weights": class_weights}
            return NetworkPersons(*about, **options).clipped_sum(weights, clip, None, step=1)

        whole, with_one = value(x, y, owners), {}
        for name, (own, classes) in groups.items():
            for at in (0, size):
                more = np.concatenate([x[:at], np.array(own, dtype=np.float32), x[at:]])
                labels = np.concatenate([y[:at], np.array(classes, dtype=np.int64), y[at:]])
                who = np.concatenate([owners[:at], ["new"] * len(own), owners[at:]])
                with_one[name] = value(more, labels, who)
                yield PERSON_ADDED, whole, with_one[name]
        for one in with_one.values():
            yield PERSON_CHANGED, with_one["equal"], one
        if size:
            gone = owners != "p7"
            yield PERSON_ADDED, whole, value(x[gone], y[gone], owners[gone])


# -- class statistics -----------------------------------------------------------------------

BASIS, SKETCH = Basis(6, 6, 12), SketchClip(Fraction(3), Fraction(2), 256)


def _sketches(x, y) -> SketchRecords:
    return SketchRecords(x, y, CLASSES, basis=BASIS, full_scale=1.0, clip=SKETCH)


def sketch_sums() -> Iterator[Found]:
    """Means, moments, clusters: a white picture is at every radius, a black one at none."""
    rng = np.random.default_rng(4)
    means = rng.normal(size=(CLASSES, 12)) * 0.1
    axes = np.linalg.qr(rng.normal(size=(12, 3)))[0]
    flat = np.zeros((CLASSES, 12))
    one_axis = np.eye(12)[:, :3]
    centres = rng.normal(size=(CLASSES, 2, 3)) * 0.1
    origin = np.zeros((CLASSES, 2, 3))
    releases = {
        "class sums": lambda records: records.class_sums(),
        "moments": lambda records: records.second_moment(means),
        "moments around nothing": lambda records: records.second_moment(flat),
        "clusters": lambda records: records.cluster_sums(means, axes, centres),
        "clusters around nothing": lambda records: records.cluster_sums(flat, one_axis, origin),
        "cluster moments": lambda records: records.cluster_moments(means, axes, centres),
        "around nothing": lambda records: records.cluster_moments(flat, one_axis, origin),
        # A centre so far away that the rest is longer than any record before it is clipped again.
        "far away": lambda records: records.cluster_moments(means + 50, axes, centres - 50),
    }
    white, black = np.ones((6, 6)), np.zeros((6, 6))
    for size in (0, 30):
        x, y = rng.random((size, 6, 6)), rng.integers(0, CLASSES, size)
        for release in releases.values():

            def value(x, y, release=release):
                return release(_sketches(x, y))

            yield from around(value, x, y, [(white, 0), (black, 1), (white * 1e300, 2)])


# -- counts ---------------------------------------------------------------------------------


def confusion_of_records() -> Iterator[Found]:
    """A record is in one cell; changed, it leaves one and joins another."""
    rng = np.random.default_rng(5)
    for size in (0, 20):
        truth = rng.integers(0, CLASSES, size)

        def value(x, y):
            data = Dataset(
                np.zeros((len(y) + 1, 1)), [0, *y], CLASSES, ids=[str(i) for i in range(len(y) + 1)]
            ).select(np.arange(1, len(y) + 1))
            return confusion(Sealed(data), lambda data: x[:, 0].astype(np.int64))

        x = rng.integers(0, CLASSES, size)[:, None].astype(np.float64)
        yield from around(value, x, truth, [([2.0], 2), ([0.0], 3)])


def confusion_of_persons() -> Iterator[Found]:
    """All records of a person in one cell: the worst there is (K1b)."""
    for most in (1, 3, 10):

        def value(groups, most=most):
            rows = [(who, *cell) for who, cells in groups.items() for cell in cells]
            data = Dataset(
                np.zeros((len(rows) + 1, 1)),
                [0, *(truth for _, truth, _ in rows)],
                CLASSES,
                ids=[f"r{i}" for i in range(len(rows) + 1)],
                persons=["nobody", *(who for who, _, _ in rows)],
            ).select(np.arange(1, len(rows) + 1))
            guesses = np.array([guess for _, _, guess in rows], dtype=np.int64)
            return confusion(Sealed(data), lambda data: guesses, unit=Unit.PERSON, records=most)

        others = {f"p{i}": [(i % 4, i % 3), (1, 1)] for i in range(6)}
        kinds = {
            "one cell": [(2, 2)] * 12,
            "another cell": [(3, 0)] * 12,
            "spread": [(i % 4, (i // 4) % 4) for i in range(12)],
        }
        with_one = {name: value({**others, "new": cells}) for name, cells in kinds.items()}
        for one in with_one.values():
            yield PERSON_ADDED, value(others), one
            for other in with_one.values():
                yield PERSON_CHANGED, one, other


# -- answers of teachers --------------------------------------------------------------------


def _pictures(size: int, seed: int = 6, persons: bool = False) -> Dataset:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, size)
    x = rng.random((size, 4, 4)) * 0.1
    x[np.arange(size), y, y] += 5
    owners = [f"p{i // 2}" for i in range(size)] if persons else None
    return Dataset(x, y, CLASSES, ids=[f"r{i}" for i in range(size)], persons=owners)


def _teachers(
    answer: Callable[[Dataset, str], Bounded], kinds: tuple[str, ...] = ("ridge", "linear")
) -> Iterator[Found]:
    """Shards of one or two records, so that one record more, less or other turns a teacher."""
    for persons, (added, changed) in {
        False: (ADDED, CHANGED),
        True: (PERSON_ADDED, PERSON_CHANGED),
    }.items():
        data = _pictures(12, persons=persons)
        for teacher in kinds:
            whole = answer(data, teacher)
            units = data.units
            for unit in sorted(set(units))[:5]:
                own = [i for i, name in enumerate(units) if name == unit]
                without = np.setdiff1d(np.arange(len(data)), own)
                yield added, whole, answer(data.select(without), teacher)
                y = np.array(data.y)
                y[own] = (y[own] + 1) % CLASSES
                x = np.array(data.x)
                x[own] = np.where(x[own] > 1, 1e37, x[own])
                for new_x, new_y in ((data.x, y), (x, data.y), (x, y)):
                    other = Dataset(new_x, new_y, CLASSES, ids=data.ids, persons=data.persons)
                    yield changed, whole, answer(other, teacher)


def _ensemble(data: Dataset, teacher: str) -> Ensemble:
    plan = EnsemblePlan(7, "a test", shard_cap=4, teacher=teacher, ridge=1e-4, epochs=30,
                        learning_rate=0.5, default_class=1)  # fmt: skip
    return Ensemble.train(data, None, plan, engine=SERIAL)


QUERIES = _pictures(9, seed=7).x
GROUPS = np.array([0, 0, 1, 1, 1, 2, 2, 2, -1])


def votes() -> Iterator[Found]:
    yield from _teachers(lambda data, teacher: _ensemble(data, teacher).votes(QUERIES[:1]))


def soft_votes() -> Iterator[Found]:
    yield from _teachers(
        lambda data, teacher: _ensemble(data, teacher).soft_votes(QUERIES[:1], 1000, 0.01)
    )


def group_means() -> Iterator[Found]:
    yield from _teachers(
        lambda data, teacher: Bounded(
            (found := _ensemble(data, teacher).group_means(QUERIES, GROUPS, 1000, 0.01))
            .open_bounded()[:1],
            found.sensitivity,
        )
    )  # fmt: skip


def hint_residuals() -> Iterator[Found]:
    """Hints far from their centre, whose map turns around with one label."""
    values = 1000 * np.random.default_rng(8).normal(size=(8, 1))

    def answer(data, teacher):
        hints, centre = Hints(QUERIES[1:], values, ridge=1e-6), np.zeros((1, 1))
        return _ensemble(data, teacher).hint_residuals(QUERIES[:1], centre, hints, "1/2", 1000)

    yield from _teachers(answer)


# -- parameters of models on shards ---------------------------------------------------------


def _heads(data: Dataset) -> HeadShards:
    """Shards of one or two records; steps so long that each head ends far beyond the clip."""
    plan = HeadPlan(7, "a test", shard_cap=4, steps=2, learning_rate=50.0)
    return HeadShards(data, lambda x: pixels(x), np.eye(17, dtype=np.float32), plan)


def _shards(answer: Callable[[Dataset], Bounded]) -> Iterator[Found]:
    yield from _teachers(lambda data, kind: answer(data), kinds=("models",))


def _of_class(number: int, width: int) -> GroupedWeights:
    """One latent: the weights of a class, so that a model whose label turns swings around."""
    weights = np.arange(CLASSES * width) // width
    return GroupedWeights(np.where(weights == number, 0, -1))


START = np.zeros(CLASSES * 17, dtype=np.float32)
ALONE = int(_pictures(12).y[0])
"""The class of a record that has a shard of its own."""


def latents_of_heads() -> Iterator[Found]:
    one = _of_class(ALONE, 17)
    yield from _shards(lambda data: _heads(data).latent_sum(START, 0, one, 0.01, 1000))


def entries_of_heads() -> Iterator[Found]:
    grid, one = ParameterGrid(0.5, 9, 0.1), _of_class(0, 17)
    yield from _shards(lambda data: _heads(data).latent_entries(START, 0, one, grid))


def latents_of_networks() -> Iterator[Found]:
    """Networks that are trained one by one, and kept in a matrix on disk."""
    training = WeightTraining(
        "linear", (4, 4), CLASSES, 1.0, places=4, epochs=2, batch=2, learning_rate=0.5
    )
    start, plan = flatten(training.built()), CollectionPlan(training, 7, "a test")
    one = GroupedWeights(np.where(np.arange(len(start)) // 16 == ALONE, 0, -1))

    def answer(data: Dataset) -> Bounded:
        with tempfile.TemporaryDirectory() as folder:
            shards = NetworkShards(data, plan, len(start), folder=Path(folder), engine=SERIAL)
            return shards.latent_sum(start, 0, one, 0.01, 1000)

    yield from _shards(answer)


def entries_of_shared_models() -> Iterator[Found]:
    """As published: a record that is in all models but one may change all of these."""
    grid, models = ParameterGrid(1.0, 5, 0.2), 4
    here = np.full((models, 3), -1.0, dtype=np.float32)
    for moved in (1, models - 1):
        there = here.copy()
        there[:moved] = 1.0
        pairs = [CHANGED, ADDED] + [Pair.parse("entity/change")] * (moved == 1)
        for pair in pairs:
            both = (
                ParameterSlices(rows, moved).entries(slice(0, 3), grid, None)
                for rows in (here, there)
            )
            yield pair, *both


def weights_of_a_published_model() -> Iterator[Found]:
    """PGP: all weights of the private model may become others, and turn around."""
    layers, centroids = [slice(0, 6)], np.array([[-1.0, 1.0]])
    one, other = (
        PublishedModel(sign * np.ones(6, dtype=np.float32), layers, 1.0, 1.0, 6) for sign in (1, -1)
    )
    yield CHANGED, one.cluster_sums(centroids, 2), other.cluster_sums(centroids, 2)
    yield ADDED, one.residuals(0 * centroids), other.residuals(0 * centroids)


def _saying(said: torch.Tensor) -> PlainTeacher:
    """A teacher of one block that says the same of every record."""
    block = nn.Linear(1, len(said))
    block.weight.data.zero_()
    block.bias.data = said
    return PlainTeacher(nn.Sequential(block))


def plain_residual() -> Iterator[Found]:
    """One record may make any other teacher of this one."""
    queries, student = torch.zeros(2, 1), np.full((2, 3), 1 / 3)
    said = [torch.tensor(v) for v in ([9.0, 0, 0], [0, 9.0, 0], [0.0, 0, 0], [torch.nan, 0, 0])]
    for layer in (None, 1):
        for temperature in (1.0, 3.0):
            answers = [
                _saying(words).residual(
                    queries, student, bound=0.1, steps=500, layer=layer, temperature=temperature
                )
                for words in [*said, torch.tensor([-1e30, 0, 0]), torch.tensor([1e30, 0, 0])]
            ]
            for one in answers:
                for other in answers:
                    yield CHANGED, one, other
                    yield PERSON_ADDED, one, other


SOFT = torch.nn.functional.cross_entropy
FLIPS = [torch.tensor(v) for v in ([9.0, -9.0], [-9.0, 9.0], [0.0, 0.0], [torch.nan, 0.0])]
FLIPS += [torch.tensor([1e30, 0.0]), torch.tensor([1e4, 9.0])]


def _to_soft_labels(said: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
    return SOFT(said, taught.softmax(1))


def _told(teachers: list[torch.Tensor], rule: TermBound, sharded_by=None) -> Bounded:
    """What teachers of two classes say of seven pictures of an unsure student."""
    asked = PlainTeachers([_saying(words) for words in teachers], sharded_by)
    queries, student = torch.zeros(7, 1), torch.linspace(-0.2, 0.2, 14).reshape(7, 2)
    return asked.gradients(queries, student, _to_soft_labels, rule)


def _rules(*, together: bool) -> list[TermBound]:
    return [
        TermBound(0.1, 5000, together=together, normalised=normalised)
        for normalised in (True, False)
    ]


def _whoever_changes(many: int, *, together: bool) -> Iterator[Found]:
    for rule in _rules(together=together):
        answers = [_told([words] * many, rule) for words in FLIPS]
        for one in answers:
            for other in answers:
                yield CHANGED, one, other
                yield PERSON_ADDED, one, other


def gradients_one_by_one() -> Iterator[Found]:
    """A whole batch turns around with one record: 2 B C."""
    yield from _whoever_changes(1, together=False)


def gradients_together() -> Iterator[Found]:
    """Divided by the norm of the batch: 2 sqrt(B) C."""
    yield from _whoever_changes(1, together=True)


def gradients_of_teachers() -> Iterator[Found]:
    """Teachers that saw the same record turn around together."""
    yield from _whoever_changes(5, together=False)


def gradients_of_teachers_together() -> Iterator[Found]:
    yield from _whoever_changes(5, together=True)


def gradients_on_shards() -> Iterator[Found]:
    """One teacher of five changes."""
    for rule in _rules(together=False):
        for others in FLIPS:
            answers = [_told([words, *[others] * 4], rule, Unit.PERSON) for words in FLIPS]
            for other in answers:
                yield CHANGED, answers[0], other
                yield PERSON_ADDED, answers[0], other


def _of_labels(labels: list[int], rule: TermBound) -> Bounded:
    data = Dataset(np.zeros((len(labels), 1)), labels, 2, ids=[f"r{i}" for i in range(len(labels))])
    records = LabelledRecords(Sealed(data), nn.Identity(), Unit.LABEL)
    said = torch.linspace(-0.3, 0.3, 2 * len(labels)).reshape(-1, 2)
    return records.gradients(np.arange(len(labels)), said, rule)


def _other_labels(many: int, *, together: bool) -> Iterator[Found]:
    for rule in _rules(together=together):
        for labels in ([0] * many, [i % 2 for i in range(many)]):
            for place in range(many):
                others = [*labels[:place], 1 - labels[place], *labels[place + 1 :]]
                yield LABEL_CHANGED, _of_labels(labels, rule), _of_labels(others, rule)


def gradients_of_labels() -> Iterator[Found]:
    """One label turns its own term around."""
    yield from _other_labels(7, together=False)


def gradients_of_labels_together() -> Iterator[Found]:
    """By a common norm the others move too; alone a term moves as far as is declared."""
    for many in (1, 7):
        yield from _other_labels(many, together=True)


def clipped_losses() -> Iterator[Found]:
    values = [bounded_loss(loss, 2.0, 1000) for loss in (0.0, 1.0, 7.0, float("nan"), -3.0, 2.0)]
    for one in values:
        for other in values:
            yield ADDED, one, other
            yield CHANGED, one, other


MAKERS: dict[Callable[[], Iterator[Found]], tuple[str, ...]] = {
    linear_sum: ("linear.LinearRecords.clipped_sum",),
    weighted_linear_sum: ("linear.LinearRecords.clipped_sum",),
    features_of_pictures: ("linear.LinearRecords.clipped_sum",),
    persons_sum: ("persons.LinearPersons.clipped_sum",),
    weighted_persons_sum: ("persons.LinearPersons.clipped_sum",),
    network_sum: ("networks.NetworkRecords.clipped_sum",),
    weighted_network_sum: ("networks.NetworkRecords.clipped_sum",),
    weighted_network_persons: ("network_persons.NetworkPersons.clipped_sum",),
    network_persons: ("network_persons.NetworkPersons.clipped_sum",),
    sketch_sums: ("sketch.SketchRecords._bounded",),
    confusion_of_records: ("evaluation.confusion",),
    confusion_of_persons: ("evaluation.confusion",),
    votes: ("teacher_sums.TeacherSums.votes",),
    soft_votes: ("teacher_sums.TeacherSums.soft_votes",),
    group_means: ("teacher_sums.TeacherSums.group_means",),
    hint_residuals: ("ensemble.Ensemble.hint_residuals",),
    plain_residual: ("plain.PlainTeacher.residual",),
    gradients_one_by_one: ("output_gradients.PlainTeachers.gradients",),
    gradients_together: ("output_gradients.PlainTeachers.gradients",),
    gradients_of_teachers: ("output_gradients.PlainTeachers.gradients",),
    gradients_of_teachers_together: ("output_gradients.PlainTeachers.gradients",),
    gradients_on_shards: ("output_gradients.PlainTeachers.gradients",),
    gradients_of_labels: ("label_gradients.LabelledRecords.gradients",),
    gradients_of_labels_together: ("label_gradients.LabelledRecords.gradients",),
    clipped_losses: ("plain.bounded_loss",),
    latents_of_heads: ("shard_models.ShardModels.latent_sum",),
    latents_of_networks: ("shard_models.ShardModels.latent_sum",),
    entries_of_heads: ("shard_models.ShardModels.latent_entries",),
    entries_of_shared_models: ("parameter_slices.ParameterSlices.entries",),
    weights_of_a_published_model: ("parameter_slices.PublishedModel._of_weights",),
    **ENTITY_MAKERS,
}
"""The makers, and the places in `private/` where their values are made."""

UNPROTECTED = ("unprotected.unprotected",)
"""Values that declare nothing and have no finite price."""
CONSTANT = ("entity_votes.silence",)
"""Values that are the same whatever the records are."""
