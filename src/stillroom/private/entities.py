"""Sensitive records dealt to entities, each of which is sealed by itself."""

from __future__ import annotations

from stillroom.data import Dataset
from stillroom.data.dealing import Dealing
from stillroom.private.sealed import Records, opened
from stillroom.vocabulary import Sealed


def dealt(records: Records, dealing: Dealing, key: str) -> list[Sealed[Dataset]]:
    """The records of each entity, sealed.

    Guarantee: one record more or less, or one person where persons are known, is in one entity's
    part and moves no other.

    Args:
        records: all of them.
        dealing: who holds what; public.
        key: a public key.
    """
    data = opened(records)
    return [Sealed(data.select(own)) for own in dealing.members(data, key)]
