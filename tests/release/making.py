"""A small release with a real ledger, and what a forger would do to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from drawing import drawn
from stillroom.features import FEATURES
from stillroom.gate import Budget, Gate, GaussianSum, Ledger, Mechanism
from stillroom.gate.entropy import Entropy
from stillroom.release import Evaluation, LinearModel, Party, ReleaseRecord, classifier_record
from stillroom.release.card import card_html
from stillroom.release.files import MANIFEST, digest, to_bytes
from stillroom.release.manifest import make_manifest
from stillroom.vocabulary import Bounded, Unit

IDS = ["a", "b", "c"]
RECIPE = 'method = "direct"\n'
SUM = GaussianSum(sigma=40, width=4, squared_norm=100)


def linear(
    features: str = "pixels", shape: tuple[int, ...] = (6, 6), classes: int = 3
) -> LinearModel:
    """A linear layer with the same weights each time."""
    width = FEATURES[features](np.zeros((1, *shape), np.float32)).shape[1]
    weights = np.random.default_rng(5).normal(size=(classes, width)).astype(np.float32)
    return LinearModel(weights, features, shape)


def make(
    folder: Path,
    *,
    entropy: Entropy | None = None,
    steps: int = 3,
    purpose: str = "audit",
    mechanism: Mechanism = SUM,
    ids: Sequence[str] = IDS,
    unit: Unit = Unit.RECORD,
    **changes: Any,
) -> ReleaseRecord:
    """A release of three reserved answers, sums by default, of which `steps` were drawn."""
    folder.mkdir(exist_ok=True)
    ledger = Ledger.create(folder / "ledger.sqlite", ids=ids, purpose=purpose, unit=unit)
    ledger.set_budget(Budget(4, 1e-5, ledger.promises.own), reason="tests <i>")
    gate = Gate(ledger, ids=ids, entropy=entropy)
    passage = gate.reserve(mechanism, 3, recipe=RECIPE, accept_infinite=True)
    nothing = np.zeros((1, mechanism.coordinates), np.int64)
    for _ in range(steps):
        drawn(passage, Bounded(nothing, mechanism.sensitivity))
    known: dict[str, Any] = {
        "method": "direct",
        "mode": "certified",
        "model": linear(),
        "classes": ("<b>", "two", "three"),
        "recipe": RECIPE,
        "parties": (Party("data", ledger, (passage.block,)),),
        "unit": unit,
        "delta": 1e-5,
        "assumptions": {"clipping": "checked: norms compared in integers"},
        "tuning": "undeclared",
        "public_knowledge": ("the shape of the records",),
        "evaluation": Evaluation(((9, 1, 0), (0, 8, 2), (1, 0, 9)), protected=False),
        **changes,
    }
    return classifier_record(**known)


def certificate_of(bundle: Path) -> dict[str, Any]:
    """The certificate in a bundle."""
    certificate: dict[str, Any] = json.loads((bundle / "certificate.json").read_text())
    return certificate


def forge(bundle: Path, certificate: dict[str, Any]) -> None:
    """Put a certificate into a bundle as a careful forger without a key would."""
    certificate["digest"] = digest(certificate)
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    with suppress(Exception):  # what makes no sense has no card
        (bundle / "card.html").write_text(card_html(certificate))
    remanifest(bundle)


def remanifest(bundle: Path) -> None:
    """Make the manifest fit the files as they are now."""
    files = [file for file in sorted(bundle.iterdir()) if file.name != MANIFEST]
    contents = {file.name: file.read_bytes() for file in files}
    (bundle / MANIFEST).write_bytes(to_bytes(make_manifest(contents, None)))
