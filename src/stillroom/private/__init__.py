"""The private room: sees raw data, hands out only Bounded answers."""

from stillroom.private.linear import Clip, LinearRecords
from stillroom.private.teachers import VotingTeachers

__all__ = ["Clip", "LinearRecords", "VotingTeachers"]
