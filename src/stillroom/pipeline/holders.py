"""Who holds the sensitive records of a recipe: one party, or many entities that pool nothing."""

from __future__ import annotations

from typing import Any

from stillroom.private.entities import dealt
from stillroom.recipe import Recipe
from stillroom.recipe.entities import EntitiesSection
from stillroom.release.record import PARTY as PARTY
from stillroom.vocabulary import Sealed


def holder_names(recipe: Recipe) -> list[str]:
    """Their names on the certificate, known before any record is."""
    section: EntitiesSection | None = recipe.section("entities")
    return [PARTY] if section is None else section.names


def own_epsilon(recipe: Recipe, name: str) -> float:
    """The most that a release may cost a holder: entities may have budgets of their own."""
    section: EntitiesSection | None = recipe.section("entities")
    usual = recipe.privacy.epsilon
    return usual if section is None else section.epsilon_of(name, usual)


def holders(recipe: Recipe, sensitive: Sealed[Any]) -> dict[str, Sealed[Any]]:
    """The sensitive records of each, sealed."""
    section: EntitiesSection | None = recipe.section("entities")
    if section is None:
        return {PARTY: sensitive}
    parts = dealt(sensitive, section.dealing, recipe.data.key)
    return dict(zip(section.names, parts, strict=True))
