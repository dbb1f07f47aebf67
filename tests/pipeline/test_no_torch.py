"""What a recipe costs and whether a bundle verifies is found without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stillroom
from stillroom.gate import Budget
from stillroom.pipeline.release import release

ROOT = Path(__file__).parents[2]
RECIPES = [*ROOT.glob("examples/*.toml"), *ROOT.glob("benchmarks/recipes/*.toml")]
HEAVY = ("torch", "opacus", "onnx", "onnxruntime", "sklearn")

PRICED = """
import sys
from fractions import Fraction
from pathlib import Path
from stillroom.methods.registry import method_named, read
from stillroom.methods.wording import stated_by, unproven_by
from stillroom.pipeline import pricing, verify
from stillroom.pipeline.run import PERSONS, PUBLIC_RECORDS, terms_of
from stillroom.recipe.reading import explain

# How much noise is enough takes seconds per recipe and touches no other module.
pricing.smallest_sigma = lambda lines, *given: (lines(Fraction(40)), Fraction(40))[1]
for name in sys.argv[1:]:
    recipe, _ = read(Path(name))
    explain(recipe)
    facts = pricing.nominal_facts(recipe)
    plan = method_named(recipe.method).plan(recipe, facts)
    assert pricing.price(recipe).wishes
    observed = {PERSONS: False, PUBLIC_RECORDS: 5000, "learnt": True}
    observed |= {"answered": 1, "calls": 3, "iterations": 3, "broken at": 0, "tries": 1}
    terms_of(recipe, observed, 3)
    verify.requests_of(recipe, plan, facts)
    stated_by(recipe), unproven_by(recipe)
"""
WITHOUT = """
loaded = {heavy!r} & {{name.partition(".")[0] for name in sys.modules}}
sys.exit(f"loaded: {{sorted(loaded)}}" if loaded else 0)
"""


def without_torch(code: str, *words: object) -> None:
    source = Path(stillroom.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code + WITHOUT.format(heavy=set(HEAVY)), *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_shipped_recipe_is_priced_and_put_into_words_without_torch():
    assert len(RECIPES) > 20
    without_torch(PRICED, *RECIPES)


def test_a_dry_run_loads_no_torch():
    code = "import sys\nfrom stillroom.cli import run\nassert run(sys.argv[1:]) == 0\n"
    without_torch(code, "release", ROOT / "examples" / "direct.toml", "-o", "out", "--dry-run")
    without_torch(code, "plan", "--sigma", 40, "--queries", 200)


@pytest.mark.parametrize("more", ["", "[sketch]\nmu = 1\ndirections = 8\n"])
def test_a_bundle_is_verified_without_torch(tmp_path, more):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        "purpose = 'benchmark'\n[data]\nsource = 'digits'\ndeclared_size = 1440\n"
        "[features]\nname = 'pixels'\nfull_scale = 16\n[training]\nsteps = 2\nrate = 1\n"
        f"{more}[privacy]\nepsilon = 8\n"
    )
    release(recipe, tmp_path / "out", budget=Budget(8.0, 1e-5))
    code = "import sys\nfrom stillroom.cli import run\nassert run(sys.argv[1:]) == 0\n"
    without_torch(code, "verify", tmp_path / "out")
