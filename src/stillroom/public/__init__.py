"""The public room: post-processing only; it sees public data and what came through the gate."""

from stillroom.public.descent import Descent
from stillroom.public.mixture import Mixture

__all__ = ["Descent", "Mixture"]
