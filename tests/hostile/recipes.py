"""Recipes with numbers, texts and tables that no run needs, and run folders with a false state."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from hostile.harness import Case

SMALL = """
[data]
source = "digits"
declared_size = 1440
test_is_public = true
{data}
[features]
name = "edges"
{features}
[training]
{training}
[privacy]
epsilon = {epsilon}
{privacy}
{more}
"""
RONA = """
method = "rona"
source = "{source}"
{top}
[data]
source = "digits"
declared_size = 1150
public = "1/5"
test_is_public = true
[features]
name = "edges"
[rona]
student = "mlp"
auxiliary = "mlp"
{rona}
[{table}]
{numbers}
[privacy]
epsilon = 2
"""


def small(more: str = "", epsilon: str = "2", **tables: str) -> str:
    lines = {"data": "", "features": "", "training": "", "privacy": "", **tables}
    return SMALL.format(epsilon=epsilon, more=more, **lines)


def ensemble(numbers: str, rona: str = "") -> str:
    if "shard_cap" not in numbers:
        numbers += "\nshard_cap = 40"
    return RONA.format(source="ensemble", table="teachers", rona=rona, numbers=numbers, top="")


def published(numbers: str = "", rona: str = "batch = 32") -> str:
    top = 'mode = "as-published"\npurpose = "benchmark"'
    return RONA.format(source="plain", table="published", rona=rona, numbers=numbers, top=top)


def explained(name: str, text: str | bytes | Callable[[Path], object], says: str) -> Case:
    def build(folder: Path) -> list[str]:
        path = folder / "recipe.toml"
        if callable(text):
            text(path)
        else:
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        return ["recipe", "explain", str(path)]

    return Case(f"recipe: {name}", build, 2, says)


def planned(name: str, text: str, says: str = "", code: int = 2) -> Case:
    def build(folder: Path) -> list[str]:
        (folder / "recipe.toml").write_text(text)
        words = ["release", str(folder / "recipe.toml"), "-o", str(folder / "model")]
        return [*words, "--dry-run"]

    return Case(f"plan: {name}", build, code, says)


TEXTS = [
    explained("empty", "", "data: is missing"),
    explained("a pipe", lambda path: os.mkfifo(path), "cannot be read"),
    explained("a device", lambda path: path.symlink_to("/dev/zero"), "cannot be read"),
    explained("a folder", lambda path: path.mkdir(), "cannot be read"),
    explained("not there", lambda path: None, "no such recipe"),
    explained("not UTF-8", b"\xff\xfe" * 99, "cannot be read"),
    explained("NUL bytes", b"\0" * 99, "not TOML"),
    explained("a byte order mark", "\ufeff" + small(), "not TOML"),
    explained("2 MB", "# more\n" * 300_000, "1048576 bytes"),
    explained("2 GB of holes", lambda path: (path.touch(), os.truncate(path, 2 << 30)), "1048576"),
    explained("lists in lists", "a = " + "[" * 100_000, "nested too deep"),
    explained("tables in tables", "a = " + "{a = " * 100_000, "nested too deep"),
    explained("a key of 100,000 parts", ".".join("a" * 100_000) + " = 1", "ten or more parts"),
    explained("quoted parts", ".".join(['"a b"'] * 100_000) + " = 1", "ten or more parts"),
    explained("a table of 100,000 parts", f"[{'.'.join('a' * 100_000)}]", "ten or more parts"),
    explained("a text in three quotes", small(privacy='tuning = """public"""'), "three quotes"),
    explained("a key without end", f"{'k' * 900_000} = 1\n" + small(), "unknown key"),
    explained("a key that rules the terminal", '"\\u001b[2J" = 1\n' + small(), "\\x1b"),
    explained("50,000 keys", "".join(f"k{i} = 1\n" for i in range(50_000)), "more"),
    explained("a number of 100,000 digits", small(training=f"steps = {'9' * 100_000}"), "number"),
    explained("a number in hex", small(training=f"steps = 0x{'f' * 100_000}"), "training.steps"),
    explained("a date", small(training="steps = 2020-01-01"), "training.steps"),
    explained("a list for a number", small(training="steps = [1, 2]"), "training.steps"),
    explained("a table for a text", small(data="key = {a = 1}"), "data.key"),
    explained("a text that rules the terminal", small(data='key = "\\u001b[2J"'), "printed"),
    explained("a key twice", small(training="steps = 3\nsteps = 4"), "not TOML"),
]

EXACT = {
    "an endless power": '"1e999999999"',
    "an endless power below": '"1e-999999999"',
    "a power as a number": "1e300",
    "a fraction without end": f'"{"1" * 30_000}/{"3" * 30_000}"',
    "digits without end": f'"0.{"1" * 30_000}"',
    "a fraction over nothing": '"1/0"',
    "infinity": "inf",
    "not a number": "nan",
    "no number": '"half"',
    "truth": "true",
    "underscores": '"1_0/2_0"',
}
SHARES = [
    explained(f"{name} as training.rate", small(training=f"rate = {value}"), "training.rate")
    for name, value in EXACT.items()
]
SHARES += [
    explained(f"an endless power as {place}", text, place)
    for place, text in {
        "training.clip": small(training='clip = "1e999999999"'),
        "data.test": small(data='test = "1e999999999"'),
        "privacy.evaluation_sigma": small(privacy='evaluation_sigma = "1e999999999"'),
        "sketch.mu": small('[sketch]\nmu = "1e999999999"'),
        "sketch.radius": small('[sketch]\nmu = 1\nradius = "1e999999999"'),
        "published.sigma": published('sigma = "1e999999999"'),
        "rona.queries": published(rona='queries = "1e-999999999"'),
        "teachers.threshold": ensemble('threshold = "1e-999999999"'),
        "teachers.threshold_noise": ensemble('threshold = 1\nthreshold_noise = "1e999999999"'),
        "teachers.hint_share": ensemble('hint_share = "1e-999999999"'),
    }.items()
]

NUMBERS = [
    planned("a billion steps", small(training="steps = 1000000000"), "100000"),
    planned("many steps of few records", small(training="steps = 100000\nrate = 1e-5"), "too long"),
    planned("a rate below all batches", small(training="rate = 1e-9"), "training.rate"),
    planned("a rate above one", small(training="rate = 2"), "training.rate"),
    planned("a clip of nothing", small(training="clip = 0"), "training.clip"),
    planned("an epsilon of a billion", small(epsilon="1e9"), "100"),
    planned("an infinite epsilon", small(epsilon="inf"), "privacy.epsilon"),
    planned("an epsilon of almost nothing", small(epsilon="1e-300"), "epsilon"),
    planned("a delta of almost nothing", small(privacy="delta = 1e-300"), "privacy.delta"),
    planned("2^63 records", small().replace("1440", str(2**63)), "1000000000"),
    planned("10^400 records", small().replace("1440", "1" + "0" * 400), "1000000000"),
    planned("a billion components", small(features="components = 1000000000"), "65536"),
    planned("a billion steps of Lloyd's", small("[sketch]\nmu = 1\nlloyd = 1000000000"), "100"),
    planned(
        "a billion coefficients", small("[sketch]\nmu = 1\ncoefficients = 1000000000"), "65536"
    ),
    planned("a billion epochs", small("[sketch]\nmu = 1\n[student]\nepochs = 1000000000"), "10000"),
    planned("a seed of 10^400", small(training=f"start_seed = 1{'0' * 400}"), "start_seed"),
    planned("a billion votes", ensemble("votes = 1000000000"), "100000"),
    planned("a billion teachers", ensemble("count = 1000000000"), "100000"),
    planned("a shard of 2^70", ensemble(f"shard_cap = {2**70}"), "teachers.shard_cap"),
    planned("a billion rounds", ensemble("votes = 9", "rounds = 1000000000"), "rona.rounds"),
    planned("a billion hints", ensemble("hints = 1000000000"), "100000"),
    planned("a billion workers", small("[engine]\nworkers = 1000000000"), "engine.workers"),
    planned("an infinite penalty", ensemble("ridge = inf"), "teachers.ridge"),
    planned("noise beyond all integers", published('reading = "residual"\nsigma = 1e12'), "sigma"),
    planned("a public part without end", published().replace('"1/5"', '"0.999999999999"'), code=0),
    planned("a billion records", small().replace("1440", "1000000000"), code=0),
    planned(
        "an evaluation without noise",
        small(privacy="evaluation_sigma = 1e-12").replace("test_is_public = true", ""),
        "evaluation",
    ),
]


def run_state(name: str, make: Callable[[Path], object]) -> Case:
    def build(folder: Path) -> list[str]:
        (folder / "recipe.toml").write_text(small())
        (folder / "model.run").mkdir()
        make(folder / "model.run" / "run.json")
        return ["release", str(folder / "recipe.toml"), "-o", str(folder / "model")]

    return Case(f"run.json: {name}", build, 2, "state is damaged")


def state(run: str = '"a"', recipe: str = '"b"', head: str = '""') -> str:
    return f'{{"run": {run}, "recipe": {recipe}, "head": {head}}}'


STATES = [
    run_state("empty", lambda path: path.write_text("")),
    run_state("lists in lists", lambda path: path.write_text("[" * 200_000)),
    run_state(
        "tables in tables", lambda path: path.write_text('{"a":' * 9_000 + "1" + "}" * 9_000)
    ),
    run_state("10 MB", lambda path: path.write_text(state(f'"{"a" * 10_000_000}"'))),
    run_state("2 GB of holes", lambda path: (path.touch(), os.truncate(path, 2 << 30))),
    run_state("a pipe", lambda path: os.mkfifo(path)),
    run_state("a list", lambda path: path.write_text("[1]")),
    run_state("not UTF-8", lambda path: path.write_bytes(b"\xff" * 99)),
    run_state("numbers for texts", lambda path: path.write_text(state("1", "2", "3"))),
    run_state("nulls for texts", lambda path: path.write_text(state("null", "null", "null"))),
    run_state("a name without end", lambda path: path.write_text(state("9" * 5_000))),
]


def released(name: str, source: str, content: bytes | None, says: str) -> Case:
    def build(folder: Path) -> list[str]:
        if content is not None:
            (folder / source).write_bytes(content)
        text = small(data="classes = 2").replace('"digits"', f'"{source}"')
        (folder / "recipe.toml").write_text(text.replace('"edges"', '"pixels"'))
        return ["release", str(folder / "recipe.toml"), "-o", str(folder / "model")]

    return Case(f"release: {name}", build, 2, says)


RELEASES = [
    released("a missing cell", "a.csv", b"a,b,label\n1,2,0\n1,,1\n", "column 2 ('b')"),
    released("garbage", "a.npz", b"PK\x03\x04garbage", "plain arrays"),
    released("no records", "a.csv", b"a,b,label\n", "no records"),
    released("a source without end", "/dev/zero", None, "plain file"),
    released("a source no file can have", "x" * 5000, None, "no data set"),
]

CASES: list[Case] = [*TEXTS, *SHARES, *NUMBERS, *STATES, *RELEASES]
