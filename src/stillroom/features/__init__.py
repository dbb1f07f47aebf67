"""Fixed features: functions of one record alone, with rows of norm at most one."""

from stillroom.features.fixed import FEATURES, edges, pixels
from stillroom.features.table import TABLE, TableFeatures

FIXED = (*FEATURES, TABLE)
"""The names of features that need no network."""

__all__ = ["FEATURES", "FIXED", "TABLE", "TableFeatures", "edges", "pixels"]
