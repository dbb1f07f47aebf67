"""Where samples come from: built-in digits, files, splits (public, sensitive, test), hash shards.

>>> from stillroom.data import Split, load
>>> split = Split.by_fraction(load("digits"), key="an example")
>>> split.sensitive.shape
(8, 8)
"""

from stillroom.data.cifar import read_cifar
from stillroom.data.dataset import Dataset
from stillroom.data.folders import read_folder
from stillroom.data.parts import About, Parts
from stillroom.data.picture_form import PictureForm
from stillroom.data.pictures import read_images
from stillroom.data.public import PublicPictures
from stillroom.data.readers import digits, read_csv, read_idx, read_npz
from stillroom.data.split import Split, shards
from stillroom.data.store import load
from stillroom.data.svhn import read_svhn

__all__ = [
    "About",
    "Dataset",
    "Parts",
    "PictureForm",
    "PublicPictures",
    "Split",
    "digits",
    "load",
    "read_cifar",
    "read_csv",
    "read_folder",
    "read_idx",
    "read_images",
    "read_npz",
    "read_svhn",
    "shards",
]
