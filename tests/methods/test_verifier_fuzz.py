"""Every field of a certificate, changed in every way: it does not verify, or nobody can check it.

The forger fits all hashes, the card and the manifest to the change, so that only the meaning can
give it away. What is accepted all the same stands on a short list, which `verify` prints as the
releaser's word.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from data.visits import csv_text, schema_text, visits
from features.enlarged import pictures
from methods.forging import forge, mutations, pattern, rehash
from quick_onnx import use_quick_exporter
from stillroom.data import Schema
from stillroom.errors import DoesNotVerify
from stillroom.gate import Budget
from stillroom.gate.accounting import Price
from stillroom.pipeline import verify as pipeline_verify
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import new_card, verify
from stillroom.release import certificate as certificates
from stillroom.release import figures, files, verifier
from stillroom.release.sections.samples import picture_of
from stillroom.release.verifier import WORD
from stillroom.vocabulary import Guarantee, Pair

WORDS = {
    "parties[].blocks[].block": "which row of the ledger it is",
    "parties[].blocks[].day": "when it was reserved",
    "parties[].blocks[].hash": "of that row",
    "parties[].data_set.ledger": "its random name",
    "parties[].data_set.head": "of the ledger",
    "parties[].data_set.blocks": "how many there are beside the release's own",
    "parties[].data_set.budgets[]": "one that was replaced since",
    "parties[].data_set.budgets[].reason": "why it was set",
    "sections.evaluation.confusion[]": "counts that give the same figures",
    "sections.evaluation.confusion[][]": "counts that give the same figures",
    "sections.controls.models[].accuracy": "of models that are not in the bundle",
    **{f"versions.{part}": "what it was made with" for part in certificates.versions()},
}
"""The fields of which some other value is accepted; all of them are in `WORD` of the verifier."""

_DATA = """
[data]
source = "digits.npz"
classes = 3
declared_size = 300
test_is_public = {public}
{data}
[features]
name = "pixels"
full_scale = 16
[engine]
kind = "serial"
[training]
steps = 3
rate = 1
{training}
[privacy]
epsilon = 3
{privacy}
"""
_SKETCH = '[sketch]\nmu = "1/5"\ncoefficients = 32\ndirections = 4\ncentres = 2\nlloyd = 1\n'
_RONA = """[rona]
student = "mlp"
auxiliary = "mlp"
auxiliary_epochs = 1
rounds = 1
self_epochs = 1
distillation_epochs = 1
[compression]
kept = "1/3"
"""
RECIPES = {
    "direct": _DATA.format(public="false", data="", training="", privacy=""),
    "persons": _DATA.format(
        public="false",
        data='unit = "person"\nmax_records_per_person = 2\n',
        training='class_weights = ["1/10", 1, 0.5]\n',
        privacy="evaluation_records_per_person = 2\nevaluation_sigma = 12\ntuning = 'public'\n",
    ),
    "table": _DATA.format(public="false", data="", training="", privacy="")
    .replace("digits.npz", "visits.csv")
    .replace("classes = 3\n", "")
    .replace("pixels", "table")
    + Schema.of(tomllib.loads(schema_text())).toml(),
    "rona": 'method = "rona"\npurpose = "benchmark"\n'
    + _DATA.format(public="true", data='public = "2/5"', training="public_share = 0.1", privacy="")
    + _SKETCH
    + _RONA,
    "votes": """
method = "votes"
purpose = "benchmark"
ledger = "ledgers"
[data]
source = "digits.npz"
classes = 3
declared_size = 60
test_is_public = true
public = "2/5"
[features]
name = "pixels"
full_scale = 16
[entities]
count = 3
largest = 40
epsilons = [1.0, 3.0]
[votes]
queries = 12
[student]
model = "mlp"
rounds = 1
epochs = 1
batch = 16
neighbours = 4
[engine]
kind = "serial"
[privacy]
epsilon = 3
""",
}
BUDGETS = {name: Budget(20, 1e-5) for name in RECIPES} | {
    "persons": Budget(20, 1e-5, Pair.parse("person/add-or-remove"))
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The second release of a recipe, so that its data set has paid for more than itself."""
    kept = {}

    def bundle(name: str) -> Path:
        if name not in kept:
            folder = tmp_path_factory.mktemp(name)
            x, y = pictures(600)
            few = y < 3
            owners = np.array([f"p{i // 2}" for i in range(few.sum())])
            named = {"persons": owners} if name == "persons" else {}
            (folder / "visits.csv").write_text(csv_text(visits(400)))
            np.savez(folder / "digits.npz", x=x[few], y=y[few], **named)
            (folder / "recipe.toml").write_text(RECIPES[name])
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("STILLROOM_HOME", str(folder / "home"))
                use_quick_exporter(patch)
                release(folder / "recipe.toml", folder / "first", budget=BUDGETS[name])
                release(folder / "recipe.toml", folder / "second")
            kept[name] = folder / "second"
        return kept[name]

    return bundle


