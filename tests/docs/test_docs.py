"""The documentation is true: its commands run, its code runs, its links lead somewhere."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _build_module():
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


build = _build_module()
PAGES = build.pages()
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.jsonl"))
RECIPES = sorted(
    [*(ROOT / "examples").glob("*.toml"), *(ROOT / "benchmarks" / "recipes").glob("*.toml")]
)
LEAST = '[data]\nsource = "digits"\ndeclared_size = 1440\n[privacy]\nepsilon = 2'
TEXTS = [
    *PAGES,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "benchmarks" / "README.md",
]

# A path of some machine, a host, an address: none of them is the project's to tell.
TELLTALE = re.compile(
    r"(?<![\w.])/(?:home|root|tmp|usr|var|opt|mnt|srv|work|Users)/"
    r"|[A-Z]:\\|\w+://|\blocalhost\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|[\w.]+@[\w-]+\.\w"
)


def name_of(path):
    return str(path.relative_to(ROOT))


def shape(printed):
    """What a transcript looks like when fresh noise and fresh ids are left out."""
    # An unlucky block of labels can be all wrong, or a share one digit longer: columns may move.
    without_ids = re.sub(r"\b[0-9a-f]{32,}\b", "ID", printed)
    return re.sub(r"[\s─]+", " ", re.sub(r"\d+(\.\d+)?%?", "N", without_ids))


LONG_PAGES = ("rona.md", "private-room.md", "dpdfd.md")
"""Their releases take more than 20 seconds each."""


def marked(page):
    marks = pytest.mark.slow if page.name in LONG_PAGES else ()
    return pytest.param(page, marks=marks, id=name_of(page))


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_every_block_runs_and_prints_what_is_documented(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    if re.search(r"stillroom (release|demo|predict)|import onnxruntime", text):
        pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    build.prepare(tmp_path)
    for ran in build.run(build.parts(text)):
        assert ran.code == ran.expected_code, f"{ran.what}\n{ran.printed}"
        # A plan draws no noise, so it is compared to the digit.
        seen = str if ran.what.startswith("$ stillroom plan") else shape
        assert seen(ran.printed) == seen(ran.documented), f"{ran.what}: stale, run `make docs`"


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_blocks_are_of_known_kinds(page):
    kinds = {part.kind for part in build.parts(page.read_text(encoding="utf-8"))}
    assert kinds <= {None, "console", "python", "text", "toml", "sh"}


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"^make ([\w-]+)$|`make ([\w-]+)`", text, re.M)
    assert {a or b for a, b in named} <= targets


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_named_files_and_links_exist(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{name_of(page)} links to {target}#{anchor}"
    for path in re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), f"{name_of(page)} names {path}"


def anchors(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*TEXTS, *RESULTS], ids=name_of)
def test_no_line_names_a_host_or_a_machine_path(page):
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        found = TELLTALE.search(line)
        assert found is None, f"{name_of(page)}:{number}: {found and found[0]}"


def key_tables(page):
    """The keys with their defaults, of all tables of keys on a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    tables = re.findall(r"^\| key \| default \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M)
    rows = [row for table in tables for row in table.splitlines()]
    found = [re.match(r"\| `([\w.]+)` \| ([^|]+) \|", row).groups() for row in rows]
    assert len(dict(found)) == len(found), "a key stands twice"
    return dict(found)


def keys_of(*recipes):
    """Every key that `recipe explain` shows for some recipes, as a table writes its default."""
    from stillroom.methods.registry import parse
    from stillroom.recipe.reading import explain

    in_toml = {"False": "false", "True": "true"}
    lines = [line for text in recipes for line in explain(parse(text))]
    known = {key: "must be given" for key, _, whence, _ in lines if whence == "given"}
    # A section that one of the recipes leaves out is none by default.
    defaults = {key: value for key, value, whence, _ in lines if whence == "default"}
    written = {
        key: "none" if value == "None" else f"`{in_toml.get(value, value)}`"
        for key, value in defaults.items()
    }
    return known | written


STUDENT = LEAST + '\n[sketch]\nmu = "1/10"\n[student]'
RONA_LEAST = LEAST.replace("[data]", '[data]\npublic = "1/2"')


def test_every_key_of_a_recipe_is_in_its_table():
    assert key_tables("release.md") == keys_of(LEAST, STUDENT)


def test_every_key_of_rona_is_in_its_table():
    rona = [
        'method = "rona"\n' + RONA_LEAST,
        'method = "rona"\nsource = "ensemble"\n' + RONA_LEAST + "\n[teachers]\nshard_cap = 100",
        'method = "rona"\nsource = "plain"\nmode = "as-published"\n'
        + RONA_LEAST
        + "\n[plain]\n[published]",
    ]
    known = keys_of(*rona) | {"data.public": "`0`"}  # which must be given, and more than that
    shared = keys_of(LEAST, STUDENT)
    assert key_tables("rona.md") == {key: at for key, at in known.items() if key not in shared}


def test_every_key_of_dpdfd_is_in_its_table():
    start = 'method = "dpdfd"\n'
    plain = start + 'source = "plain"\nmode = "as-published"\n' + LEAST
    known = keys_of(start + LEAST, plain + "\n[plain]\n[published]\n[generator]")
    own = ("dpdfd", "generator", "published")
    assert key_tables("dpdfd.md") == {k: at for k, at in known.items() if k.split(".")[0] in own}


@pytest.mark.parametrize("path", RECIPES, ids=name_of)
def test_recipes_of_the_repository_can_be_read(path):
    from stillroom.methods.registry import read

    assert read(path)[0].privacy.epsilon > 0


# A price takes seconds, and a benchmark finds its own again when it is run.
PRICED = [
    pytest.param(path, marks=pytest.mark.slow) if "benchmarks" in path.parts else path
    for path in RECIPES
]


@pytest.mark.parametrize("path", PRICED, ids=name_of)
def test_recipes_of_the_repository_fit(path):
    from stillroom.methods.registry import read
    from stillroom.pipeline.pricing import price

    recipe, _ = read(path)
    wanted, cost = recipe.privacy.epsilon, price(recipe)
    if recipe.mode == "certified":
        assert 0.9 * wanted < cost.epsilon <= wanted
    else:
        # A paper's own noise is not sought but given, and costs more than its formula says.
        assert cost.multiplier is None
        assert cost.epsilon > claimed(recipe)
        if recipe.method == "rona":
            assert (recipe.published.reading == "residual") == (cost.epsilon < float("inf"))


def claimed(recipe):
    from stillroom.methods.registry import method_named
    from stillroom.methods.rona.claims import claimed_epsilon
    from stillroom.pipeline.pricing import nominal_facts

    if recipe.method != "rona":
        return method_named(recipe.method).plan(recipe, nominal_facts(recipe)).claim.epsilon
    plan = recipe.published_plan
    calls = plan.claimed_calls(nominal_facts(recipe).public_records)
    return claimed_epsilon(calls, float(plan.published.sigma), recipe.privacy.delta)


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_pieces_of_recipes_are_known_keys(page):
    from stillroom.methods.registry import method_named

    for part in build.parts(page.read_text(encoding="utf-8")):
        if part.kind == "toml":
            piece = tomllib.loads("\n".join(part.lines))
            whole = tomllib.loads(LEAST) | piece
            method_named(whole.get("method", "direct")).recipe.model_validate(whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rona", "rona-ensemble", "rona-published"])
def test_examples_of_rona_run_by_the_command(name, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    build.prepare(tmp_path)
    recipe = tomllib.loads((ROOT / "examples" / f"{name}.toml").read_text(encoding="utf-8"))
    told = [
        f"$ stillroom release examples/{name}.toml -o model # exit 2",
        f"$ stillroom ledger budget set examples/{recipe['ledger']} --epsilon 10 --reason test",
        f"$ stillroom release examples/{name}.toml -o model",
        "$ stillroom verify model",
    ]
    printed = []
    for ran in build.run([build.Part("console", told)]):
        assert ran.code == ran.expected_code, f"{ran.what}\n{ran.printed}"
        printed.append(ran.printed)
    infinite = recipe.get("mode") == "as-published"
    assert ("certified epsilon infinite" in printed[2]) == infinite
    assert "beside it: Base " in printed[2]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_of_results_are_those_of_the_files(page):
    text = page.read_text(encoding="utf-8")
    assert build.filled(text) == text, "stale, run `make docs`"


def test_table_of_results_has_the_last_figure_of_each_recipe(tmp_path):
    figure = {
        "dataset": "digits",
        "epsilon": 1.99941,
        "delta": 1e-5,
        "mean": 0.5,
        "sd": None,
        "draws": 1,
        "published": None,
        "recipe": "examples/direct.toml",
    }
    later = {**figure, "mean": 0.93456, "sd": 0.0123, "draws": 3, "published": "a paper 0.9"}
    page = "a\n<!-- results: made-up -->\nold\n<!-- end of results -->\nb\n"
    nothing = build.filled(page, tmp_path)
    assert "Nothing was measured yet.\n" in nothing
    (tmp_path / "made-up.jsonl").write_text(f"{json.dumps(figure)}\n{json.dumps(later)}\n")
    filled = build.filled(page, tmp_path)
    *_, row, _, _ = filled.splitlines()
    assert row == (
        "| digits | 2.000 | 1e-05 | 93.46%, sd 1.23% | 3 | a paper 0.9 "
        "| [direct](../examples/direct.toml) |"
    )
    assert "old" not in filled
    assert "50.00%" not in filled
    assert build.filled(filled, tmp_path) == filled


RONA = {
    "dataset": "mnist",
    "epsilon": 1.9991,
    "metric": "accuracy on the official test part",
    "mean": 0.9871,
    "sd": 0.0004,
    "published": 0.9864,
    "recipe": "examples/rona.toml",
    "setting": "40 % public",
    "student": "mobile-10k",
    "controls": {
        "Base": {"mean": 0.98, "sd": None},
        "teacher on public data": {"mean": 0.9811, "sd": 0.001},
        "teacher": {"mean": 0.99, "sd": 0.0},
    },
    "gain": {"mean": 0.0071, "sd": 0.0012},
    "ratios": {"parameters": 15.72, "size": 12.0, "speed": 11.04},
}


def test_table_of_controls_and_compression(tmp_path):
    page = "".join(
        f"<!-- results: rona {kind} -->\n<!-- end of results -->\n"
        for kind in ("controls", "compression")
    )
    assert build.filled(page, tmp_path).count("Nothing was measured yet.\n") == 2
    unseen = {
        **RONA,
        "metric": "accuracy on unseen classes 6 and 9",
        "controls": {},
        "gain": None,
        "epsilon": "infinite",
    }
    small = {**RONA, "recipe": "examples/direct.toml", "setting": "compression", "published": None}
    figures = [{**RONA, "mean": 0.5}, RONA, unseen, small]
    (tmp_path / "rona.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in figures))
    filled = build.filled(page, tmp_path)
    rows = [line for line in filled.splitlines() if line.startswith("| ")]
    assert rows[1] == (
        "| [40 % public](../examples/rona.toml) | mnist | 2.000 | `mobile-10k` 98.71 (0.04) "
        "| 98.00 | 98.11 (0.10) | 99.00 (0.00) | - | +0.71 (0.12) | 0.9864 |"
    )
    assert rows[2] == (
        "| [40 % public](../examples/rona.toml): unseen classes 6 and 9 | mnist | infinite "
        "| `mobile-10k` 98.71 (0.04) | - | - | - | - | - | 0.9864 |"
    )
    assert rows[-1] == (
        "| compression | mnist | 2.000 | `mobile-10k` 98.71 (0.04) | 99.00 (0.00) | +0.29 "
        "| 15.7 | 12.0 | 11.0 | - | none |"
    )
    assert len(rows) == 4 + 2
    assert build.filled(filled, tmp_path) == filled


DPDFD = {
    "dataset": "mnist",
    "epsilon": 0.9999,
    "mean": 0.9791,
    "sd": 0.0004,
    "draws": 3,
    "published": "0.9512 at 1",
    "seconds": 600.0,
    "recipe": "examples/direct.toml",
    "setting": "data-free",
    "student": "wavelet-70k",
    "controls": {"teacher": {"mean": 0.9825, "sd": 0.001}},
    "shares": {"teacher": 0.2, "student": 0.8, "generator": 0.0, "rest": 0.0},
}


def test_table_of_data_free_students(tmp_path):
    page = "<!-- results: dpdfd students -->\n<!-- end of results -->\n"
    assert "Nothing was measured yet.\n" in build.filled(page, tmp_path)
    alone = {**DPDFD, "recipe": "examples/rona.toml", "controls": {}, "published": None}
    figures = [{**DPDFD, "draws": 1}, DPDFD, alone]
    (tmp_path / "dpdfd.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in figures))
    rows = [line for line in build.filled(page, tmp_path).splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| [data-free](../examples/direct.toml) | mnist | 1.000 | `wavelet-70k` 97.91 (0.04) "
        "| 98.25 (0.10) | +0.34 | 3 | 0.9512 at 1 | 10.0 | teacher 20%, student 80% |",
        "| [data-free](../examples/rona.toml) | mnist | 1.000 | `wavelet-70k` 97.91 (0.04) "
        "| - | - | 3 | none | 10.0 | teacher 20%, student 80% |",
    ]


def test_table_of_samples_keeps_rows_apart_and_shows_the_field(tmp_path):
    page = "<!-- results: dpdfd-synthetic samples -->\n<!-- end of results -->\n"
    field = [["DP-MERF", 0.6367, "Table 1"], ["FETA-Pro", 0.971, "2026"]]
    ours = {**DPDFD, "row": "(a) class as drawn", "field": field}
    labelled = {**ours, "row": "(b) class of the sanitised classifier", "mean": 0.98}
    figures = [labelled, ours]
    (tmp_path / "dpdfd-synthetic.jsonl").write_text(
        "".join(f"{json.dumps(one)}\n" for one in figures)
    )
    rows = [line for line in build.filled(page, tmp_path).splitlines() if line.startswith("| ")]
    assert rows[1] == (
        "| mnist | 1.000 | ours, [(a) class as drawn](../examples/direct.toml) | 97.91 (0.04) | 3 "
        "| 10.0 minutes |"
    )
    assert "(b)" in rows[2]
    assert rows[3:] == [
        "| mnist | 1 | FETA-Pro (2026) | 97.1 | - | - |",
        "| mnist | 1 | DP-MERF (Table 1) | 63.7 | - | - |",
    ]


def test_tables_of_ablations_show_what_is_claimed_and_what_holds(tmp_path):
    page = "<!-- results: dpdfd-ablations noise -->\n<!-- end of results -->\n"
    point = {
        **{"figure": "noise", "curve": "one vector per batch", "x": {"sigma": 20}},
        **{"dataset": "mnist-small", "mean": 0.1, "controls": {"teacher": 0.97}},
        **{"claimed_epsilon": 0.0412, "epsilon": 161.3},
    }
    figures = [point, {**point, "x": {"sigma": 50}, "epsilon": "infinite", "controls": {}}]
    figures.append({**point, "figure": "terms"})
    (tmp_path / "dpdfd-ablations.jsonl").write_text(
        "".join(f"{json.dumps(one)}\n" for one in figures)
    )
    rows = [line for line in build.filled(page, tmp_path).splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| mnist | one vector per batch, sigma 20 | 10.00 | 97.00 | 0.041 | 161 |",
        "| mnist | one vector per batch, sigma 50 | 10.00 | - | 0.041 | infinite |",
    ]


def test_pictures_are_shown_once_they_are_drawn(tmp_path):
    page = "<!-- pictures: rona-figures -->\nold\n<!-- end of pictures -->\n"
    nothing = build.filled(page, tmp_path, tmp_path)
    assert "Not drawn yet: hint epochs; distillation epochs;" in nothing
    assert build.NOTHING in nothing
    assert "](" not in nothing
    for name in build.PICTURES["rona-figures"]:
        (tmp_path / f"{name}.png").touch()
    (tmp_path / "rona-figures.jsonl").write_text('{"bench": "rona-figures"}\n')
    filled = build.filled(page, tmp_path, tmp_path)
    assert filled.count("](pictures/rona-") == len(build.PICTURES["rona-figures"])
    assert "yet" not in filled


def test_every_key_of_a_certificate_is_explained():
    from stillroom.release import certificate, parties, sections

    text = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    written = [*certificate._AS_STATED, *sections.SECTIONS]
    for function in (certificate.completed, parties.stated, parties.priced):
        written += re.findall(r'^        "(\w+)":', inspect.getsource(function), re.M)
    rows = re.findall(r"^\| `([\w`, ]+)` \|", text, re.M)
    named = {key for keys in rows for key in keys.split("`, `")}
    assert len(written) > 30
    assert {*written, "digest"} <= named


def test_picture_is_small_and_whole():
    picture = build.PICTURE.read_text(encoding="utf-8")
    assert picture.rstrip().endswith("</svg>")
    assert len(picture) < 150_000


@pytest.mark.parametrize("results", RESULTS, ids=name_of)
def test_results_have_all_fields(results):
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert all(
        {"bench", "metric", "mean", "sd", "draws", "versions"} <= set(line) for line in lines
    )
    assert len({tuple(line) for line in lines}) == 1
