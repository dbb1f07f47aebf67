"""Every mechanism passes every check; every broken twin of it fails the check made for it."""

from __future__ import annotations

import pytest

from privacy.cases import CASES
from privacy.conformance import CHECKS
from privacy.twins import TWINS
from stillroom.gate import Mechanism


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_mechanism_conforms(name, check, tmp_path):
    check(CASES[name](), tmp_path)


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("name", CASES)
def test_broken_twin_is_caught(name, twin, tmp_path):
    breaks, check = TWINS[twin]
    with pytest.raises(AssertionError):
        check(breaks(CASES[name]()), tmp_path)


def test_no_mechanism_is_forgotten():
    def leaves(cls):
        return (
            {cls} if not cls.__subclasses__() else set().union(*map(leaves, cls.__subclasses__()))
        )

    concrete = {cls.name for cls in leaves(Mechanism) if cls.__module__.startswith("stillroom.")}
    assert concrete <= set(CASES)
