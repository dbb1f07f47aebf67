"""The parties of a secure argmax tell nobody, listen on loopback only, and leave no file."""

from __future__ import annotations

import sys

from quiet.watching import watched

SESSION = """
import threading
from pathlib import Path
from federation.sharing import planned, shared, tied_rows
from stillroom.federation.secure_argmax import secure_argmax

plan = planned(queries=50, classes=10, weight=2)
session = threading.Thread(target=secure_argmax, args=(plan, shared(plan, tied_rows(plan))))
session.start()
listening = set()
while session.is_alive():
    for table in ("tcp", "tcp6"):
        for row in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, place, _, state, *_ = row.split()
            if state == "0A":
                listening.add(place.partition(":")[0])
    session.join(0.005)
print("listening", sorted(listening))
"""


def test_a_session_is_quiet(tmp_path):
    seen = watched(tmp_path, sys.executable, "-c", SESSION)
    assert seen.code == 0, seen.printed
    assert seen.sent == []
    assert seen.written == set()
    assert "listening ['0100007F']" in seen.printed
