"""No room but the gate draws privacy noise, opens a Bounded, or makes a Sanitised.

No room but `private/` opens a secret sample or sealed records.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import stillroom

SOURCE = Path(stillroom.__file__).parent

RANDOM_MODULES = ("random", "secrets", "numpy.random", "torch.distributions")
RANDOM_NAMES = {
    *("rand", "randn", "randint", "random", "normal", "normal_", "poisson", "bernoulli"),
    *("bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_", "uniform_"),
    *("multinomial", "randperm", "rand_like", "randn_like", "randint_like", "laplace"),
    *("default_rng", "RandomState", "SystemRandom", "urandom", "getrandom", "dropout"),
    *("binomial", "shuffle", "permutation", "token_bytes", "manual_seed", "seed"),
}
MAY_DRAW = ("gate/", "randomness.py")
SAMPLERS = ("stillroom.gate.entropy", "stillroom.gate.sampling", "stillroom.gate.mechanisms.")
OPENING = "stillroom.private.sealed"


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def breaches(source: str, place: str) -> list[str]:
    """What a file does that only the gate may do."""
    tree = ast.parse(source)
    found = []
    in_gate, may_draw = place.startswith("gate/"), place.startswith(MAY_DRAW)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for name in imported(node):
            if not may_draw and name.startswith(RANDOM_MODULES):
                found.append(f"{place}:{line} imports {name}")
            if not place.startswith("private/") and name.startswith(OPENING):
                found.append(f"{place}:{line} reaches for the records in {name}")
            if not in_gate and name.startswith(SAMPLERS):
                found.append(f"{place}:{line} reaches for the samplers in {name}")
        if isinstance(node, ast.Attribute):
            # gate.poisson() and mechanism descriptions are words of the gate, not draws.
            draws = node.attr in RANDOM_NAMES and not dotted(node).endswith("gate.poisson")
            if not may_draw and draws:
                found.append(f"{place}:{line} draws with {dotted(node)}")
            if not in_gate and node.attr in ("open_bounded", "_value", "_entropy", "_draw"):
                found.append(f"{place}:{line} opens {dotted(node)}")
            if node.attr in ("open_secret", "open_sealed") and not place.startswith("private/"):
                found.append(f"{place}:{line} opens {dotted(node)}")
            if node.attr == "sealed_ids" and not in_gate:
                found.append(f"{place}:{line} reads the ids of sealed records")
        makes = isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] == "Sanitised"
        if makes and not in_gate:
            found.append(f"{place}:{line} makes a Sanitised value")
    return found


FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("place", [f for f in FILES if f != "vocabulary.py"])
def test_no_draw_outside_the_gate(place):
    assert breaches((SOURCE / place).read_text(encoding="utf-8"), place) == []


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "import secrets",
        "from numpy import random",
        "import numpy as np; np.random.normal(0, 1)",
        "import numpy as np; rng = np.random.default_rng(); rng.laplace()",
        "import torch; torch.randn(3)",
        "import torch; torch.zeros(3).normal_()",
        "import torch; torch.poisson(rate)",
        "import os; os.urandom(8)",
        "from stillroom.gate.entropy import Entropy",
        "from stillroom.gate.mechanisms.discrete_gaussian import noise",
        "from stillroom.gate import sampling",
        "value = bounded.open_bounded()",
        "value = bounded._value",
        "mask = secret.open_secret(5)",
        "records = sealed.open_sealed()",
        "from stillroom.private.sealed import opened; records = opened(sealed)",
        "from stillroom.private import sealed",
        "ids, persons = sealed.sealed_ids()",
        "from stillroom.vocabulary import Sanitised; Sanitised(1, ())",
        "import stillroom.vocabulary as v; v.Sanitised(1, ())",
    ],
)
@pytest.mark.parametrize("place", ["public/student.py", "methods/rona.py", "cli/extra.py"])
def test_a_sampler_outside_the_gate_would_be_found(line, place):
    assert breaches(line, place)


def test_the_gates_own_words_are_allowed():
    assert (
        breaches("secret = gate.poisson(); noisy = gate.answer(question, ask)", "methods/x.py")
        == []
    )
