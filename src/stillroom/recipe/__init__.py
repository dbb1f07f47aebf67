"""Recipes: one TOML file per run, checked when it is read, every default visible."""

from stillroom.recipe.base import Recipe, RecipeWithPublicPart
from stillroom.recipe.section import Exact, Section, Seed

__all__ = ["Exact", "Recipe", "RecipeWithPublicPart", "Section", "Seed"]
