"""Where samples come from: built-in digits, files, splits (public, sensitive, test), hash shards.

>>> from stillroom.data import Split, load
>>> split = Split.by_fraction(load("digits"), key="an example")
>>> split.sensitive.shape
(8, 8)
"""

from stillroom.data.dataset import Dataset
from stillroom.data.readers import digits, read_csv, read_idx, read_npz
from stillroom.data.split import Split, shards
from stillroom.data.store import load

__all__ = ["Dataset", "Split", "digits", "load", "read_csv", "read_idx", "read_npz", "shards"]
