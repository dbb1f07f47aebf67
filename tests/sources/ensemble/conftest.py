"""The split, its teachers, a ledger, and hints with their bound."""

from __future__ import annotations

import numpy as np
import pytest

from sources.ensemble.ensembles import DELTA, EPSILON, SERIAL, TEACHERS
from stillroom.data import Split, digits
from stillroom.data.public import PublicPictures
from stillroom.gate import Budget, Ledger
from stillroom.private import Ensemble, Hints
from stillroom.sources.hint_bound import public_bound


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
def hinted(split):
    """An auxiliary teacher that knows few records: queries, centre, and known records and hints."""
    public = split.public
    rows = np.hstack([public.x.reshape(len(public), -1) / 16.0, np.ones((len(public), 1))])
    few = rows[:80]
    targets = np.eye(10)[public.y[:80]]
    aux = np.linalg.solve(few.T @ few + 0.1 * np.eye(few.shape[1]), few.T @ targets)
    values = rows @ aux
    return public.x[300:340], values[300:340], public.x[80:300], values[80:300]


@pytest.fixture(scope="module")
def bound(split, hinted):
    """The clip, from stand-ins; the same that a source makes of the same public records."""
    x, centre, known, values = hinted
    vouched = PublicPictures(split.public.x, "a quarter of the digits")
    hints = Hints(known, values)
    return public_bound(TEACHERS, vouched, split.public.y, x, centre, hints, classes=10, steps=1024)
