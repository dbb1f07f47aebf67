"""Weights as numbers: the grid they are generated on, latents of them, how many a network has."""

from stillroom.parameters.grid import ParameterGrid
from stillroom.parameters.latent_map import Directions, GroupedWeights, KeptWeights, LatentMap

__all__ = ["Directions", "GroupedWeights", "KeptWeights", "LatentMap", "ParameterGrid"]
