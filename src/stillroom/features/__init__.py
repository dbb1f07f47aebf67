"""Fixed features: functions of one record alone, with rows of norm at most one."""

from stillroom.features.fixed import FEATURES, edges, pixels

__all__ = ["FEATURES", "edges", "pixels"]
