"""Numbers and documents from files: bounded where they are read."""

from __future__ import annotations

import os
from fractions import Fraction

import pytest

from stillroom.documents import LARGEST, MOST_LEVELS, count, exact, file_content, json_object


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.5", Fraction(1, 2)),
        ("1e-5", Fraction(1, 10**5)),
        (" 3/4 ", Fraction(3, 4)),
        (".5", Fraction(1, 2)),
        (0.1, Fraction(1, 10)),
        (1e22, Fraction(10**22)),
        (-7, Fraction(-7)),
        (LARGEST - 1, Fraction(LARGEST - 1)),
        (str(LARGEST - 1), Fraction(LARGEST - 1)),
        (f"1/{LARGEST - 1}", Fraction(1, LARGEST - 1)),
    ],
)
def test_a_number_is_what_its_writer_meant(written, meant):
    assert exact(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        *("", "a", "1/0", "1/00", "0x10", "1_000", "--1", "1e", "nan", "inf", "1/2/3", "\u0661"),
        *("1e999999999", "1e-999999999", "9" * 122, "1/" + "9" * 122, "1e400", "1e-400"),
        *(LARGEST, -LARGEST, Fraction(1, LARGEST), float("inf"), float("nan"), True, None, [], {}),
    ],
)
def test_what_is_none_is_refused_at_once(written):
    with pytest.raises(ValueError, match="not a"):
        exact(written)


@pytest.mark.parametrize("value", [-1, 2**63, 1.0, True, "1", None])
def test_what_is_no_count_is_refused(value):
    with pytest.raises(ValueError, match="not a count"):
        count(value)


def test_depth_is_counted():
    def nested(levels):
        return b'{"a":' * levels + b"1" + b"}" * levels

    assert json_object(nested(MOST_LEVELS))
    for levels in (MOST_LEVELS + 1, 2000, 200_000):
        with pytest.raises(ValueError, match="deep"):
            json_object(nested(levels))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"1", b"[]", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": 1, "a": 1}', b"\xff"),
        *(b"{" * 9, b'{"a": ' + b"9" * 122 + b"}", b'{"a": [' + b"1," * 2_000_001 + b"1]}"),
    ],
    ids=lambda content: str(content[:12]),
)
def test_what_is_no_document_is_refused(content):
    with pytest.raises(ValueError, match=r"no|not|too|twice|Expecting|decode"):
        json_object(content)


def test_only_plain_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"12345")
    assert file_content(tmp_path / "long", 5) == b"12345"
    with pytest.raises(ValueError, match="longer"):
        file_content(tmp_path / "long", 4)
    for other in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ValueError, match="plain file"):
            file_content(other, 5)
    with pytest.raises(OSError, match="none"):
        file_content(tmp_path / "none", 5)
