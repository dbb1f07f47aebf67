"""Several parties, several artefacts, and sections that nobody here knows."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from release.making import certificate_of, forge, make
from stillroom.cli import run
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import GaussianSum
from stillroom.release import Artefact, Party, verify_bundle, write_bundle
from stillroom.release.card import card_html

CHEAP = GaussianSum(sigma=400, width=4, squared_norm=100)


@pytest.fixture
def two(tmp_path):
    """A release of two hospitals, the second of which paid less."""
    first, second = make(tmp_path / "a"), make(tmp_path / "b", mechanism=CHEAP)
    parties = tuple(
        Party(name, made.parties[0].ledger, made.parties[0].blocks)
        for name, made in (("north", first), ("south", second))
    )
    return dataclasses.replace(first, parties=parties)


def test_each_party_has_its_own_figures_and_the_worst_is_the_headline(two, tmp_path, capsys):
    certificate = write_bundle(two, tmp_path / "bundle")
    north, south = certificate["parties"]
    assert (north["name"], south["name"]) == ("north", "south")
    assert north["headline"]["epsilon"] > south["headline"]["epsilon"] > 0
    assert certificate["headline"] == north["headline"]
    report = verify_bundle(tmp_path / "bundle")
    assert [party["name"] for party in report["parties"]] == ["north", "south"]
    assert report["reserved"] == 6
    card = (tmp_path / "bundle" / "card.html").read_text()
    for name in ("north", "south"):
        assert f"Every figure of this release: {name}" in card
        assert f"Ledger of {name}" in card
    certificate["headline"] = south["headline"]
    forge(tmp_path / "bundle", certificate)
    with pytest.raises(DoesNotVerify, match="headline"):
        verify_bundle(tmp_path / "bundle")


@pytest.mark.parametrize("names", [("north", "north"), ("", "south")])
def test_parties_need_names_of_their_own(two, tmp_path, names):
    parties = [dataclasses.replace(p, name=n) for p, n in zip(two.parties, names, strict=True)]
    with pytest.raises(BadInput, match="names"):
        write_bundle(dataclasses.replace(two, parties=tuple(parties)), tmp_path / "bundle")


def test_one_ledger_is_one_party(two, tmp_path):
    """Two halves of one ledger would each have a smaller figure than the whole."""
    first = two.parties[0]
    twice = (first, dataclasses.replace(first, name="south"))
    with pytest.raises(BadInput, match="ledgers"):
        write_bundle(dataclasses.replace(two, parties=twice), tmp_path / "bundle")


def test_parties_share_a_purpose(tmp_path):
    first, second = make(tmp_path / "a"), make(tmp_path / "b", purpose="benchmark")
    with pytest.raises(BadInput, match="purpose"):
        dataclasses.replace(first, parties=(*first.parties, *second.parties))


def test_void_noise_of_one_party_voids_the_release(two, tmp_path):
    from stillroom.gate.entropy import SeededEntropy

    seeded = make(tmp_path / "c", entropy=SeededEntropy(1)).parties[0]
    parties = (two.parties[0], dataclasses.replace(seeded, name="south"))
    certificate = write_bundle(dataclasses.replace(two, parties=parties), tmp_path / "bundle")
    assert certificate["status"] == "void"
    assert certificate["headline"]["epsilon"] == "infinite"


def test_wishes_without_a_name_are_numbered(original):
    wishes = certificate_of(original)["parties"][0]["blocks"][0]["wishes"]
    assert [wish["name"] for wish in wishes] == ["wish 1"]


def parameters(name="means", kind="parameters"):
    return Artefact(name, kind, "the means of <ten> classes", 6, {"means": np.ones((2, 3))})


def test_artefacts_beside_a_classifier(tmp_path):
    made = make(tmp_path)
    record = dataclasses.replace(made, artefacts=(parameters(), *made.artefacts))
    certificate = write_bundle(record, tmp_path / "bundle")
    model, means = certificate["artefacts"]
    assert (means["name"], means["kind"], list(means["files"])) == (
        *("means", "parameters"),
        ["means.safetensors"],
    )
    assert model["kind"] == "classifier"
    assert verify_bundle(tmp_path / "bundle")["verifies"]
    assert "the means of &lt;ten&gt; classes" in (tmp_path / "bundle" / "card.html").read_text()
    (tmp_path / "bundle" / "means.safetensors").unlink()
    with pytest.raises(DoesNotVerify, match=r"means\.safetensors"):
        verify_bundle(tmp_path / "bundle")


def test_a_release_without_a_classifier(tmp_path):
    made = make(tmp_path, evaluation=None)
    record = dataclasses.replace(made, artefacts=(parameters(),))
    write_bundle(record, tmp_path / "bundle")
    assert verify_bundle(tmp_path / "bundle")["artefacts"][0]["kind"] == "parameters"
    assert run(["predict", str(tmp_path / "bundle"), "digits"]) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "oracle"},
        {"name": "../up"},
        {"name": "Model"},
        {"kind": "classifier"},
        {"kind": "generator"},
    ],
    ids=str,
)
def test_what_is_no_artefact_is_refused(changes):
    with pytest.raises(BadInput):
        parameters(**changes)


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(BadInput, match="finite"):
        dataclasses.replace(parameters(), tensors={"means": np.array([np.nan])})


def test_a_section_of_another_package_is_kept_and_named_as_not_checked(tmp_path, capsys):
    made = make(tmp_path)
    sections = {**made.sections, "votes:tally": {"rounds": 3}}
    record = dataclasses.replace(made, sections=sections, versions={"votes": "1.2"})
    certificate = write_bundle(record, tmp_path / "bundle")
    assert certificate["sections"]["votes:tally"] == {"rounds": 3}
    report = verify_bundle(tmp_path / "bundle")
    assert report["not_checked"] == ["not checked: section tally of votes 1.2"]
    card = (tmp_path / "bundle" / "card.html").read_text()
    assert "not checked: section tally of votes 1.2" in card


def test_a_section_of_a_later_version_is_named_too(original, tmp_path):
    import shutil

    bundle = shutil.copytree(original, tmp_path / "bundle")
    certificate = certificate_of(bundle)
    certificate["sections"]["audit"] = {"epsilon": 0.43217}
    certificate["versions"]["stillroom"] = certificate["method"]["version"] = "9.0"
    forge(bundle, certificate)
    report = verify_bundle(bundle)
    assert report["not_checked"] == ["not checked: section audit of stillroom 9.0"]
    assert "0.43217" not in card_html(certificate).split("</style>")[1]


def test_a_section_whose_package_has_no_version_is_refused(tmp_path):
    made = make(tmp_path)
    record = dataclasses.replace(made, sections={**made.sections, "votes:tally": {"rounds": 3}})
    with pytest.raises(BadInput, match="version"):
        write_bundle(record, tmp_path / "bundle")


def test_a_method_says_where_it_came_from(tmp_path):
    made = make(tmp_path, package="votes", versions={"votes": "1.2"})
    certificate = write_bundle(made, tmp_path / "bundle")
    assert certificate["method"] == {"name": "direct", "package": "votes", "version": "1.2"}
    certificate["method"]["version"] = "1.3"
    forge(tmp_path / "bundle", certificate)
    with pytest.raises(DoesNotVerify, match="method"):
        verify_bundle(tmp_path / "bundle")


def test_only_a_card_loads_the_templates():
    import subprocess

    code = "import sys, stillroom.cli, stillroom.cli.app, stillroom.release; "
    code += "raise SystemExit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
