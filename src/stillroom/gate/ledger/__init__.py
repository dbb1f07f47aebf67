"""The ledger: append-only, hash-chained, on disk; reserve -> draw -> commit."""

from stillroom.gate.ledger.ledger import Ledger, Purpose, Spent
from stillroom.gate.ledger.store import Head
from stillroom.gate.ledger.verify import export, reprice, verify

__all__ = ["Head", "Ledger", "Purpose", "Spent", "export", "reprice", "verify"]