@pytest.fixture
def bundle(made, tmp_path):
    """A copy of the direct release, to spoil."""
    return Path(shutil.copytree(made("direct"), tmp_path / "bundle"))


def certificate_of(folder: Path):
    return json.loads((folder / "certificate.json").read_text())


def accepted(folder: Path, wanted=lambda path: True) -> dict[str, list[str]]:
    """The fields of which another value verifies, and which changes those were."""
    document = certificate_of(folder)
    picture = picture_of(document, (folder / "card.html").read_bytes(), folder)
    found: dict[str, list[str]] = {}
    tried = 0
    for how, path, changed in mutations(document):
        if path == ("digest",) or not wanted(path):
            continue  # the forger makes the digest anew
        tried += 1
        forge(folder, changed, picture)
        with suppress(DoesNotVerify):
            verify(folder)
            found.setdefault(pattern(path), []).append(how)
    assert tried > 20
    return found


def beyond(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """What no honest verifier accepts: other fields, and text that a terminal would act on."""
    return {
        name: hows
        for name, hows in found.items()
        if name not in WORDS or any(how.startswith("with '\\") for how in hows)
    }


@pytest.mark.parametrize("name", ["direct", pytest.param("persons", marks=pytest.mark.slow)])
def test_no_field_can_be_changed_but_the_releasers_word(made, tmp_path, name):
    folder = Path(shutil.copytree(made(name), tmp_path / "bundle"))
    assert verify(folder)["verifies"]
    assert beyond(accepted(folder)) == {}


def test_no_field_of_a_table_can_be_changed(made, tmp_path):
    """The schema stands in the recipe, in both of the model's files and in the certificate."""
    folder = Path(shutil.copytree(made("table"), tmp_path / "bundle"))
    assert verify(folder)["verifies"]
    assert beyond(accepted(folder, lambda path: path[0] == "artefacts")) == {}


COMPANY = ("sections", "facts", "unprotected", "headline", "artefacts")


@pytest.mark.slow
@pytest.mark.parametrize("fields", [COMPANY, None], ids=["company", "all"])
def test_no_field_of_a_comparison_can_be_changed_but_the_releasers_word(made, tmp_path, fields):
    folder = Path(shutil.copytree(made("rona"), tmp_path / "bundle"))
    assert verify(folder)["verifies"]
    assert beyond(accepted(folder, lambda path: fields is None or path[0] in fields)) == {}


@pytest.mark.slow
def test_no_field_of_many_entities_can_be_changed_but_the_releasers_word(made, tmp_path):
    """What is said of all, and of the second of three, which stopped early or did not."""
    folder = Path(shutil.copytree(made("votes"), tmp_path / "bundle"))
    assert verify(folder)["verifies"]
    assert beyond(accepted(folder, lambda path: path[:1] != ("parties",) or 1 in path[1:2])) == {}


def test_the_short_list_is_what_verify_prints(made):
    places = [name.removeprefix("parties[].").removeprefix("sections.") for name in WORDS]
    assert {name.partition(".")[0].partition("[")[0] for name in places} <= set(WORD)
    report = verify(made("direct"))
    assert set(report["word"]) <= set(WORD)
    assert {"blocks", "data_set", "evaluation", "versions"} <= set(report["word"])


# -- the audit's own forgeries ------------------------------------------------------------------


def refused(folder, **words):
    with pytest.raises(DoesNotVerify, **words) as caught:
        verify(folder)
    assert caught.value.exit_code == 4


def test_a_second_line_for_a_pair_and_delta_is_refused(bundle):
    """A duplicate made `verify` print epsilon 0.101 for events that cost 2.000."""
    document = certificate_of(bundle)
    line = dict(document["parties"][0]["guarantees"][0], epsilon=0.101, PLD=0.101)
    document["parties"][0]["guarantees"].append(line)
    document["headline"] = document["parties"][0]["headline"] = line
    forge(bundle, document, None)
    refused(bundle, match="not what the events cost")


@pytest.mark.parametrize("factor", [0.999, 0.99999, 1 - 1e-7])
def test_every_epsilon_a_little_lower_is_refused(bundle, factor):
    document = certificate_of(bundle)
    (party,) = document["parties"]
    for line in [document["headline"], party["headline"], *party["guarantees"]]:
        for figure in ("epsilon", "PLD", "RDP"):
            line[figure] *= factor
    for total in party["data_set"]["totals"]:
        total["spent"] *= factor
    forge(bundle, document, None)
    refused(bundle)


def test_a_total_at_nearly_the_same_delta_is_refused(bundle):
    """At another delta the total was compared with nothing."""
    document = certificate_of(bundle)
    told = document["parties"][0]["data_set"]
    total, budget = told["totals"][0], told["budgets"][0]
    total["delta"] = budget["delta"] = 1.0000001e-5
    total["spent"] = 0.1
    forge(bundle, document, None)
    refused(bundle, match="total")


@pytest.mark.parametrize("field", ["assumptions", "warnings", "unprotected", "public_knowledge"])
def test_an_emptied_list_is_refused(made, tmp_path, field):
    folder = Path(shutil.copytree(made("rona"), tmp_path / "bundle"))
    document = certificate_of(folder)
    picture = picture_of(document, (folder / "card.html").read_bytes(), folder)
    if not document[field]:
        document["facts"]["learnt"] = False  # what the warning rests on
    document[field] = type(document[field])()
    forge(folder, document, picture)
    refused(folder)


@pytest.mark.parametrize("text", ["epsilon = 0.1", "epsilon = 30", "epsilon = 2.9"])
def test_a_recipe_that_states_another_epsilon_is_refused(bundle, text):
    _with_recipe(bundle, "epsilon = 3", text, asked=float(text.split()[-1]))


def test_a_recipe_with_another_plan_is_refused(bundle):
    for old, new in (
        ("steps = 3", "steps = 2"),
        ("rate = 1", 'rate = "1/2"'),
        ("[training]", '[training]\nclip = "1/4"'),
        ("[training]", "[training]\nclass_weights = [1, 1, 0.5]"),
        ("[data]", "[data]\npositive = '1'"),
        ("[privacy]", "[privacy]\nevaluation_sigma = 7"),
        ("test_is_public = false", "test_is_public = true"),
        ('name = "pixels"', 'name = "edges"'),
        ("[privacy]", "[privacy]\ntuning = 'none'"),
        ("[data]", "[data]\nunit = 'person'"),
    ):
        _with_recipe(bundle, old, new)


def _with_recipe(bundle, old, new, **changes):
    """Another recipe, with a certificate that binds it by hash."""
    honest = (bundle / "recipe.toml").read_text()
    before = certificate_of(bundle)
    assert old in honest
    (bundle / "recipe.toml").write_text(honest.replace(old, new, 1))
    document = {**certificate_of(bundle), **changes}
    document["recipe"] = files.sha256((bundle / "recipe.toml").read_bytes())
    forge(bundle, document, None)
    refused(bundle, match=r"recipe\.toml")
    (bundle / "recipe.toml").write_text(honest)
    forge(bundle, before, None)


def test_a_compact_file_that_the_recipe_does_not_ask_for_is_refused(made, tmp_path):
    folder = Path(shutil.copytree(made("rona"), tmp_path / "bundle"))
    document = certificate_of(folder)
    picture = picture_of(document, (folder / "card.html").read_bytes(), folder)
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text().replace('[compression]\nkept = "1/3"\n', ""))
    document["recipe"] = files.sha256(recipe.read_bytes())
    forge(folder, document, picture)
    refused(folder, match=r"recipe\.toml comes to: artefacts")


