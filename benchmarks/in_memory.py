"""A hundred runs of a small recipe in one process, beside releases of the same to disk.

An audit trains hundreds of models on parts of the data. Seconds per run and memory are measured
here; accuracy is not what this is about.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from measuring import append, compared, peak_mb, result_line
from stillroom.data import Split, digits
from stillroom.gate import Budget, Ledger
from stillroom.methods.registry import parse
from stillroom.pipeline.release import release
from stillroom.pipeline.run import run
from stillroom.randomness import uniforms
from stillroom.sources import Party

RUNS, RELEASES = 100, 10
BUDGET = Budget(epsilon=100, delta=1e-5)
RECIPE = """
purpose = "audit"
ledger = "{ledger}"
[data]
source = "digits"
test_is_public = true
declared_size = 720
[features]
name = "pixels"
full_scale = 16
[training]
steps = 20
rate = 1
[privacy]
epsilon = 2
"""


def megabytes() -> float:
    """What this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    """Measure, and append one line to the results."""
    whole = Split.by_fraction(digits(), "stillroom", public=0, test="1/5")
    recipe = parse(RECIPE.format(ledger="none"))
    seconds, held = [], []
    for number in range(RUNS):
        start = time.perf_counter()
        members = uniforms(number, "members", size=len(whole.sensitive)) < 0.5
        parts = whole.members(members).sealed(test_is_public=True)
        ledger = Ledger.in_memory(parts.sensitive, purpose="audit")
        ledger.set_budget(BUDGET, reason="one of many")
        finished = run(recipe, [Party("data", parts.sensitive, ledger)], parts.public, parts.test)
        finished.result.model.logits(np.array(whole.sensitive.x))
        ledger.close()
        seconds.append(time.perf_counter() - start)
        held.append(megabytes())
    with tempfile.TemporaryDirectory() as folder:
        taken = []
        for number in range(RELEASES):
            file = Path(folder) / f"recipe-{number}.toml"
            file.write_text(RECIPE.format(ledger=f"ledger-{number}.sqlite"))
            start = time.perf_counter()
            release(file, Path(folder) / f"out-{number}", budget=BUDGET)
            taken.append(time.perf_counter() - start)
    figures = compared(seconds, "release to disk", taken)
    own, to_disk = median(seconds), median(taken)
    print(f"in memory: {own:.3f} s per run ({seconds[0]:.2f} s the first), release {to_disk:.2f} s")
    print(f"held after 10 runs {held[9]:.0f} MB, after {RUNS} runs {held[-1]:.0f} MB")
    line = result_line(
        "in-memory",
        ["numpy", "dp-accounting"],
        dataset="digits",
        method="direct",
        source="trained",
        metric="seconds per run",
        ratio=to_disk / own,
        peak_mb=peak_mb(),
        **figures,
        megabytes_after_10=round(held[9]),
        megabytes_after_100=round(held[-1]),
    )
    append("in-memory", [line])


if __name__ == "__main__":
    main()
