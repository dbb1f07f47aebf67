"""A bundle verifies as written: its price is its ledger's, and it appears whole or not at all."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sqlite3

import numpy as np
import pytest

from release.making import IDS, RECIPE, SUM, linear, make
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Gate
from stillroom.gate.entropy import SeededEntropy
from stillroom.release import verify_bundle, write_bundle
from stillroom.release.files import LISTED, MANIFEST
from stillroom.vocabulary import Unit


def test_a_bundle_verifies(bundle):
    assert sorted(file.name for file in bundle.iterdir()) == sorted([*LISTED, MANIFEST])
    report = verify_bundle(bundle)
    assert report["verifies"]
    assert report["signature"].startswith("none")
    assert report["headline"]["for"] == "record/add-or-remove"
    assert (report["reserved"], report["drawn"], report["lost"]) == (3, 3, 0)
    (party,) = report["parties"]
    assert {line["delta"] for line in party["guarantees"]} == {1e-5, 1e-6, 1e-8, 1e-10}
    for line in party["guarantees"]:
        assert line["epsilon"] == line["priced_again"]
        assert line["epsilon"] <= min(line["PLD"], line["RDP"])


def test_the_price_is_that_of_all_blocks_together(tmp_path):
    made = make(tmp_path)
    gate = Gate(made.parties[0].ledger, ids=IDS)
    second = gate.reserve(SUM, 2, recipe=RECIPE).block
    alone = write_bundle(make(tmp_path / "one"), tmp_path / "alone")
    both = with_blocks(made, (*made.parties[0].blocks, second))
    certificate = write_bundle(both, tmp_path / "both")
    assert certificate["headline"]["epsilon"] > alone["headline"]["epsilon"]
    assert [block["reserved"] for block in certificate["parties"][0]["blocks"]] == [3, 2]
    assert [event["count"] for event in certificate["parties"][0]["events"]] == [5]
    first = with_blocks(made, made.parties[0].blocks)
    again = write_bundle(first, tmp_path / "again")
    assert again["headline"] == alone["headline"]
    told = again["parties"][0]["data_set"]
    assert told["blocks"] == 2  # the total counts the other release too (L6)
    assert told["totals"][0]["spent"] > again["headline"]["epsilon"]


def with_blocks(made, blocks):
    (party,) = made.parties
    return dataclasses.replace(made, parties=(dataclasses.replace(party, blocks=blocks),))


def test_a_missing_folder_is_bad_input(tmp_path):
    with pytest.raises(BadInput):
        verify_bundle(tmp_path / "nowhere")


def test_seeded_noise_is_void(tmp_path):
    certificate = write_bundle(make(tmp_path, entropy=SeededEntropy(1)), tmp_path / "bundle")
    assert certificate["status"] == "void"
    assert {line["epsilon"] for line in certificate["parties"][0]["guarantees"]} == {"infinite"}
    assert certificate["headline"]["epsilon"] == "infinite"
    with pytest.raises(DoesNotVerify, match="void"):
        verify_bundle(tmp_path / "bundle")
    assert "Void" in (tmp_path / "bundle" / "card.html").read_text()


def test_a_failed_assumption_is_refused(tmp_path):
    with pytest.raises(DoesNotVerify, match="clipping"):
        make(tmp_path, assumptions={"clipping": "failed: a norm was too large"})


def test_a_block_that_is_none_is_refused(tmp_path):
    made = with_blocks(make(tmp_path), (1,))
    with pytest.raises(DoesNotVerify, match="block 1"):
        write_bundle(made, tmp_path / "bundle")
    with pytest.raises(DoesNotVerify, match="no block"):
        write_bundle(with_blocks(made, ()), tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(("block", "count"), [(999, 1), (None, 5)])
def test_draws_without_payment_are_refused(tmp_path, block, count):
    made = make(tmp_path)
    (party,) = made.parties
    with party.ledger.store.transaction():
        party.ledger.store.append("draw", {"wish": 0, "count": count}, block or party.blocks[0])
    with pytest.raises(DoesNotVerify, match=r"no block|more than"):
        write_bundle(made, tmp_path / "bundle")


def test_lost_steps_are_counted(tmp_path):
    made = make(tmp_path, steps=1)
    made.parties[0].ledger.begin_draw(made.parties[0].blocks[0], 0, (SUM, 3), 1)
    certificate = write_bundle(made, tmp_path / "bundle")
    (block,) = certificate["parties"][0]["blocks"]
    assert (block["drawn"], block["lost"]) == (2, 1)
    assert verify_bundle(tmp_path / "bundle")["lost"] == 1
    assert "1 reserved step was lost" in (tmp_path / "bundle" / "card.html").read_text()


def test_a_unit_without_proof_is_infinite(tmp_path):
    certificate = write_bundle(make(tmp_path, unit=Unit.PERSON), tmp_path / "bundle")
    assert certificate["headline"]["epsilon"] == "infinite"
    assert verify_bundle(tmp_path / "bundle")["headline"]["unit"] == "person"


def test_a_folder_is_never_overwritten(tmp_path, bundle):
    made = make(tmp_path)
    with pytest.raises(BadInput):
        write_bundle(made, bundle)
    (tmp_path / "empty").mkdir()
    write_bundle(made, tmp_path / "empty")
    assert verify_bundle(tmp_path / "empty")["verifies"]
    assert not list(tmp_path.glob(".*draft"))


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    made = make(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="No space left"):
        write_bundle(made, tmp_path / "bundle")
    assert [file for file in tmp_path.iterdir() if file.is_dir()] == []


def test_a_folder_that_cannot_be_replaced_is_filled(tmp_path, monkeypatch):
    def busy(source, target):
        raise OSError(16, "Device or resource busy")

    made = make(tmp_path)
    (tmp_path / "bundle").mkdir()
    monkeypatch.setattr(os, "rename", busy)
    monkeypatch.setattr(shutil, "move", lambda source, target: os.replace(source, target))
    write_bundle(made, tmp_path / "bundle")
    assert verify_bundle(tmp_path / "bundle")["verifies"]
    assert not list(tmp_path.glob(".*draft"))


def test_drafts_of_the_dead_are_swept(tmp_path):
    (tmp_path / ".bundle.999999999.draft").mkdir()
    write_bundle(make(tmp_path), tmp_path / "bundle")
    assert not list(tmp_path.glob(".*draft"))


def test_the_model_can_be_read_back(tmp_path, original):
    from safetensors.numpy import load_file

    assert np.array_equal(load_file(original / "model.safetensors")["weights"], linear().weights)
    assert (original / "recipe.toml").read_text() == RECIPE


def test_a_changed_ledger_gets_no_certificate(tmp_path):
    made = make(tmp_path)
    made.parties[0].ledger.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as file:
        file.execute("DROP TRIGGER rows_never_update")
        file.execute("UPDATE rows SET body = replace(body, '\"count\":3', '\"count\":1')")
    file.close()
    with pytest.raises(DoesNotVerify):
        write_bundle(made, tmp_path / "bundle")
