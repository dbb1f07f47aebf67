"""The split, its teachers, a ledger, and hints with their bound."""

from __future__ import annotations

import numpy as np
import pytest

from methods.rona_ensemble.ensembles import (
    DELTA,
    EPSILON,
    HINTED,
    SERIAL,
    TEACHERS,
)
from stillroom.data import Split, digits
from stillroom.data.public import PublicPictures
from stillroom.gate import Budget, Ledger
from stillroom.methods.rona.bound import public_bound
from stillroom.private import Ensemble, Hints


@pytest.fixture(scope="module")
def split():
    return Split.by_fraction(digits(), key="rona", public="1/4", test=0)


@pytest.fixture(scope="module")
def ensemble(split):
    return Ensemble.train(split.sensitive, None, TEACHERS, engine=SERIAL)


@pytest.fixture
def x(split):
    return split.public.x[:60]


@pytest.fixture
def ledger(split, tmp_path):
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=split.sensitive.ids, purpose="benchmark")
    ledger.set_budget(Budget(EPSILON, DELTA), reason="a test")
    return ledger


@pytest.fixture(scope="module")
def hinted(split, ensemble):
    """An auxiliary teacher that knows few records, its hints, and the bound from stand-ins."""
    public = split.public
    rows = np.hstack([public.x.reshape(len(public), -1) / 16.0, np.ones((len(public), 1))])
    few = rows[:80]
    targets = np.eye(10)[public.y[:80]]
    aux = np.linalg.solve(few.T @ few + 0.1 * np.eye(few.shape[1]), few.T @ targets)
    values = rows @ aux
    hints = Hints(public.x[80:300], values[80:300])
    x, centre = public.x[300:340], values[300:340]
    vouched = PublicPictures(public.x, "a quarter of the digits")
    bound = public_bound(HINTED, vouched, public.y, x, centre, hints, engine=SERIAL)
    return x, centre, hints, bound