def test_a_key_that_stands_there_twice_is_refused(bundle):
    text = (bundle / "certificate.json").read_text()
    (bundle / "certificate.json").write_text(
        text.replace(',\n "asked"', ',\n "asked": 1,\n "asked"')
    )
    assert text != (bundle / "certificate.json").read_text()
    rehash(bundle)
    refused(bundle, match="each key once")


def test_another_spelling_is_refused(bundle):
    text = (bundle / "certificate.json").read_text()
    (bundle / "certificate.json").write_text(text + " ")
    rehash(bundle)
    refused(bundle, match="spelled")


def test_a_card_that_shows_another_epsilon_is_refused(bundle):
    card = (bundle / "card.html").read_text()
    shown = f'<p class="figure">{certificate_of(bundle)["headline"]["epsilon"]:.2f}'[:-1]
    assert shown in card
    (bundle / "card.html").write_text(card.replace(shown, '<p class="figure">0.1'))
    rehash(bundle)
    refused(bundle, match=r"card\.html does not show")
    # Whoever doubts a card makes it again.
    assert new_card(bundle) == card


def test_a_card_of_another_version_is_not_checked_and_can_be_made_again(bundle):
    document = certificate_of(bundle)
    document["versions"]["stillroom"] = document["method"]["version"] = "0.0.1"
    forge(bundle, document, None)
    (bundle / "card.html").write_text("<p>an older page</p>")
    rehash(bundle)
    report = verify(bundle)
    assert "not checked" in report["card"]
    assert "stillroom card" in report["card"]
    assert "Certified" in new_card(bundle)


