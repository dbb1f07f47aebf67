"""Bundles that versions 3 to 5 of the certificate really were: read, priced, and some refused.

Those of version 3 were made by the code from before the defects were mended, on 300 made-up
records: `record` (the second release of its ledger), `charged` (a sensitive test part), `person`
(two records per person, sensitive test part), `content` (no column of ids), `network` (clipped
gradients of a whole network).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from release.making import remanifest
from stillroom.cli import run
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.pipeline.verify import new_card, verify
from stillroom.release import verify_bundle
from stillroom.release.files import digest, to_bytes
from stillroom.release.predict import predict

OLDER = Path(__file__).parent / "older"
WHOLE = ["v3-record", "v3-charged", *(f"v4-{n}" for n in ("record", "charged", "person"))]
WHOLE += ["v4-content", "v4-network", "v5-record", "v5-charged"]
DEFECTS = {
    "v3-person": "a person's tested records in one cell",
    "v3-content": "record/change with ids made from content",
    "v3-network": "whole networks",
}


def test_every_bundle_is_looked_at():
    assert {folder.name for folder in OLDER.iterdir()} == {*WHOLE, *DEFECTS}


@pytest.mark.parametrize("name", WHOLE)
def test_an_older_bundle_is_priced_again(name, capsys):
    report = verify(OLDER / name)
    assert report["verifies"]
    assert report["card"] == "made by an older version: the recipe and the card are not compared"
    assert report == verify_bundle(OLDER / name)
    (party,) = report["parties"]
    assert {line["delta"] for line in party["guarantees"]} == {1e-5, 1e-6, 1e-8, 1e-10}
    for line in party["guarantees"]:
        assert 0 < line["priced_again"] == pytest.approx(line["epsilon"], rel=1e-6)
    assert report["headline"]["epsilon"] <= 2
    assert report["reserved"] == report["drawn"]
    assert report["word"] == {"certificate": "all of it but its files, its events and their prices"}
    assert run(["verify", str(OLDER / name)]) == 0
    told = capsys.readouterr().out
    assert "made by an older version" in told
    assert "the releaser's word" in told


@pytest.mark.parametrize(("name", "defect"), DEFECTS.items())
def test_a_defect_is_named(name, defect, capsys):
    with pytest.raises(DoesNotVerify, match=defect) as caught:
        verify(OLDER / name)
    assert caught.value.exit_code == 4
    assert run(["verify", str(OLDER / name)]) == 4
    assert defect in capsys.readouterr().err


@pytest.mark.parametrize("name", ["v3-record", "v4-record"])
def test_an_older_model_is_still_used_and_gets_no_new_card(name):
    labels, logits = predict(OLDER / name, np.ones((2, 12)))
    assert logits.shape == (2, 3)
    assert len(labels) == 2
    with pytest.raises(BadInput, match="older version"):
        new_card(OLDER / name)


def _smaller_epsilon(certificate):
    for line in [certificate["headline"], *certificate["guarantees"]]:
        line["epsilon"] *= 0.999
        line["PLD"] *= 0.999


def _cheaper_noise(certificate):
    certificate["events"][0]["sigma_squared"] = "1e9"


def _more_noise_reserved(certificate):
    certificate["blocks"][0]["wishes"][0]["mechanism"]["sigma"] = "99999999"


def _fewer_reserved(certificate):
    wish = certificate["blocks"][0]["wishes"][0]
    for counts in (wish, certificate["blocks"][0]):
        counts["reserved"] -= 1


def _more_drawn(certificate):
    for counts in (certificate["blocks"][0], certificate["blocks"][0]["wishes"][0]):
        counts["drawn"] += 1


def _counts_that_do_not_add_up(certificate):
    certificate["blocks"][0]["lost"] = 1


def _another_line(certificate):
    line = dict(certificate["guarantees"][0], epsilon=0.1, PLD=0.1)
    certificate["guarantees"].append(line)


def _one_line_less(certificate):
    certificate["guarantees"].pop()


def _better_headline(certificate):
    certificate["headline"] = dict(certificate["headline"], epsilon=0.01)


def _smaller_total(certificate):
    certificate["data_set"]["totals"][0]["spent"] = 0.01


def _another_model(certificate):
    certificate["model"]["files"]["model.onnx"] = "0" * 64


def _another_size(certificate):
    certificate["model"]["size"] += 1


def _failed(certificate):
    certificate["assumptions"]["integer sums"] = "failed: too long"


def _seeded(certificate):
    certificate["blocks"][0]["noise"] = "test"


def _void(certificate):
    certificate["status"] = "void"


def _no_blocks(certificate):
    del certificate["blocks"]


def _many_wishes(certificate):
    certificate["blocks"][0]["wishes"] *= 2000


EDITS = [
    *[_smaller_epsilon, _cheaper_noise, _more_noise_reserved, _fewer_reserved, _more_drawn],
    *[_counts_that_do_not_add_up, _another_line, _one_line_less, _better_headline],
    *[_smaller_total, _another_model, _another_size, _failed, _seeded, _void, _no_blocks],
    _many_wishes,
]


@pytest.mark.parametrize("name", ["v3-record", "v4-record"])
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edited_older_certificate_does_not_verify(tmp_path, name, edit):
    bundle = Path(shutil.copytree(OLDER / name, tmp_path / "bundle"))
    certificate = json.loads((bundle / "certificate.json").read_text())
    edit(certificate)
    certificate["digest"] = digest(certificate)
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match=r"certificate\.json"):
        verify(bundle)


@pytest.mark.parametrize("name", ["v3-record", "v4-record"])
def test_an_older_digest_and_every_file_are_checked(tmp_path, name):
    bundle = Path(shutil.copytree(OLDER / name, tmp_path / "bundle"))
    certificate = json.loads((bundle / "certificate.json").read_text())
    certificate["digest"] = "0" * 64
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    with pytest.raises(DoesNotVerify, match=r"not the file that was released"):
        verify(bundle)
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match="digest"):
        verify(bundle)


def test_a_line_that_content_ids_do_not_support_is_refused_in_version_4(tmp_path):
    bundle = Path(shutil.copytree(OLDER / "v4-record", tmp_path / "bundle"))
    certificate = json.loads((bundle / "certificate.json").read_text())
    certificate["data_set"]["ids"] = "from content"
    certificate["digest"] = digest(certificate)
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    remanifest(bundle)
    with pytest.raises(DoesNotVerify):
        verify(bundle)


def _better_accuracy(certificate):
    certificate["sections"]["evaluation"]["accuracy"] = 0.99


def _another_count(certificate):
    certificate["sections"]["evaluation"]["confusion"][0][1] += 1


def _measures_of_today(certificate):
    certificate["sections"]["evaluation"]["measures"] = None


def _cheaper_party(certificate):
    for line in (certificate["headline"], certificate["parties"][0]["headline"]):
        line["epsilon"] = 0.01


def _emptied(certificate):
    certificate["unprotected"] = []


OF_FIVE = [_better_accuracy, _another_count, _measures_of_today, _cheaper_party, _emptied]


@pytest.mark.parametrize("edit", OF_FIVE, ids=lambda edit: edit.__name__)
def test_of_version_5_everything_is_derived_again(tmp_path, edit):
    bundle = Path(shutil.copytree(OLDER / "v5-record", tmp_path / "bundle"))
    certificate = json.loads((bundle / "certificate.json").read_text())
    edit(certificate)
    certificate["digest"] = digest(certificate)
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match=r"certificate\.json"):
        verify(bundle)
