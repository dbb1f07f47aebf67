"""Whatever a stranger writes into a document, it is accepted or refused, and nothing else happens.

Certificates and exports are changed anywhere in any way that JSON can say, their hashes fitted; the
headers of .npy files are put together from all that numpy looks at. 200 of each with every run of
the tests, thousands with the slow ones.
"""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile.inputs import header
from hostile.making import certificate, chained, honest, honest_export
from methods.forging import at, forge, paths
from stillroom.errors import StillroomError
from stillroom.gate.ledger.verify import check
from stillroom.pipeline.verify import verify
from stillroom.release.asked import batches
from stillroom.release.predict import Described

QUICK = 200
SLOW = pytest.mark.slow

NUMBERS = st.one_of(
    st.sampled_from(
        [
            *("1e999999999", "1e-999999999", "9" * 5000, "1/0", "0/1", "-1", "1/3", "2", "nan"),
            *("1e400", "1e-60", "1e17", "72057594037927936", "4.0000000000000000000000000001"),
            *(0, -1, 1, 2, 3, 2**62, 2**63, 10**12, 10**119, True, 0.5, 1e308, -1e308, 5e-324),
        ]
    ),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.fractions(max_denominator=10**6).map(str),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["", "record/change", "person/add-or-remove", "unit-steps", "l2-squared", "os"]
    ),
    st.sampled_from(
        ["discrete-gaussian", "discrete-laplace", "randomised-response", "non-private"]
    ),
    st.sampled_from(
        ["noisy-votes", "laplace-counts", "gaussian-answers", "unprotected", "\x1b[2K"]
    ),
    st.text(max_size=8),
)
LEAVES = st.one_of(st.none(), NUMBERS, TEXTS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


def changed(draw: st.DrawFn, document: Any) -> Any:
    """The document with one to three fields put to anything, left out or doubled."""
    for _ in range(draw(st.integers(1, 3))):
        places = list(paths(document))
        if not places:
            return document
        *above, last = draw(st.sampled_from(places))
        inside = at(document, tuple(above))
        how = draw(
            st.sampled_from(["a leaf", "a leaf", "a leaf", "anything", "left out", "doubled"])
        )
        if how == "left out":
            inside.pop(last)
        elif how == "doubled" and isinstance(inside, list):
            inside.insert(last, copy.deepcopy(inside[last]))
        else:
            inside[last] = draw(VALUES if how == "anything" else LEAVES)
    return document


@st.composite
def certificates(draw: st.DrawFn) -> dict[str, Any]:
    return changed(draw, certificate())


@st.composite
def exports(draw: st.DrawFn) -> dict[str, Any]:
    return changed(draw, honest_export())


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    size = st.one_of(st.integers(-2, 20), st.sampled_from([2**31, 2**62, 2**64, 10**30, True, "a"]))
    kinds = ["<f4", ">f8", "<i2", "|b1", "|O", "<U3", "|V0", "<c16", "f4,i2", "", "?", "<f16", "[]"]
    shape = draw(
        st.lists(size, max_size=4).map(tuple).map(repr) | st.text("()[]-+1, ", max_size=40)
    )
    text = draw(
        st.one_of(
            st.builds(
                "{{'descr': {!r}, 'fortran_order': {}, 'shape': {}}}\n".format,
                st.sampled_from(kinds),
                st.sampled_from(["True", "False", "None", "2"]),
                st.just(shape),
            ),
            st.text("{}()[]'\",:-+*~ not lambda01e\n", max_size=200),
            st.sampled_from(["(", "-", "[", "~", "not "]).map(lambda mark: mark * 3000),
        )
    )
    length = draw(st.none() | st.sampled_from([0, 1, 10, 65535]))
    content = header(text, draw(st.integers(1, 3)), length, draw(st.binary(max_size=200)))
    return content[: draw(st.sampled_from([len(content), 3, 6, 8, 10, 40]))]


def ends(act: Any) -> None:
    """It is accepted, or refused as bad input or as not verifying."""
    refused = None
    try:
        act()
    except StillroomError as error:
        refused = error
    assert refused is None or refused.exit_code in (2, 4)
    assert refused is None or refused.remedy


def of(examples: int) -> settings:
    few = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, suppress_health_check=few)


def any_certificate(folder: Path) -> Any:
    shutil.copytree(honest() / "bundle", folder / "bundle")

    def hold(document: dict[str, Any]) -> None:
        forge(folder / "bundle", document, None)
        ends(lambda: verify(folder / "bundle"))

    return hold


def any_export(folder: Path) -> Any:
    def hold(document: dict[str, Any]) -> None:
        rows = isinstance(document.get("rows"), list)
        text = json.dumps(chained(document) if rows else document)
        (folder / "export.json").write_text(text)
        ends(lambda: check(folder / "export.json"))

    return hold


def any_header(folder: Path) -> Any:
    model = Described((3,), ("a", "b"), None)

    def hold(content: bytes) -> None:
        (folder / "x.npy").write_bytes(content)
        ends(lambda: [np.isfinite(x) for _, x in batches(str(folder / "x.npy"), model, 9)])

    return hold


@pytest.mark.parametrize("examples", [QUICK, pytest.param(5000, marks=SLOW)])
def test_any_certificate_ends(examples: int, tmp_path: Path) -> None:
    of(examples)(given(certificates())(any_certificate(tmp_path)))()


@pytest.mark.parametrize("examples", [QUICK, pytest.param(5000, marks=SLOW)])
def test_any_export_ends(examples: int, tmp_path: Path) -> None:
    of(examples)(given(exports())(any_export(tmp_path)))()


@pytest.mark.parametrize("examples", [QUICK, pytest.param(20_000, marks=SLOW)])
def test_any_header_of_numbers_ends(examples: int, tmp_path: Path) -> None:
    of(examples)(given(headers())(any_header(tmp_path)))()
