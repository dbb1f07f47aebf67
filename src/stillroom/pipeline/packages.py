"""Which packages a recipe needs beside the least installation, known before anything is paid."""

from __future__ import annotations

from importlib.util import find_spec

from stillroom.errors import BadInput
from stillroom.extras import EXTRA_OF
from stillroom.features import FEATURES
from stillroom.recipe import Recipe

OF_EVERY_MODEL = ("onnx", "safetensors")
"""What a model is written down with."""


def packages_of(recipe: Recipe) -> list[str]:
    """The import names of what a release of this recipe needs."""
    training, engine = recipe.section("training"), recipe.engine.kind
    linear = training is not None and training.linear and recipe.features.name in FEATURES
    plain = recipe.method == "direct" and linear and recipe.section("student") is None
    needs = {
        "joblib": engine == "loky",
        "threadpoolctl": engine == "loky",
        "ray": engine == "ray",
        "distributed": engine == "dask",
        "numba": recipe.source == "trained" and (training is None or training.linear),
        "opacus": recipe.source == "trained" and training is not None and not training.linear,
        "torch": not plain,
    }
    return [*OF_EVERY_MODEL, *(package for package, needed in needs.items() if needed)]


def refuse_missing_packages(recipe: Recipe) -> None:
    """Say before anything is paid which packages are not installed.

    Raises:
        BadInput: some are not.
    """
    absent = [package for package in packages_of(recipe) if find_spec(package) is None]
    if absent:
        extras = ",".join(sorted({EXTRA_OF[package] for package in absent}))
        several = len(absent) > 1
        raise BadInput(
            f"the package{'s' if several else ''} {', '.join(absent)} "
            f"{'are' if several else 'is'} not installed",
            where="release",
            why="a release would end when it needs them, perhaps after it has paid",
            remedy=f"pip install 'stillroom[{extras}]'",
        )
