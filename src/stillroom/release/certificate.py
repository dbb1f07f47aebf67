"""The certificate: what was drawn, what that costs whom, and what the figure rests on.

Schema version 6: a core that every release has, and named sections, one file each in sections/.
Some of it only the releaser can know: what a ledger recorded, what a test counted, how long a model
took. Everything else follows from that and from the bundle's own files, by `completed`, which
writer and verifier share: the verifier builds the whole document again and compares.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

import stillroom
from stillroom.gate.ledger import Purpose
from stillroom.release import parties, sections
from stillroom.release.artefacts import artefacts_in
from stillroom.release.figures import Figures
from stillroom.release.files import CERTIFICATE, RECIPE, digest, sha256
from stillroom.release.record import MODES, TUNING, ReleaseRecord, check_assumptions, unfit
from stillroom.release.sections.base import Core
from stillroom.vocabulary import CHANGED_RECORD, Pair, Unit, check_delta

FORMAT = "stillroom certificate"
VERSION = 6
_PARTS = (
    *("dp-accounting", "numpy", "scipy", "numba", "torch", "opacus"),
    *("onnx", "onnxruntime", "safetensors"),
)


def certify(record: ReleaseRecord, contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The certificate of a release, from what its ledgers really recorded.

    Guarantee: each epsilon is the price of every event of the release's blocks, lost ones included.
    Assumes: the blocks of the parties are all the blocks the artefacts have seen answers of.

    Args:
        record: the release.
        contents: the artefacts' files and the recipe, by file name.

    Raises:
        BadInput: a control may not stand on it, or the compression is that of another model.
        DoesNotVerify: an assumption failed, a draw has no block, or more was drawn than reserved.
    """
    stated = {
        "method": {"name": record.method, "package": record.package},
        "mode": record.mode,
        "purpose": str(record.parties[0].ledger.purpose),
        "unit": str(record.unit),
        "delta": record.delta,
        "asked": record.asked,
        "tuning": record.tuning,
        "parties": [parties.stated(party, record.unproven) for party in record.parties],
        "assumptions": dict(record.assumptions),
        "public_knowledge": list(record.public_knowledge),
        "sections": sections.stated(record.sections),
        "facts": dict(record.facts),
        "warnings": list(record.warnings),
        "versions": {**record.versions, **versions()},
    }
    return completed(stated, contents)


def completed(
    stated: Mapping[str, Any],
    contents: Mapping[str, bytes],
    figures: Callable[[Mapping[str, Any]], Figures] = lambda party: Figures(),
) -> dict[str, Any]:
    """The whole certificate that follows from what the releaser states.

    Args:
        stated: at least the fields that only the releaser can know; others are not looked at.
        contents: the artefacts' files and the recipe, by file name.
        figures: how prices of a party are found; the verifier's agree with another processor's.

    Raises:
        BadInput: something stated makes no sense.
        DoesNotVerify: an assumption failed, or what is stated contradicts itself.
        KeyError, TypeError, ValueError: a field is missing or malformed.
    """
    _check_words(stated)
    delta, pair = check_delta(stated["delta"]), Pair.of(Unit(stated["unit"]))
    told = [parties.completed(party, pair, delta, figures(party)) for party in stated["parties"]]
    parties.check_names(told)
    core = Core(stated["purpose"], parties.blocks_of({"parties": told}), artefacts_in(contents))
    sections.complete(stated["sections"], core)
    changed = any(str(CHANGED_RECORD) in party["unproven"] for party in told)
    method = stated["method"]
    certificate = {
        "format": FORMAT,
        "version": VERSION,
        "status": "valid" if {party["noise"] for party in told} == {"os"} else "void",
        "method": {
            "name": method["name"],
            "package": method["package"],
            "version": stated["versions"][method["package"]],
        },
        "unit": str(pair.unit),
        "delta": delta,
        "headline": parties.worst(told),
        "parties": told,
        "artefacts": core.artefacts,
        "recipe": sha256(contents[RECIPE]),
        "sections": core.sections,
        "unprotected": [*([_CHANGE] if changed else []), *sections.unprotected(core)],
        **{name: stated[name] for name in _AS_STATED},
    }
    return {**certificate, "digest": digest(certificate)}


_AS_STATED = (
    *("purpose", "mode", "asked", "tuning", "assumptions", "public_knowledge", "warnings"),
    *("facts", "versions"),
)
_CHANGE = (
    "a change of a record's content or class, which may give it another id or move it to another "
    "part"
)


def _check_words(stated: Mapping[str, Any]) -> None:
    """Every word is one of its kind, and the assumptions say how they stand."""
    asked, made_with = stated["asked"], stated["versions"]
    if stated["mode"] not in MODES or stated["tuning"] not in TUNING:
        raise ValueError("an unknown mode or tuning")
    Purpose(stated["purpose"])
    if not (asked is None or (type(asked) is float and 0 < asked < math.inf)):
        raise ValueError("what was asked for is no epsilon")
    if not stated["assumptions"]:
        raise ValueError("a figure that rests on nothing")
    check_assumptions(stated["assumptions"], CERTIFICATE)
    lists = (stated["public_knowledge"], stated["warnings"], [stated["method"]["name"]])
    if not all(isinstance(texts, list) for texts in lists):
        raise ValueError("not a list")
    if not all(isinstance(text, str) and text for texts in lists for text in texts):
        raise ValueError("a sentence is missing")
    if not all(type(value) in (bool, int, float, str) for value in stated["facts"].values()):
        raise ValueError("a fact is no plain value")
    if not all(isinstance(value, str) and value for value in made_with.values()):
        raise ValueError("a version is no text")
    others = {name.rpartition(":")[0] for name in stated["sections"]} - {""}
    if not {"stillroom", "dp-accounting", stated["method"]["package"], *others} <= set(made_with):
        raise unfit("a package has no version", "name the version of each package that is used")


@cache
def versions() -> Mapping[str, str]:
    """What this is, and what it works with here."""
    found = {"stillroom": stillroom.__version__, "python": platform.python_version()}
    for part in _PARTS:
        try:
            found[part] = version(part)
        except PackageNotFoundError:
            continue
    return MappingProxyType(found)
