"""The phases of sources, as pieces of work that can be tried on made-up records."""

from __future__ import annotations

from math import ceil

from stillroom.features import FIXED
from stillroom.recipe import Recipe
from stillroom.sources.base import Facts
from stillroom.sources.feature_trials import (
    Directions,
    DirectionsFitted,
    FeatureAnswers,
    FeatureRows,
    FeaturesMade,
    FeatureTrial,
    PlainRows,
)
from stillroom.sources.gate_trials import Draws, LinearSums, NetworkSums
from stillroom.sources.network_trials import NetworkAnswers, NetworkSteps, NetworkTrial
from stillroom.sources.public_trials import Ridge, RidgeAnswers
from stillroom.sources.sketch_trials import (
    SketchDrawn,
    SketchLooked,
    SketchSamples,
    SketchSums,
    SketchTrial,
)
from stillroom.sources.trials import (
    Given,
    Phase,
    Trial,
    Work,
    in_parallel,
    sensitive_records,
)

CHUNK = 2048
"""Records whose features are one unit of work."""
WORTH_CORES = 1000
PUBLIC_BATCH = 256
LOADING = 1.3
"""Seconds until the packages are there that networks need."""
EXPORTING = 2.0
"""Seconds until a network is written down as ONNX, run and compared with itself."""
CHECKED = 256
"""Made-up records whose gradients are compared before a network is trained, about."""


def looking_at(recipe: Recipe) -> str:
    """What the first phase of a run is called."""
    return f"looking at {recipe.data.source}"


def trial_of(recipe: Recipe, facts: Facts) -> FeatureTrial:
    """The recipe's features."""
    part, auxiliary = recipe.features, None
    if part.name == "auxiliary":
        auxiliary = recipe.section("rona").auxiliary
    return FeatureTrial(
        part.name,
        facts.shape,
        part.full_scale,
        part.size,
        auxiliary,
        len(facts.classes),
        recipe.table,
    )


def width_of(recipe: Recipe, facts: Facts) -> int:
    """Columns of a row of the recipe's features."""
    part = recipe.features
    return trial_of(recipe, facts).map.width if part.components is None else part.components + 1


def network_of(recipe: Recipe, facts: Facts, model: str, batch: int, **more: bool) -> NetworkTrial:
    """A network by name, for these records."""
    scale = recipe.features.full_scale
    return NetworkTrial(model, facts.shape, len(facts.classes), scale, batch, **more)


def rows_of(recipe: Recipe, facts: Facts, records: float) -> list[Work]:
    """The features of so many records."""
    trial = trial_of(recipe, facts)
    made = FeatureRows(trial)
    if trial.map.fixed:
        return [Work(made, records)]
    ready = Work(FeaturesMade(trial))
    if records < WORTH_CORES:
        return [ready, Work(made, records)]
    return [ready, *in_parallel(recipe, made, CHUNK, records / CHUNK)]


def directions_of(recipe: Recipe, facts: Facts, records: float) -> list[Phase]:
    """Directions fitted, and so many records brought to them; nothing where there are none."""
    part, sketch = recipe.features, recipe.section("sketch")
    if part.components is None:
        return []
    columns = trial_of(recipe, facts).map.width - 1
    if part.fitted_on == "sketch" and sketch is not None:
        fitted_on = sketch.samples
        drawn = [Work(SketchSamples(sketch_of(recipe, facts)), fitted_on)]
    else:
        fitted_on = facts.public_records if part.fitted_on == "public" else 60_000
        drawn = []
    works = [
        *drawn,
        *rows_of(recipe, facts, fitted_on),
        Work(DirectionsFitted(columns, part.components, fitted_on)),
        Work(Directions(columns, part.components), records),
    ]
    return [Phase("directions", works)]


def sketch_of(recipe: Recipe, facts: Facts) -> SketchTrial:
    """The recipe's sketch, of made-up pictures."""
    section = recipe.section("sketch")
    assert section is not None
    scale = float(recipe.features.full_scale)
    return SketchTrial(section.model_dump_json(), facts.shape, len(facts.classes), scale)


def sketch_phases(recipe: Recipe, facts: Facts) -> list[Phase]:
    """A look at the records, then all sums; nothing where there is no sketch."""
    if recipe.section("sketch") is None:
        return []
    trial, records = sketch_of(recipe, facts), sensitive_records(recipe)
    works = [
        Work(SketchLooked(trial), records),
        Work(SketchSums(trial), records),
        Work(SketchDrawn(trial)),
    ]
    return [Phase("sketch", works)]


def linear_phases(recipe: Recipe, facts: Facts) -> list[Phase]:
    """Source trained, of a linear layer."""
    training, records = recipe.section("training"), sensitive_records(recipe)
    classes, width = len(facts.classes), width_of(recipe, facts)
    batch = max(1, round(float(training.rate) * records))
    data = recipe.data
    together = data.max_records_per_person if data.unit == "person" else None
    sums = Work(LinearSums(batch, width, classes, together), training.steps)
    fixed = trial_of(recipe, facts).map.fixed
    # Fixed features are looked at before the payment, and computed again after it.
    features = rows_of(recipe, facts, (2 if fixed else 1) * records)
    if not fixed and recipe.features.components is None:
        features.append(Work(PlainRows(width - 1), records))
    return [
        Phase("features", features),
        *sketch_phases(recipe, facts),
        *directions_of(recipe, facts, records),
        Phase("training", [sums, Work(Draws(classes * width), training.steps)]),
    ]


