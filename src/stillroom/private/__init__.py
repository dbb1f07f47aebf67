"""The private room: sees raw data, hands out only Bounded answers."""

from stillroom.private.answers import neighbours
from stillroom.private.ensemble import Ensemble
from stillroom.private.ensemble_plan import EnsemblePlan
from stillroom.private.evaluation import confusion
from stillroom.private.hints import Hints
from stillroom.private.linear import Clip, LinearRecords
from stillroom.private.persons import LinearPersons, cap_records
from stillroom.private.sketch import SketchRecords
from stillroom.private.sketch_clip import SketchClip
from stillroom.private.teachers import VotingTeachers

__all__ = [
    "Clip",
    "Ensemble",
    "EnsemblePlan",
    "Hints",
    "LinearPersons",
    "LinearRecords",
    "SketchClip",
    "SketchRecords",
    "VotingTeachers",
    "cap_records",
    "confusion",
    "neighbours",
]
