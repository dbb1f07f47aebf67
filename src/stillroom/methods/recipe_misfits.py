"""Keys of a recipe that are fine by themselves and make no sense together."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from stillroom.errors import BadInput
from stillroom.features import FEATURES

if TYPE_CHECKING:
    from stillroom.methods.recipe import Recipe

MOST_SMALL_STEPS = 20_000


def refuse_misfits(recipe: Recipe, where: str) -> None:
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
        f"training.steps, training.rate: more than {MOST_SMALL_STEPS} steps of less than a "
        "thousandth of the records; their price takes too long to compute": (
            training.steps > MOST_SMALL_STEPS and training.rate < Fraction(1, 1000)
        ),
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
        "privacy.evaluation_records_per_person: only for unit person": (
            "evaluation_records_per_person" in recipe.privacy.model_fields_set
            and recipe.data.unit == "record"
        ),
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
        "teachers.count: more teachers than data.public_size records": teachers is not None
        and teachers.count > data.public_size,
        "training, sketch: only for rona.source dp-trained": rona.source != "dp-trained"
        and ("training" in recipe.model_fields_set or recipe.sketch is not None),
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
