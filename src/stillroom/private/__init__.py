"""The private room: sees raw data, hands out only Bounded answers."""

from stillroom.private.evaluation import confusion
from stillroom.private.linear import Clip, LinearRecords
from stillroom.private.persons import LinearPersons, cap_records
from stillroom.private.teachers import VotingTeachers

__all__ = [
    "Clip",
    "LinearPersons",
    "LinearRecords",
    "VotingTeachers",
    "cap_records",
    "confusion",
]
