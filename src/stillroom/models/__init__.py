"""Networks: a small zoo, models of one's own, and whether they fit the data."""

from stillroom.models.build import build
from stillroom.models.fit import check_fits, parameter_count
from stillroom.models.pictures import AsPictures
from stillroom.models.zoo import ZOO

__all__ = ["ZOO", "AsPictures", "build", "check_fits", "parameter_count"]
