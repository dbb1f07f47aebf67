"""The ledger: append-only, hash-chained, on disk; reserve -> draw -> commit."""

from stillroom.gate.ledger.budget import Spent
from stillroom.gate.ledger.creation import Purpose
from stillroom.gate.ledger.ledger import Ledger
from stillroom.gate.ledger.store import Head
from stillroom.gate.ledger.verify import export, reprice, verify

__all__ = ["Head", "Ledger", "Purpose", "Spent", "export", "reprice", "verify"]
