"""The private room: sees raw data, hands out only Bounded answers."""

from stillroom.private.ensemble import Ensemble
from stillroom.private.ensemble_plan import EnsemblePlan
from stillroom.private.evaluation import confusion
from stillroom.private.hints import Hints
from stillroom.private.linear import Clip, LinearRecords
from stillroom.private.persons import LinearPersons, cap_records, capped, linear_records
from stillroom.private.sealed import look_at, overlaps
from stillroom.private.sketch import SketchRecords, sketch_records
from stillroom.private.sketch_clip import SketchClip

__all__ = [
    "Clip",
    "Ensemble",
    "EnsemblePlan",
    "Hints",
    "LinearPersons",
    "LinearRecords",
    "SketchClip",
    "SketchRecords",
    "cap_records",
    "capped",
    "confusion",
    "linear_records",
    "look_at",
    "overlaps",
    "sketch_records",
]
