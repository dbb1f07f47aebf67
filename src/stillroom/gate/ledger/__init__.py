"""The ledger: append-only, hash-chained, on disk; reserve -> draw -> commit."""

from stillroom.gate.ledger.budget import Spent
from stillroom.gate.ledger.chain import Head
from stillroom.gate.ledger.creation import Purpose
from stillroom.gate.ledger.exports import export
from stillroom.gate.ledger.ledger import Ledger
from stillroom.gate.ledger.verify import reprice, verify

__all__ = ["Head", "Ledger", "Purpose", "Spent", "export", "reprice", "verify"]
