"""A small release with a real ledger, for the tests of this room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stillroom.features import FEATURES
from stillroom.gate import Budget, Gate, GaussianSum, Ledger
from stillroom.gate.entropy import Entropy
from stillroom.release import Evaluation, Made
from stillroom.vocabulary import Bounded, Unit

IDS = ["a", "b", "c"]
RECIPE = 'method = "direct"\n'
SUM = GaussianSum(sigma=40, width=4, squared_norm=100)


def weights_for(features: str, shape: tuple[int, ...], classes: int) -> np.ndarray:
    width = FEATURES[features](np.zeros((1, *shape), np.float32)).shape[1]
    return np.random.default_rng(5).normal(size=(classes, width)).astype(np.float32)


def make(folder: Path, *, entropy: Entropy | None = None, steps: int = 3, **changes: Any) -> Made:
    """A release of three reserved sums, of which `steps` were drawn."""
    ledger = Ledger.create(folder / "ledger.sqlite", ids=IDS, purpose="audit")
    ledger.set_budget(Budget(epsilon=4, delta=1e-5), reason="tests <i>")
    gate = Gate(ledger, ids=IDS, entropy=entropy)
    passage = gate.reserve(SUM, 3, recipe=RECIPE, accept_infinite=True)
    for _ in range(steps):
        passage.release(Bounded(np.zeros((1, 4), np.int64), SUM.sensitivity))
    known: dict[str, Any] = {
        "method": "direct",
        "mode": "certified",
        "features": "pixels",
        "shape": (6, 6),
        "classes": ("<b>", "two", "three"),
        "recipe": RECIPE,
        "ledger": ledger,
        "blocks": (passage.block,),
        "unit": Unit.RECORD,
        "delta": 1e-5,
        "assumptions": {"clipping": "checked: norms compared in integers"},
        "tuning": "undeclared",
        "public_knowledge": ("the shape of the records",),
        "evaluation": Evaluation(0.925, ((9, 1, 0), (0, 8, 2), (1, 0, 9)), "30 records", False),
        **changes,
    }
    shape, classes = known["shape"], len(known["classes"])
    known.setdefault("weights", weights_for(known["features"], shape, classes))
    return Made(**known)