def network_phases(recipe: Recipe, facts: Facts) -> list[Phase]:
    """Source trained, of a whole network."""
    training, records = recipe.section("training"), sensitive_records(recipe)
    network = network_of(recipe, facts, training.model, PUBLIC_BATCH)
    batch = max(1, round(float(training.rate) * records))
    steps, scale = training.steps, recipe.features.full_scale
    trial = NetworkSums(training.model_copy(), facts.shape, len(facts.classes), scale, batch)
    phases = []
    if training.public_source is not None and training.public_epochs:
        learnt = Work(NetworkSteps(network), training.public_epochs * 60_000)
        phases.append(Phase("training on public records", [learnt]))
    helped = [] if training.public_source is None else [Work(NetworkSteps(network), steps * 64)]
    works = [Work(trial, steps * batch), Work(Draws(weights_of(network)), steps), *helped]
    return [
        *phases,
        Phase("looking at the records", [Work(trial, CHECKED)]),
        *sketch_phases(recipe, facts),
        Phase("training", works),
    ]


def weights_of(network: NetworkTrial) -> int:
    """How many a network has."""
    from stillroom.models.flat_weights import flatten

    return len(flatten(network.network()))


def teacher_phases(recipe: Recipe, facts: Facts) -> list[Phase]:
    """Source ensemble: its teachers; what they are asked is part of a method's own phases."""
    section, records = recipe.section("teachers"), sensitive_records(recipe)
    own, width, classes = records / section.count, width_of(recipe, facts), len(facts.classes)
    size = max(1, min(section.shard_cap, ceil(own)))
    solved = Work(Ridge(size, width, classes, section.shard_cap), section.count)
    # Teachers are trained in this process, and their features too.
    trial = trial_of(recipe, facts)
    rows = [Work(FeatureRows(trial), min(records, section.count * section.shard_cap))]
    ready = [] if recipe.features.name in FIXED else [Work(FeaturesMade(trial))]
    return [
        *directions_of(recipe, facts, records),
        Phase("teachers", [*ready, *rows, solved]),
        *sketch_phases(recipe, facts),
    ]


def asked_of_teachers(recipe: Recipe, facts: Facts) -> list[Work]:
    """All answers of source ensemble."""
    section, classes = recipe.section("teachers"), len(facts.classes)
    questions = section.questions + section.hints
    said = RidgeAnswers(width_of(recipe, facts), classes)
    rows = Work(FeatureRows(trial_of(recipe, facts)), questions)
    return [rows, Work(said, questions * section.count), Work(Draws(classes * CHUNK), 1)]


def plain_phases(recipe: Recipe, facts: Facts, model: str, epochs: int, batch: int) -> list[Phase]:
    """Source plain: one ordinary teacher on all records, or none where it comes in a file."""
    section = recipe.section("plain")
    if section is not None and section.file is not None:
        return []
    records = sensitive_records(recipe) + facts.public_records
    trial = NetworkSteps(network_of(recipe, facts, model, batch))
    return [Phase("training the teacher in the clear", [Work(trial, epochs * records)])]


def teacher_answers(recipe: Recipe, facts: Facts) -> Trial:
    """What the model of source trained, or a plain teacher, says of one record."""
    training = recipe.section("training")
    if recipe.source == "trained" and training.linear:
        return FeatureAnswers(trial_of(recipe, facts))
    if recipe.source == "trained":
        return NetworkAnswers(network_of(recipe, facts, training.model, PUBLIC_BATCH))
    plain = recipe.section("plain")
    teacher = (plain and plain.teacher) or "student-50k"
    return NetworkAnswers(network_of(recipe, facts, teacher, PUBLIC_BATCH))


def ending(
    recipe: Recipe, facts: Facts, tested: float, model: str | None, rivals: int = 0
) -> list[Phase]:
    """The packages that a model needs, its test beside others, and its bundle.

    Args:
        recipe: the recipe.
        facts: what is public about the data.
        tested: records that are tested on.
        model: the network that is released; None for a linear layer over the recipe's features.
        rivals: how many it is compared with.
    """
    if model is None:
        measured: Trial = FeatureAnswers(trial_of(recipe, facts))
        written: Trial = FeaturesMade(trial_of(recipe, facts))
    else:
        batch = 1 if not recipe.data.test_is_public else min(PUBLIC_BATCH, max(1, round(tested)))
        network = network_of(recipe, facts, model, batch, alone=True)
        measured, written = NetworkAnswers(network), Given(EXPORTING)
    loaded = model is None and recipe.features.name in FIXED
    return [
        Phase(looking_at(recipe), [] if loaded else [Work(Given(LOADING))]),
        Phase("measuring", [Work(measured, tested * (1 + rivals))]),
        Phase("writing the bundle", [Work(written)]),
    ]
