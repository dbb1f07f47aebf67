"""stillroom: models trained on sensitive data, made fit to be given away.

The public names are loaded when first used, so that `stillroom --help` stays quick.

onnxruntime reports its use to its makers unless it is told not to; importing this tells it.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stillroom.gate import Budget, Gate, Ledger
    from stillroom.planning import plan

__all__ = ["Budget", "Gate", "Ledger", "plan"]
__version__ = "0.1.0"

# Read once, when onnxruntime is loaded; whoever has set it before has decided.
if not os.environ.get("ORT_DISABLE_TELEMETRY"):
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    if "onnxruntime" in sys.modules:
        warnings.warn(
            "onnxruntime was imported before stillroom; it may report its use to its makers, and "
            "that cannot be stopped in this process: set ORT_DISABLE_TELEMETRY=1, or import "
            "stillroom first",
            stacklevel=2,
        )


def __getattr__(name: str) -> Any:
    if name in __all__:
        room = "planning" if name == "plan" else "gate"
        return getattr(import_module(f"stillroom.{room}"), name)
    raise AttributeError(f"module 'stillroom' has no attribute {name!r}")
