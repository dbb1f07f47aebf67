"""The documentation is true: its commands run, its code runs, its links lead somewhere."""

from __future__ import annotations

import inspect
import json
import re
import tomllib

import pytest

from docs.builders import ROOT, build, tables

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
    numbered = re.sub(r"\d+(\.\d+)?%?", "N", without_ids)
    # A busy machine takes minutes for what takes seconds on another.
    return re.sub(r"[\s─]+", " ", re.sub(r"\bN (?:s|min|h)\b", "N s", numbered))


LONG_PAGES = (
    *("rona.md", "private-room.md", "dpdfd.md", "only-a-model.md", "pg.md", "votes.md"),
    *("release.md", "your-data.md", "tables.md", "pictures.md", "tour.md", "demo.md"),
    *("measures.md", "persons.md"),
)
"""Their releases take long, and README has some of each kind."""


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
        'method = "rona"\n' + RONA_LEAST + "\n[compression]",
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


def test_every_key_of_pg_is_in_its_table():
    start, shards = 'method = "pg"\n' + LEAST, "\n[collection]\nshard_cap = 100\n"
    plain = 'source = "plain"\nmode = "as-published"\n' + start + shards
    known = keys_of(plain + 'model = "mnist-net"\n[published]', start + shards)
    own = ("collection", "pg", "published")
    assert key_tables("pg.md") == {k: at for k, at in known.items() if k.split(".")[0] in own}


def test_every_key_of_votes_is_in_its_table():
    public = "declared_size = 1440\npublic = 0.5\ntest_is_public = true"
    start = 'method = "votes"\n' + LEAST.replace("declared_size = 1440", public)
    start += "\n[entities]\ncount = 10\nlargest = 100\n"
    published = 'mode = "as-published"\n' + start + '[votes]\nreport = "geometric"\n[published]\n'
    known = keys_of(published, start)
    own = ("entities", "votes", "student", "published")
    assert key_tables("votes.md") == {k: at for k, at in known.items() if k.split(".")[0] in own}


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
    from stillroom.data import Schema
    from stillroom.methods.registry import method_named

    for part in build.parts(page.read_text(encoding="utf-8")):
        if part.kind == "toml":
            piece = tomllib.loads("\n".join(part.lines))
            if "categories" in piece:  # a schema in a file of its own
                Schema.of(piece)
                continue
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
    assert tables.filled(text) == text, "stale, run `make docs`"


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
