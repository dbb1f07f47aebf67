"""Exports of ledgers that no ledger wrote, their chain of hashes fitted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from hostile.harness import Case
from hostile.making import Document, export_file, honest_export, sparse, spoilt_export

ENDLESS = "1e999999999"


def _case(name: str, change: Callable[[Document], object], says: str = "") -> Case:
    return Case(name, spoilt_export(change), 4, says)


def _first(document: Document, kind: str) -> dict[str, Any]:
    return next(row for row in document["rows"] if row["kind"] == kind)


def _body(kind: str, **changes: Any) -> Callable[[Document], object]:
    return lambda document: _first(document, kind)["body"].update(changes)


def _row(**changes: Any) -> Callable[[Document], object]:
    return lambda document: _first(document, "block").update(changes)


def _wish(**changes: Any) -> Callable[[Document], object]:
    return lambda document: _first(document, "block")["body"]["wishes"][0].update(changes)


def _event(**changes: Any) -> Callable[[Document], object]:
    return lambda document: _first(document, "block")["body"]["events"][0].update(changes)


def _deltas(document: Document) -> None:
    for by_delta in _first(document, "block")["body"]["epsilon"].values():
        figures = next(iter(by_delta.values()))
        by_delta.update({f"{place}e-7": figures for place in range(1, 500)})


def _hidden_draw(document: Document) -> None:
    """A draw of less than nothing makes room for one that nobody paid for."""
    draws = [row for row in document["rows"] if row["kind"] == "draw"]
    draws[0]["body"]["count"] = -5
    draws[1]["body"]["count"] = 6


def _long_events(document: Document) -> None:
    body = _first(document, "block")["body"]
    body["events"] = [
        {**body["events"][0], "sigma_squared": str(1600 + place)} for place in range(5000)
    ]


def _text(change: Callable[[str], str]) -> Callable[..., list[str]]:
    def build(folder):
        return export_file(change(json.dumps(honest_export())).encode())(folder)

    return build


NUMBERS = [
    _case("sigma without end", _wish(sigma=ENDLESS)),
    _case("sigma of 1e5 digits", _wish(sigma="9" * 100_000)),
    _case("sigma over nothing", _wish(sigma="1/0")),
    _case("rate without end", _wish(rate="1e-999999999")),
    _case("a wish counted 1e12 times", _wish(count=10**12)),
    _case("a wish counted -1 times", _wish(count=-1)),
    _case("a wish counted true times", _wish(count=True)),
    _case("an event without end", _event(sigma_squared=ENDLESS)),
    _case("an event of endless sensitivity", _event(sensitivity={"record/change": ENDLESS})),
    _case("an event counted 1e12 times", _event(count=10**12)),
    _case("an event counted -1 times", _event(count=-1)),
    _case("an event counted 1e119 times", _event(count=10**119)),
    _case("an event with 1e119 coordinates", _event(coordinates=10**119)),
    _case("5000 events", _long_events),
    _case("500 deltas", _deltas),
    _case("a draw of less than nothing", _hidden_draw),
    _case("a draw of nothing", _body("draw", count=0)),
    _case("a draw of half", _body("draw", count=0.5)),
    _case("a draw of a wish from the end", _body("draw", wish=-1)),
    _case("a draw of an unknown wish", _body("draw", wish=99)),
    _case("more answered than less than nothing", _body("commit", answered=-1)),
    _case("samples of less than nothing", _body("block", samples=-(10**30))),
    _case("a budget of 1e119", _body("budget", delta=10**119)),
    _case("a budget of text", _body("budget", epsilon="much")),
    _case("a budget for nobody", _body("budget", pair="nobody/never")),
    _case("a budget for a number", _body("budget", pair=7)),
]

TYPES = [
    _case("no row", lambda d: d.update(rows=[])),
    _case("rows of nothing", lambda d: d.update(rows=None)),
    _case("rows of text", lambda d: d.update(rows="rows")),
    _case("rows by name", lambda d: d.update(rows={"1": {}})),
    _case("a row of nothing", lambda d: d.update(rows=[None])),
    _case("a row of nothing more", lambda d: d["rows"].append(None)),
    _case("a row without a body", lambda d: d["rows"][0].pop("body")),
    _case("a row with something more", lambda d: d["rows"][0].update(note=1)),
    _case("no first row", lambda d: d["rows"].pop(0)),
    _case("a number of text", _row(seq="3")),
    _case("a number that is a truth value", lambda d: d["rows"][0].update(seq=True)),
    _case("a day of nothing", _row(at=None)),
    _case("a kind that is a list", _row(kind=["block"])),
    _case("a body that is a list", _row(body=[])),
    _case("a block that is text", _row(block="1")),
    _case("wishes of nothing", _body("block", wishes=None)),
    _case("wishes by name", _body("block", wishes={"a": 1})),
    _case("no wish", _body("block", wishes=[], events=[])),
    _case("events of nothing", _body("block", events=None)),
    _case("events of text", _body("block", events=["free"])),
    _case("an event of unknown kind", _event(kind="free")),
    _case("an event whose kind is a list", _event(kind=[])),
    _case("prices that are a list", _body("block", epsilon=[1])),
    _case("prices of text", _body("block", epsilon={"record/add-or-remove": {"1e-5": "low"}})),
    _case("prices at no delta", _body("block", epsilon={"record/add-or-remove": {"x": {}}})),
    _case("totals that are a number", _body("block", totals=7)),
    _case(
        "totals of text", _body("block", totals=[{"pairs": ["record/add-or-remove"], "curve": "x"}])
    ),
    _case(
        "totals of a short curve",
        _body("block", totals=[{"pairs": ["record/change"], "curve": []}]),
    ),
    _case("noise of nothing", _body("block", noise=None)),
    _case("a commit of a list", _body("commit", draw=[1])),
    _case("ids of nothing", lambda d: d["rows"][0]["body"].pop("ids")),
    _case("another format", lambda d: d.update(format=None)),
    _case("another version", lambda d: d.update(version=10**119)),
]

FILES = [
    Case("only a bracket", export_file(b"{"), 4),
    Case("an empty object", export_file(b"{}"), 4),
    Case("an empty file", export_file(b""), 4),
    Case("a list", export_file(b"[]"), 4),
    Case("other bytes", export_file(b"{\xff\xfe\x00"), 4),
    Case("100000 levels", export_file(b'{"rows":' + b"[" * 100_000), 4),
    Case("900 levels", export_file(b'{"rows":' + b"[" * 900 + b"]" * 900 + b"}"), 4),
    Case("100000 objects deep", export_file(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), 4),
    Case("4 million values", export_file(b'{"rows":[' + b"0," * 4_000_000 + b"0]}"), 4),
    Case("4 million objects", export_file(b'{"rows":[' + b"{}," * 4_000_000 + b"0]}"), 4),
    Case("not a number", _text(lambda t: t.replace('"version": 2', '"version": NaN')), 4),
    Case("5000 digits", _text(lambda t: t.replace('"version": 2', f'"version": {"9" * 5000}')), 4),
    Case("a key twice", _text(lambda t: t.replace("{", '{"rows": [], ', 1)), 4),
    Case(
        "10 GB",
        lambda f: sparse(f / "e", 10 << 30, b"{") or ["ledger", "verify", str(f / "e")],
        4,
    ),
    Case("a pipe", lambda f: os.mkfifo(f / "e") or ["ledger", "verify", str(f / "e")], 2),
    Case("a folder", lambda f: ["ledger", "verify", str(f)], 2),
    Case("nothing", lambda f: ["ledger", "verify", str(f / "none")], 2),
]

CASES = [*NUMBERS, *TYPES, *FILES]