def test_pictures_on_a_card_are_bound(made, tmp_path):
    folder = Path(shutil.copytree(made("rona"), tmp_path / "bundle"))
    card = (folder / "card.html").read_text()
    (folder / "card.html").write_text(card.replace("iVBORw0KGgo", "iVBORw0KGgp", 1))
    assert card != (folder / "card.html").read_text()
    rehash(folder)
    refused(folder, match="pictures")


def test_older_certificates_are_named_as_what_they_are(bundle):
    document = certificate_of(bundle)
    for version in (1, 2):
        document["version"] = version
        forge(bundle, document, None)
        refused(bundle, match="could be too small")
    for version in (3, 4):  # as which it makes no sense
        document["version"] = version
        forge(bundle, document, None)
        refused(bundle, match=r"certificate\.json")


# -- other processors ---------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("share", [0.99, 1.01])
def test_a_certificate_of_another_processor_verifies(made, tmp_path, monkeypatch, sign, share):
    """Its transforms erred by as much as is set aside for it, in either direction, or by more.

    The certificate is made again with loss distributions whose deltas are off by that much.
    """
    folder = Path(shutil.copytree(made("direct"), tmp_path / "bundle"))
    honest = Price.guarantee
    document = certificate_of(folder)

    def perturbed(self, delta):
        from stillroom.gate import accounting

        composed = accounting._composed(self.lines, accounting._twin(self.lines, self.pair))
        off = 0.0 if composed is None else sign * share * composed.hidden_delta
        moved = accounting._guarantee(self, delta + off)
        return Guarantee(
            moved.pair, moved.epsilon, delta, moved.accountant,
            {**moved.by_accountant, "RDP": honest(self, delta).by_accountant["RDP"]},
        )  # fmt: skip

    contents = {name: (folder / name).read_bytes() for name in files.LISTED}
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(Price, "guarantee", perturbed)
        other = certificates.completed(document, contents)
    assert other["headline"]["epsilon"] != document["headline"]["epsilon"]
    forge(folder, json.loads(json.dumps(other)), None)
    # Two processors that err by all that is set aside, in opposite directions, still agree.
    assert verify(folder)["verifies"]


def test_beyond_what_two_processors_can_differ_it_does_not_verify(made, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(made("direct"), tmp_path / "bundle"))
    document = certificate_of(folder)
    low, _ = _cost(document).range(1e-5)
    (party,) = document["parties"]
    for line in [document["headline"], party["headline"], party["guarantees"][0]]:
        line["epsilon"] = line["PLD"] = low.by_accountant["PLD"] * (1 - 1e-6)
    forge(folder, document, None)
    refused(folder, match="not what the events cost")


def _cost(document):
    from stillroom.gate.accounting import fold, price
    from stillroom.gate.events import lines_from_json

    return price(
        fold(lines_from_json(document["parties"][0]["events"])), Pair.parse("record/add-or-remove")
    )


# -- mutants: verifiers that believe something ----------------------------------------------------


def believes_a_thousandth(patch):
    honest = figures.Figures._between

    def lenient(self, stated, own, least, most):
        return honest(self, stated, own, least and least * 0.998, most and most * 1.002)

    patch.setattr(figures.Figures, "_between", lenient)


def believes_totals(patch):
    patch.setattr(
        figures.Figures, "total",
        lambda self, cost, delta, *, single: files.number(
            self.totals.get(str(cost.pair), {}).get("spent", 99)
        ),
    )  # fmt: skip


def believes_the_recipe_apart(patch):
    patch.setattr(pipeline_verify, "_contradictions", lambda bundle: iter(()))


def believes_the_card(patch):
    patch.setattr(verifier, "_check_card", lambda *given: "not looked at")


def believes_what_cannot_be_printed(patch):
    patch.setattr(files, "_refuse_unprintable", lambda value: None)


BELIEVERS = {
    believes_a_thousandth: [("guarantees",)],
    believes_totals: [("data_set",)],
    believes_the_recipe_apart: [("assumptions",), ("tuning",), ("purpose",), ("warnings",)],
    believes_what_cannot_be_printed: [("data_set",)],
}


@pytest.mark.parametrize("mutant", BELIEVERS, ids=lambda mutant: mutant.__name__)
def test_the_fuzz_finds(bundle, monkeypatch, mutant):
    mutant(monkeypatch)
    found = accepted(
        bundle, lambda path: path[2 if path[0] == "parties" else 0 :][:1] in BELIEVERS[mutant]
    )
    assert beyond(found), "the mutant passed for an honest verifier"


def test_the_card_check_finds(bundle, monkeypatch):
    believes_the_card(monkeypatch)
    (bundle / "card.html").write_text("<p>epsilon 0.10</p>")
    rehash(bundle)
    assert verify(bundle)["verifies"], "this is what the honest verifier refuses"
    monkeypatch.undo()
    refused(bundle, match=r"card\.html")
