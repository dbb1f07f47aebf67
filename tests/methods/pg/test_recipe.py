"""Recipes of method pg: what makes no sense together is refused, with its keys."""

from __future__ import annotations

import pytest

from stillroom.errors import BadInput
from stillroom.methods.registry import parse

BASE = {
    "data": 'source = "digits"\ntest_is_public = true\ndeclared_size = 1350\n',
    "features": "full_scale = 16\n",
    "collection": "models = 40\nshard_cap = 60\n",
    "pg": "",
    "privacy": "epsilon = 3\n",
}
SKETCH = 'mu = "1/2"\n'
NET = 'model = "student-10k"\nmodels = 10\nshard_cap = 60\nlearning_rate = 0.001\n'
PLAIN = 'source = "plain"\nmode = "as-published"\n'


def text_of(head="", **sections):
    parts = {**BASE, **sections}
    body = "".join(f"[{name}]\n{text}\n" for name, text in parts.items() if text is not None)
    return f'method = "pg"\n{head}\n{body}'


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"pg": 'mechanism = "exponential"\nradius = 0.5\nbandwidth = 0.1\n'},
        {"sketch": SKETCH, "collection": BASE["collection"] + 'start = "sketch"\n'},
        {"collection": NET, "pg": 'map = "random"\nlatents = 5\n'},
    ],
)
def test_recipes_that_fit(sections):
    parse(text_of(**sections))


SKETCHED = {"sketch": SKETCH, "collection": BASE["collection"] + 'start = "sketch"\n'}
HEADS, DATA = BASE["collection"], BASE["data"]
STOP = {"privacy": 'epsilon = 3\non_exhausted = "stop"\n'}
CLOSED = {"data": DATA.replace("true", "false")}
PGC = {"pg": 'publisher = "pgc"\n'}
NETS, TESTED = {"collection": NET}, {"published": "threshold = 0.5\ntries = 2\n"}
BITS = {"published": "points = 8\nresidual_bits = 8\n"}
KERAS = NET.replace("student-10k", "mnist-net")
DIRECTIONS = {"pg": 'map = "directions"\nlatents = 5\npublic_runs = 4\n'}


@pytest.mark.parametrize(
    ("said", "head", "sections"),
    [
        ("only for networks", "", {"collection": HEADS + "epochs = 2\n"}),
        ("only for a head", "", {"collection": NET + "steps = 2\n"}),
        ("more than there are epochs", "", {"collection": NET + "epochs = 2\ncheckpoints = 3\n"}),
        ("the zoo knows how many", "", {"collection": KERAS + "parameters = 9\n"}),
        ("nothing is trained before", "", {"collection": HEADS + "start_steps = 4\n"}),
        ("only for mechanism gaussian", "", {"pg": 'mechanism = "exponential"\nclip = 2.0\n'}),
        ("only for mechanism exponential", "", {"pg": "radius = 2.0\n"}),
        ("only for publisher pgc", "", {"pg": 'kept = "1/2"\n'}),
        ("publisher pgp has groups", "", {"pg": 'publisher = "pgp"\n'}),
        ("belong together", "", {"pg": 'map = "groups"\n'}),
        ("belong together", "", {"pg": "latents = 4\n"}),
        ("public_runs and map directions", "", {"pg": "public_runs = 4\n"}),
        ("fewer trainings than directions", "", {**NETS, "sketch": SKETCH, **DIRECTIONS}),
        ("use rounds = 1", "", {**SKETCHED, "pg": "retries = 5\nrounds = 2\n"}),
        ("a judge needs public labels", "", {"pg": "retries = 5\n"}),
        ("wider than the whole grid", "", {"pg": 'mechanism = "exponential"\nbandwidth = 3.0\n'}),
        ("there is no \\[sketch\\]", "", {"collection": HEADS + 'start = "sketch"\n'}),
        ("there is no public part", "", {"collection": HEADS + 'start = "public"\n'}),
        ("to tell weights apart", "", {"pg": 'publisher = "pgp"\nmap = "groups"\nlatents = 20\n'}),
        ("directions are for networks", "", {**SKETCHED, **DIRECTIONS}),
        ("a price per latent", "", {"collection": NET, "pg": 'mechanism = "exponential"\n'}),
        ("use diagonal or none", "", {**SKETCHED, "pg": 'publisher = "pgc"\nkept = "1/2"\n'}),
        ("only gaussian rounds", "", {"pg": 'mechanism = "exponential"\n', **STOP}),
        ("sketch.mu: is missing", "", {"sketch": ""}),
        ("has no source plain", 'mode = "as-published"\n', {}),
        ("only for source plain", "", {"published": "epsilon = 1\n"}),
        ("auxiliary is for method rona", "", {"features": 'name = "auxiliary"\n'}),
        ("belongs to mode as-published", 'source = "plain"\n', {"collection": NET}),
        ("not for source plain", PLAIN, {"collection": NET, "pg": "rounds = 2\n"}),
        ("every weight of a network", PLAIN, {}),
        ("collection.parameters: is missing", PLAIN, {"collection": NET}),
        ("all models have a common start", PLAIN, {"collection": NET + 'start = "public"\n'}),
        ("records are counted", PLAIN, {"collection": NET, "data": DATA + 'unit = "person"\n'}),
        ("a part of the weights is no model", PLAIN, {"collection": NET, **STOP}),
        ("a question of its own", PLAIN, {**NETS, **CLOSED, **TESTED}),
        ("belong together", PLAIN, {"collection": NET, "published": "tries = 2\n"}),
        ("an observed grid has none", PLAIN, {"collection": NET, "published": "radius = 2.0\n"}),
        ("only for publisher pgp", PLAIN, {"collection": NET, "published": "clusters = 4\n"}),
        ("only for publisher pgc", PLAIN, {"collection": NET, "published": 'pruned = "1/2"\n'}),
        ("more bits than a generated weight", PLAIN, {**NETS, **PGC, **BITS}),
        ("needs public pictures", PLAIN, {"collection": NET, **PGC, **CLOSED}),
        ("greater than or equal to 2", "", {"collection": "models = 1\nshard_cap = 60\n"}),
        ("collection", "", {"collection": None}),
    ],
)  # fmt: skip
def test_recipes_that_do_not(said, head, sections):
    with pytest.raises(BadInput, match=said):
        parse(text_of(head, **sections))
