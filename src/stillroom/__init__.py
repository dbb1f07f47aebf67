"""stillroom: models trained on sensitive data, made fit to be given away.

The public names are loaded when first used, so that `stillroom --help` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stillroom.gate import Budget, Gate, Ledger, plan

__all__ = ["Budget", "Gate", "Ledger", "plan"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("stillroom.gate"), name)
    raise AttributeError(f"module 'stillroom' has no attribute {name!r}")
