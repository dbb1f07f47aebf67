"""The public room: post-processing only; it sees public data and what came through the gate."""

from stillroom.public.descent import Descent

__all__ = ["Descent"]
