"""Whatever stands in a recipe, it is read or refused; and whatever is read is priced or refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.errors import BadInput
from stillroom.gate import accounting, loss_distributions
from stillroom.methods.registry import METHODS, method_named, parse
from stillroom.pipeline.pricing import price
from stillroom.recipe import Recipe, Section
from stillroom.recipe.common import LARGEST_EPSILON, MOST_UNITS
from stillroom.recipe.reading import explain
from stillroom.recipe.section import MOST_DRAWS, MOST_NUMBERS
from stillroom.sources.training import SMALLEST_RATE

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
TEXTS = [path.read_text() for path in (Path(__file__).parents[2] / "examples").glob("*.toml")]


def tables(recipe: type[Recipe]) -> Iterator[tuple[str, type[Section]]]:
    """The tables of a method's recipes; its own keys stand under no name."""
    yield "", recipe
    for name, field in recipe.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield name, kind


TABLES = [table for name in METHODS for table in tables(method_named(name).recipe)]
KEYS = list(dict.fromkeys((table, key) for table, kind in TABLES for key in kind.model_fields))
NUMBERS = ("1e999999999", "1e-999999999", "1/0", "nan", "1_0", "\u0661", f"1/{'3' * 9000}")
VALUES = st.one_of(
    st.sampled_from(NUMBERS).map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.integers(-2, 2).map(lambda n: str(2**63 + n)),
    st.integers(1, 9000).map(lambda digits: "9" * digits),
    st.floats().map(lambda number: repr(number) if math.isfinite(number) else str(number)),
    st.fractions().map(lambda share: repr(str(share))),
    st.text(max_size=20).map(lambda text: "'" + text.replace("'", "").replace("\n", "") + "'"),
    st.booleans().map(lambda truth: str(truth).lower()),
    st.dates(min_value=date(1000, 1, 1)).map(str),
    st.integers(1, 2000).map(lambda depth: "[" * depth + "]" * depth),
    st.integers(1, 2000).map(lambda depth: "{a=" * depth + "1" + "}" * depth),
    st.lists(st.integers() | st.text("abc\x1b", max_size=3), max_size=4).map(str),
)


def changed(text: str, changes: list, splices: list) -> str:
    """A recipe with keys set, in tables made where they are missing, and with texts put in."""
    for (table, key), value in changes:
        lines = [line for line in text.splitlines() if line.partition("=")[0].strip() != key]
        heads = [place for place, line in enumerate(lines, 1) if line.startswith(f"[{table}]")]
        if table and not heads:
            lines.append(f"[{table}]")
            heads = [len(lines)]
        place = heads[0] if table else 0
        text = "\n".join([*lines[:place], f"{key} = {value}", *lines[place:]])
    for share, inserted in splices:
        place = int(share * len(text))
        text = text[:place] + inserted + text[place:]
    return text


RECIPES = st.builds(
    changed,
    st.sampled_from(TEXTS),
    st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=4),
    st.lists(st.tuples(st.floats(0, 1), st.text(max_size=6)), max_size=1),
)


def read_or_refused(text: str) -> Recipe | None:
    try:
        recipe = parse(text)
    except BadInput as error:
        refused = error
    else:
        assert all(about for _, _, _, about in explain(recipe))
        return recipe
    assert refused.remedy
    assert refused.what.isprintable()
    assert len(refused.what) < 10_000
    return None


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(RECIPES)
def test_a_recipe_is_read_or_refused(text: str) -> None:
    read_or_refused(text)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None, suppress_health_check=SLOW)
@given(RECIPES)
def test_many_recipes_are_read_or_refused(text: str) -> None:
    read_or_refused(text)


def logarithmic(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of all magnitudes from `low` to `high`, both ends among them."""
    inner = st.floats(math.log(low), math.log(high)).map(math.exp)
    return st.sampled_from([low, high]) | inner.map(lambda x: min(max(x, low), high))


def whole(high: int) -> st.SearchStrategy[int]:
    return logarithmic(1, high).map(round)


SHARE = logarithmic(float(SMALLEST_RATE), 1).map(lambda x: Fraction(x).limit_denominator(10**6))
SCALE = logarithmic(1e-3, 1e3)
PLANS = {
    "direct": """
[data]
source = "digits"
declared_size = {size}
test_is_public = {public}
[training]
steps = {draws}
rate = "{share}"
clip = {clip}
[privacy]
epsilon = {epsilon}
delta = {delta}
evaluation_sigma = {noise}
""",
    "sketch": """
[data]
source = "digits"
declared_size = {size}
test_is_public = {public}
[sketch]
mu = {scale}
lloyd = {few}
coefficients = {numbers}
[training]
steps = {draws}
rate = 1
[privacy]
epsilon = {epsilon}
delta = {delta}
evaluation_sigma = {noise}
""",
    "ensemble": """
method = "rona"
source = "ensemble"
[data]
source = "digits"
public = "1/5"
declared_size = {size}
test_is_public = {public}
[rona]
hint_layer = 1
guided_layer = 1
hint_epochs = {few}
[teachers]
count = {numbers}
shard_cap = {size}
votes = {draws}
hints = {draws}
hint_share = "1/7"
[privacy]
epsilon = {epsilon}
delta = {delta}
evaluation_sigma = {noise}
""",
    "published": """
method = "rona"
mode = "as-published"
purpose = "benchmark"
source = "plain"
[data]
source = "digits"
public = "1/5"
declared_size = {size}
test_is_public = {public}
[rona]
rounds = {few}
batch = 2
queries = "{share}"
[published]
reading = "residual"
sigma = {scale}
[privacy]
epsilon = {epsilon}
delta = {delta}
evaluation_sigma = {noise}
""",
}
PLANNED = st.builds(
    lambda plan, **numbers: PLANS[plan].format(**numbers),
    plan=st.sampled_from(sorted(PLANS)),
    size=logarithmic(1e5, MOST_UNITS).map(round),
    public=st.sampled_from(["true", "true", "false"]),
    draws=whole(MOST_DRAWS),
    few=whole(100),
    numbers=whole(MOST_NUMBERS - 24).map(lambda number: number + 24),
    clip=logarithmic(1e-4, 1),
    share=SHARE,
    scale=SCALE,
    noise=SCALE,
    epsilon=logarithmic(1e-3, LARGEST_EPSILON) | logarithmic(1e-300, 1e-3),
    delta=logarithmic(1e-12, 0.1),
)


def priced_or_refused(text: str) -> None:
    recipe = read_or_refused(text)
    try:
        cost = None if recipe is None else price(recipe)
    except BadInput as error:
        assert error.remedy  # noqa: PT017
    else:
        assert cost is None or cost.epsilon > 0


@pytest.fixture
def by_renyi_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without loss distributions, each of which takes a second."""
    monkeypatch.setattr(loss_distributions, "LARGEST_EPSILON", 0.0)
    accounting._composed.cache_clear()
    accounting._guarantee.cache_clear()
    yield
    accounting._composed.cache_clear()
    accounting._guarantee.cache_clear()


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(PLANNED)
def test_a_plan_is_priced_or_refused(by_renyi_alone: None, text: str) -> None:
    priced_or_refused(text)


@pytest.mark.slow
@settings(max_examples=5_000, deadline=None, suppress_health_check=SLOW)
@given(PLANNED)
def test_many_plans_are_priced_or_refused(by_renyi_alone: None, text: str) -> None:
    priced_or_refused(text)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(PLANNED)
def test_plans_are_priced_by_both_accountants_or_refused(text: str) -> None:
    priced_or_refused(text)
