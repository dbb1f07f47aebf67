"""Certificates that are no certificates, every hash of their bundle fitted to them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hostile.harness import Case
from hostile.making import Document, certificate, forged, with_files
from stillroom.gate import (
    GaussianShare,
    GaussianSum,
    LaplaceCounts,
    Mechanism,
    NoisyVotes,
    RandomisedResponse,
    ResponseShare,
    TruncatedGeometric,
    UnaryEncoding,
)
from stillroom.gate.accounting import fold
from stillroom.gate.events import lines_to_json
from stillroom.release.data_set import events_of
from stillroom.release.files import to_bytes
from stillroom.vocabulary import Unit

RECORDS = Unit.RECORD
DATA_SET = ("parties", 0, "data_set")

ENDLESS = "1e999999999"
DIGITS = "9" * 100_000


def _case(name: str, change, says: str = "certificate.json") -> Case:
    return Case(name, forged(change), 4, says)


def _wish(**changes: Any):
    def change(document: Document) -> None:
        document["parties"][0]["blocks"][0]["wishes"][0]["mechanism"].update(changes)

    return change


def _counts(**changes: Any):
    def change(document: Document) -> None:
        document["parties"][0]["blocks"][0]["wishes"][0].update(changes)

    return change


def _event(**changes: Any):
    def change(document: Document) -> None:
        for line in (
            document["parties"][0]["events"][0],
            document["parties"][0]["data_set"]["events"][0],
        ):
            line.update(changes)

    return change


def _model(**changes: Any):
    def change(document: Document) -> None:
        document["artefacts"][0].update(changes)

    return change


def _many_events(document: Document) -> None:
    line = document["parties"][0]["data_set"]["events"][0]
    document["parties"][0]["data_set"]["events"] = [
        {**line, "sigma_squared": str(1600 + place)} for place in range(3000)
    ]


def _many_wishes(document: Document) -> None:
    document["parties"][0]["blocks"][0]["wishes"] *= 5000


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _set(path: tuple[str | int, ...], value: Any):
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def _drawn(mechanism: Mechanism, count: int):
    """All of it fits together but the prices, which have to be computed to find that out."""

    def change(document: Document) -> None:
        block = document["parties"][0]["blocks"][0]
        wish = {
            "name": "wish 1",
            "mechanism": mechanism.describe(),
            "reserved": count,
            "drawn": 0,
            "lost": 0,
        }
        block["wishes"][0] = wish
        for name in ("reserved", "drawn", "lost"):
            block[name] = sum(own[name] for own in block["wishes"])
        lines = fold(events_of(block))
        document["parties"][0]["events"] = document["parties"][0]["data_set"]["events"] = (
            lines_to_json(lines)
        )

    return change


def _summed(rate: Fraction, multiplier: Fraction) -> GaussianSum:
    """Noise of `multiplier` times the largest norm, on a fine grid."""
    return GaussianSum(multiplier * 10**6, 5, 10**12, rate)


TINY = Fraction(1, 2**190)
PRICES = [
    *(
        _case(f"{count:.0e} votes", _drawn(NoisyVotes(5, 3, 2000), count), "cost")
        for count in (10**6, 10**7, 10**9, 10**12, 2**62)
    ),
    *(
        _case(
            f"{count:.0e} sums of a sample of 1e-6",
            _drawn(_summed(rate, Fraction(3)), count),
            "cost",
        )
        for rate in (Fraction(1, 10**6),)
        for count in (10**6, 10**9, 10**12)
    ),
    _case("a sample of next to nothing", _drawn(_summed(TINY, Fraction(1, 10)), 1), "cost"),
    _case("many of them", _drawn(_summed(TINY, Fraction(1, 10)), 10**6), "cost"),
    _case("more of them", _drawn(_summed(TINY, Fraction(1, 3)), 10**12), "cost"),
    _case("next to no noise", _drawn(NoisyVotes(5, 3, Fraction(1, 10**50)), 10), "cost"),
    _case("a count that moves by 1e15", _drawn(LaplaceCounts(2**49, 1, 2**49), 10), "cost"),
    _case("1e9 counts", _drawn(LaplaceCounts(10**9, 3, 1), 10**9), "cost"),
    _case("2^62 coordinates", _drawn(GaussianSum(2**50, 2**62, 2**90), 10), "cost"),
    _case("2^60 classes", _drawn(RandomisedResponse(2**60, Fraction(1, 2), RECORDS), 10), "cost"),
    _case(
        "1e9 answers", _drawn(RandomisedResponse(2, Fraction(501, 1000), RECORDS), 10**9), "cost"
    ),
    *(
        _case(f"{count:.0e} {mechanism.name}", _drawn(mechanism, count), says)
        for mechanism, says in (
            (TruncatedGeometric(10_000, 2**30, RECORDS), "cost"),
            (UnaryEncoding(10_000, Fraction(1, 3), RECORDS), "cost"),
            # Priced as well, and then what holds without the secure sum is missing.
            (GaussianShare(10**6, 0, 0, 10_000, 2, unit=RECORDS), "broken_sum"),
            (ResponseShare(10**6, 0, 0, 2, Fraction(501, 1000), RECORDS), "broken_sum"),
        )
        for count in (1, 5000, 10**9)
    ),
    _case("bits without noise", _drawn(UnaryEncoding(2, TINY, RECORDS), 10), "cost"),
    _case(
        "a sum of truths", _drawn(ResponseShare(9, 0, 0, 3, 1 - TINY, RECORDS), 10), "broken_sum"
    ),
    _case(
        "a weight of 2^31", _drawn(GaussianShare(9, 0, 0, 3, 2, 2**31, RECORDS), 10), "broken_sum"
    ),
]

NUMBERS = [
    *(_case(f"sigma {text[:12]}", _wish(sigma=text)) for text in (ENDLESS, DIGITS, "1/0", "-4")),
    _case("sigma of a long fraction", _wish(sigma=f"{DIGITS}/{DIGITS}1")),
    _case("sigma below everything", _wish(sigma="1e-999999999")),
    _case("sigma as a list", _wish(sigma=[1])),
    _case("sigma as nothing", _wish(sigma=None)),
    _case("rate 1e-999999999", _wish(rate="1e-999999999")),
    _case("rate that is an object", _wish(rate={"a": 1})),
    _case("width of 2^100", _wish(width=2**100)),
    _case("width of a truth value", _wish(width=True)),
    _case("squared norm of 120 digits", _wish(squared_norm=10**119)),
    _case("a mechanism that is a list", _wish(mechanism=["gaussian-sum"])),
    _case("an unknown mechanism", _wish(mechanism="trust-me")),
    _case("1e12 reserved", _counts(reserved=10**12)),
    _case("10^30 reserved", _counts(reserved=10**30)),
    _case("less than nothing reserved", _counts(reserved=-1)),
    _case("half an answer drawn", _counts(drawn=0.5)),
    _case("an event of endless variance", _event(sigma_squared=ENDLESS)),
    _case("an event of 1e5 digits", _event(sigma_squared=DIGITS)),
    _case("an event of endless sensitivity", _event(sensitivity={"record/add-or-remove": ENDLESS})),
    _case("an event counted 1e12 times", _event(count=10**12)),
    _case("an event with 2^90 coordinates", _event(coordinates=2**90)),
    _case("an event of unknown kind", _event(kind="free")),
    _case("an event whose kind is a list", _event(kind=[])),
    _case("an event of no sensitivity", _event(sensitivity=None)),
    _case("3000 different events", _many_events),
    _case("10000 wishes", _many_wishes),
    _case("a count of 120 digits", _set((*DATA_SET, "blocks"), 10**119)),
    _case("an epsilon of 120 digits", _set(("parties", 0, "guarantees", 0, "epsilon"), 10**119)),
    _case("a delta below everything", _set(("delta",), 1e-300)),
    _case("a budget of no epsilon", _set((*DATA_SET, "budgets", 0, "epsilon"), -1)),
    _case(
        "a head of many digits",
        _set((*DATA_SET, "head"), "9" * 5000 + ":" + "0" * 64),
    ),
    _case("counts of 120 digits", _set(("sections", "evaluation", "confusion", 0, 0), 10**119)),
]

FIELDS = (
    *("format", "version", "status", "purpose", "method", "mode", "unit", "delta", "asked"),
    *("headline", "parties", "artefacts", "recipe", "sections", "assumptions", "tuning"),
    *("public_knowledge", "facts", "unprotected", "warnings", "versions"),
)
PARTY = ("name", "noise", "headline", "guarantees", "unproven", "events", "blocks", "data_set")
PLACES: dict[str, tuple[str | int, ...]] = {
    **{name: (name,) for name in FIELDS},
    **{f"the party's {name}": ("parties", 0, name) for name in PARTY},
    **{f"section {name}": ("sections", name) for name in ("published", "evaluation", "controls")},
}
TYPES = [
    *(_case(f"{name} is nothing", _set(path, None)) for name, path in PLACES.items()),
    *(_case(f"{name} is a number", _set(path, 7)) for name, path in PLACES.items()),
    _case("samples is a number", _set(("sections", "samples"), 7)),
    _case("an unknown section is text", _set(("sections", "audit"), "trust me")),
    _case("a section of a package without a version", _set(("sections", "other:votes"), {})),
    _case("a section without a name", _set(("sections", ""), {})),
    _case("parties of nothing", _set(("parties",), [None])),
    _case("no party", _set(("parties",), [])),
    _case("artefacts of nothing", _set(("artefacts",), [None])),
    _case("a method of text", _set(("method",), "direct")),
    _case("a wish without a name", _set(("parties", 0, "blocks", 0, "wishes", 0, "name"), None)),
    _case("compression is a number", _set(("sections", "compression"), 7)),
    _case(
        "blocks of nothing",
        _set(
            (
                "parties",
                0,
                "blocks",
            ),
            [None],
        ),
    ),
    _case(
        "no block",
        _set(
            (
                "parties",
                0,
                "blocks",
            ),
            [],
        ),
    ),
    _case("a block without wishes", _set(("parties", 0, "blocks", 0, "wishes"), [])),
    _case("wishes of nothing", _set(("parties", 0, "blocks", 0, "wishes"), None)),
    _case("a day that is none", _set(("parties", 0, "blocks", 0, "day"), "yesterday")),
    _case("a hash of no hex", _set(("parties", 0, "blocks", 0, "hash"), "x" * 64)),
    _case("a ledger that is a number", _set((*DATA_SET, "ledger"), 7)),
    _case("a head that is a number", _set((*DATA_SET, "head"), 7)),
    _case("budgets of nothing", _set((*DATA_SET, "budgets"), [None])),
    _case("totals of text", _set((*DATA_SET, "totals"), ["a"])),
    _case("a table of text", _set(("sections", "evaluation", "confusion"), "abc")),
    _case("an assumption of a number", _set(("assumptions", "noise"), 7)),
    _case("a fact that is a list", _set(("facts", "learnt"), [])),
    _case("a control that is text", _set(("sections", "controls"), {"models": ["a"]})),
    _case("model.shape is nothing", _model(shape=None)),
    _case("model.shape is text", _model(shape="12")),
    _case("model.shape of 2^70", _model(shape=[2**70])),
    _case("model.classes is nothing", _model(classes=None)),
    _case("model.classes of numbers", _model(classes=[1, 2, 3])),
    _case("model.columns is nothing", _model(columns=None)),
    _case("model.columns of numbers", _model(columns=[1])),
    _case("model.files is nothing", _model(files=None)),
]


def _text(document: Document, old: str, new: str) -> bytes:
    text = to_bytes(document).decode()
    assert old in text
    return text.replace(old, new, 1).encode()


def _written(name: str, content: bytes | None = None, made=None) -> Case:
    def build(folder):
        found = made(certificate()) if content is None else content
        return with_files(certificate_json=found)(folder)

    return Case(name, build, 4, "certificate.json")


FILES = [
    _written("empty", b""),
    _written("no JSON", b"\x00\xff garbage"),
    _written("a list", b"[1, 2, 3]"),
    _written("another text encoding", "{}".encode("utf-16")),
    _written("nested 100000 deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    _written("nested 500 deep", b'{"a":' * 500 + b"1" + b"}" * 500),
    _written("lists nested 900 deep", b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"),
    _written("3 million values", b'{"a":[' + b"0," * 3_000_000 + b"0]}"),
    _written("3 million lists", b'{"a":[' + b"[]," * 3_000_000 + b"0]}"),
    _written("17 MB of one text", b'{"a":"' + b"a" * (17 << 20) + b'"}'),
    _written(
        "a number of 5000 digits",
        made=lambda d: _text(d, '"delta": 1e-05', f'"delta": {"9" * 5000}'),
    ),
    _written("NaN", made=lambda d: _text(d, '"delta": 1e-05', '"delta": NaN')),
    _written("1e999", made=lambda d: _text(d, '"delta": 1e-05', '"delta": 1e999')),
    _written(
        "a key twice", made=lambda d: _text(d, '"delta": 1e-05', '"delta": 1e-05, "delta": 1')
    ),
    _written(
        "half a surrogate", made=lambda d: _text(d, '"mode": "certified"', '"mode": "\\ud800"')
    ),
    _written("an escape", made=lambda d: _text(d, '"mode": "certified"', '"mode": "\\u001b[2J"')),
    _case("nested 40 deep within a fact", _set(("facts", "learnt"), _nested(40))),
]

CASES = [*PRICES, *NUMBERS, *TYPES, *FILES]
