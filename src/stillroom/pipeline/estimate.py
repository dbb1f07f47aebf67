"""How long a release will take here: every phase of it, tried on made-up records.

Nothing of the real records is looked at, so nothing can be told of them; what is declared of them
is enough. A method says what its phases are made of; reading, pricing and writing are the same for
all.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from stillroom.data import Split
from stillroom.data.catalogue import KNOWN
from stillroom.data.dataset import class_names
from stillroom.data.loading import MODEL
from stillroom.data.store import load_parts
from stillroom.gate import Ledger
from stillroom.methods.registry import method_named
from stillroom.pipeline.holders import holder_names
from stillroom.pipeline.pricing import nominal_facts, price
from stillroom.recipe import Recipe
from stillroom.sources import Facts
from stillroom.sources.gate_trials import OnDisk
from stillroom.sources.phases import looking_at
from stillroom.sources.trials import (
    Given,
    Phase,
    Work,
    made_up_data,
    seconds_of,
    sensitive_records,
)

WRITES_PER_LEDGER = 12
"""Files that are on disk before a new ledger can be paid from."""
PRICINGS = 7
"""Prices that are compared until the least noise is found; a certificate states one of them."""
TRIED = 400
"""Made-up records that are read in a trial."""
PACKED = 0.3
"""Seconds for the files of a bundle, and until they are verified."""

WORTH_TRYING = 1 << 20
"""Numbers in all records together, from which on a run is longer than its trial."""

Estimate = list[tuple[str, float]]


def tried(
    recipe: Recipe, facts: Facts | None = None, *, pricing: float | None = None
) -> Estimate | None:
    """The same as `estimate`; None where it cannot be tried here.

    Packages may be missing, or the recipe may not fit records of the shape that is assumed.
    """
    try:
        return estimate(recipe, facts, pricing=pricing)
    except Exception:  # what is wrong with a recipe is for its run to say, and not for a guess
        return None


def worth_trying(recipe: Recipe, facts: Facts) -> bool:
    """Whether there are so many records that a trial is short beside the run."""
    records = sensitive_records(recipe) + facts.public_records
    return records * math.prod(facts.shape) >= WORTH_TRYING


def estimate(
    recipe: Recipe, facts: Facts | None = None, *, pricing: float | None = None
) -> Estimate:
    """The phases of a release and the seconds that each will take, about.

    Guarantee: no record is looked at; trials are on made-up ones.

    Args:
        recipe: the recipe.
        facts: what is public about the data; as declared, where they have not been looked at.
        pricing: how long its price took to find, where that is known.

    >>> from stillroom.methods.registry import parse
    >>> recipe = parse(
    ...     '[data]\\nsource = "digits"\\ndeclared_size = 1440\\n[features]\\nname = "pixels"\\n'
    ...     '[privacy]\\nepsilon = 2'
    ... )
    >>> phases = dict(estimate(recipe))
    >>> phases["training"] > 0
    True
    """
    facts = declared_facts(recipe) if facts is None else facts
    tested = records_to_test(recipe, facts)
    found: dict[str, float] = {}
    found[looking_at(recipe)] = Phase("", _read(recipe, facts, tested)).seconds()
    for phase in method_named(recipe.method).phases(recipe, facts, tested):
        found[phase.name] = found.get(phase.name, 0.0) + phase.seconds()
    if pricing is None:
        start = time.perf_counter()
        price(recipe, facts)
        pricing = time.perf_counter() - start
    found[PRICING] = pricing
    parties = len(holder_names(recipe))
    stated = Work(Given(pricing / PRICINGS), parties)
    found[WRITING] = found.pop(WRITING, 0.0) + PACKED + stated.seconds()
    return list(found.items())


PRICING, WRITING = "finding the least noise", "writing the bundle"


def declared_facts(recipe: Recipe) -> Facts:
    """What is known of the data by their name and the recipe alone."""
    nominal = nominal_facts(recipe)
    known = KNOWN.get(recipe.data.source)
    if known is not None:
        return Facts(known.shape, known.classes, nominal.public_records)
    if recipe.data.classes is None or recipe.data.source == MODEL:
        return nominal
    return Facts(nominal.shape, class_names(recipe.data.classes), nominal.public_records)


def records_to_test(recipe: Recipe, facts: Facts) -> float:
    """How many records are tested on, about."""
    data = recipe.data
    known = KNOWN.get(data.test_source or data.source)
    if data.source == MODEL and known is None:
        return 0.0
    if known is not None and (data.split == "as-given" or data.source == MODEL):
        return float(known.records.get("test", sum(known.records.values())))
    share = float(data.test) if data.split == "fraction" else 1 / 6
    return (sensitive_records(recipe) + facts.public_records) * share / max(1e-9, 1 - share)


def _read(recipe: Recipe, facts: Facts, tested: float) -> list[Work]:
    """Records read, split and known to their ledgers."""
    if recipe.data.source == MODEL:
        return []
    records = sensitive_records(recipe) + facts.public_records + tested
    trial = RecordsRead(_kind(recipe.data.source), facts.shape, len(facts.classes))
    parties = len(holder_names(recipe))
    return [Work(trial, records), Work(OnDisk(), WRITES_PER_LEDGER * parties)]


def _kind(source: str) -> str:
    """What kind of file records are in, as far as its name tells."""
    return "csv" if PurePath(source).suffix.lower() == ".csv" else "npz"


@dataclass(frozen=True)
class RecordsRead:
    """One record read from a file, dealt to a part by its hash, and known to a ledger.

    Args:
        kind: of the file: csv or npz.
        shape: of a record.
        classes: how many there are.
    """

    kind: str
    shape: tuple[int, ...]
    classes: int

    def seconds(self) -> float:
        """Of a few hundred made-up ones, in a temporary file."""
        count = max(20, min(TRIED, (1 << 21) // math.prod(self.shape)))
        data = made_up_data(count, self.shape, self.classes, 255.0)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"made-up.{self.kind}"
            if self.kind == "csv":
                names = ",".join(f"p{number}" for number in range(math.prod(self.shape)))
                rows = np.column_stack([data.y, data.x.reshape(count, -1)])
                np.savetxt(file, rows, "%d", ",", header=f"label,{names}", comments="")
            else:
                np.savez(file, x=data.x, y=data.y)

            def read() -> None:
                parts = load_parts(file, self.classes)
                split = Split.by_fraction(next(iter(parts.values())), "made up", public=0)
                sealed = split.sealed(test_is_public=True)
                Ledger.in_memory(sealed.sensitive, purpose="benchmark").close()

            return seconds_of(read) / count
