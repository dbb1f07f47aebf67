"""Every recipe that is shipped costs what it always did, mechanism by mechanism.

`prices.json` was written before the house was rebuilt, or with the recipe. Mechanisms are compared
exactly; epsilons up to the last bits, which differ between processors.
"""

import json
from pathlib import Path

import pytest

from stillroom.methods.registry import read
from stillroom.pipeline.pricing import price
from stillroom.release.files import number

ROOT = Path(__file__).parents[2]
PRICES = json.loads((Path(__file__).parent / "prices.json").read_text())


def test_every_shipped_recipe_has_a_price() -> None:
    found = [*ROOT.glob("examples/*.toml"), *ROOT.glob("benchmarks/recipes/*.toml")]
    assert {str(path.relative_to(ROOT)) for path in found} == set(PRICES)


def _marked(name: str) -> object:
    """Examples and the recipes whose accuracies are compared; the rest takes half a minute."""
    compared = ("direct-mnist-1", "direct-fashion-1", "rona-digits69-2")
    quick = name.startswith("examples/") or Path(name).stem in compared
    return pytest.param(name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize("name", [_marked(name) for name in PRICES])
def test_a_recipe_costs_what_it_did(name: str) -> None:
    recipe, _ = read(ROOT / name)
    cost, known = price(recipe), PRICES[name]
    scale = None if cost.multiplier is None else str(cost.multiplier)
    drawn = [[mechanism.describe(), count] for mechanism, count in cost.wishes.values()]
    assert (scale, drawn) == (known["scale"], known["draws"])
    assert cost.epsilon == pytest.approx(number(known["epsilon"]), rel=1e-9)
