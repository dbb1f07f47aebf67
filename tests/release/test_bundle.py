"""A bundle verifies as written, and after no change at all."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from release.making import IDS, RECIPE, SUM, make
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Gate
from stillroom.gate.entropy import SeededEntropy
from stillroom.release import Evaluation, verify_bundle, write_bundle
from stillroom.release.card import card_html
from stillroom.release.files import LISTED, MANIFEST, digest, to_bytes
from stillroom.release.keys import make_keys, read_private, read_public
from stillroom.release.manifest import make_manifest
from stillroom.vocabulary import Unit


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    write_bundle(make(folder), folder / "bundle")
    return folder / "bundle"


@pytest.fixture
def bundle(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "bundle"))


def certificate_of(bundle):
    return json.loads((bundle / "certificate.json").read_text())


def forge(bundle, certificate):
    """Put a certificate into a bundle as a careful forger without a key would."""
    certificate["digest"] = digest(certificate)
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    (bundle / "card.html").write_text(card_html(certificate))
    remanifest(bundle)


def remanifest(bundle):
    contents = {name: (bundle / name).read_bytes() for name in LISTED}
    (bundle / MANIFEST).write_bytes(to_bytes(make_manifest(contents, None)))


def test_a_bundle_verifies(bundle):
    assert sorted(file.name for file in bundle.iterdir()) == sorted([*LISTED, MANIFEST])
    report = verify_bundle(bundle)
    assert report["verifies"]
    assert report["signature"].startswith("none")
    assert report["headline"]["for"] == "record/add-or-remove"
    assert (report["reserved"], report["drawn"], report["lost"]) == (3, 3, 0)
    assert {line["delta"] for line in report["guarantees"]} == {1e-5, 1e-6, 1e-8, 1e-10}
    for line in report["guarantees"]:
        assert line["epsilon"] == line["priced_again"]
        assert line["epsilon"] <= min(line["PLD"], line["RDP"])


def test_the_price_is_that_of_all_blocks_together(tmp_path):
    made = make(tmp_path)
    gate = Gate(made.ledger, ids=IDS)
    second = gate.reserve(SUM, 2, recipe=RECIPE).block
    alone = write_bundle(make(_folder(tmp_path, "one")), tmp_path / "alone")
    both = make_with_blocks(made, (*made.blocks, second))
    certificate = write_bundle(both, tmp_path / "both")
    assert certificate["headline"]["epsilon"] > alone["headline"]["epsilon"]
    assert [block["reserved"] for block in certificate["blocks"]] == [3, 2]
    assert [event["count"] for event in certificate["events"]] == [5]
    first = make_with_blocks(made, made.blocks)
    again = write_bundle(first, tmp_path / "again")
    assert again["headline"] == alone["headline"]
    assert again["data_set"]["blocks"] == 2  # the total counts the other release too (L6)
    assert again["data_set"]["totals"][0]["spent"] > again["headline"]["epsilon"]


def make_with_blocks(made, blocks):
    return dataclasses.replace(made, blocks=blocks)


def _folder(parent, name):
    (parent / name).mkdir()
    return parent / name


@pytest.mark.parametrize("name", [*LISTED, MANIFEST])
def test_one_flipped_byte_is_found(bundle, name):
    file = bundle / name
    content = file.read_bytes()
    some = {0, len(content) // 3, len(content) // 2, len(content) - 1}
    places = range(len(content)) if name == MANIFEST else sorted(some)
    for place in places:
        for bit in (1, 0x20):
            changed = bytearray(content)
            changed[place] ^= bit
            file.write_bytes(changed)
            with pytest.raises(DoesNotVerify) as caught:
                verify_bundle(bundle)
            assert name in str(caught.value)
            assert caught.value.exit_code == 4


@pytest.mark.parametrize("name", [*LISTED, MANIFEST])
def test_a_missing_file_is_found(bundle, name):
    (bundle / name).unlink()
    with pytest.raises(DoesNotVerify, match=name):
        verify_bundle(bundle)


def test_an_extra_file_is_found(bundle):
    (bundle / "notes.txt").write_text("hello")
    with pytest.raises(DoesNotVerify, match=r"notes\.txt"):
        verify_bundle(bundle)


def test_a_missing_folder_is_bad_input(tmp_path):
    with pytest.raises(BadInput):
        verify_bundle(tmp_path / "nowhere")


def _cheaper_noise(certificate):
    certificate["events"][0]["sigma_squared"] = "160000"


def _fewer_events(certificate):
    certificate["events"][0]["count"] = 1


def _no_events(certificate):
    certificate["events"], certificate["guarantees"] = [], []


def _smaller_sensitivity(certificate):
    bounds = certificate["events"][0]["sensitivity"]
    certificate["events"][0]["sensitivity"] = dict.fromkeys(bounds, "1")


def _cheaper_events_and_mechanism(certificate):
    """Events and what was reserved agree, and the stated figures give it away."""
    _cheaper_noise(certificate)
    certificate["blocks"][0]["wishes"][0]["mechanism"]["sigma"] = "400"


def _smaller_epsilon(certificate):
    for line in [certificate["headline"], *certificate["guarantees"]]:
        line["epsilon"] *= 0.9


def _one_line_less(certificate):
    certificate["guarantees"].pop()


def _better_headline(certificate):
    certificate["headline"]["epsilon"] = 0.01


def _unproven_pair(certificate):
    line = dict(certificate["guarantees"][0], unit="entity")
    certificate["guarantees"].append({**line, "for": "entity/add-or-remove"})


def _more_drawn(certificate):
    for counts in (certificate["blocks"][0], certificate["blocks"][0]["wishes"][0]):
        counts["drawn"] = 4


def _failed_assumption(certificate):
    certificate["assumptions"]["clipping"] = "failed: a norm was too large"


def _unknown_event(certificate):
    certificate["events"][0]["kind"] = "magic"


def _smaller_total(certificate):
    certificate["data_set"]["totals"][0]["spent"] = 0.01


def _odd_shapes(certificate):
    certificate["assumptions"] = ["clipping"]


def _huge_number(certificate):
    certificate["guarantees"][0]["epsilon"] = 10**400


def _no_blocks(certificate):
    del certificate["blocks"]


def _not_a_number(certificate):
    certificate["guarantees"][0]["epsilon"] = "small"


FORGERIES = [
    *[_cheaper_noise, _fewer_events, _no_events, _smaller_sensitivity],
    *[_cheaper_events_and_mechanism, _smaller_epsilon, _one_line_less, _better_headline],
    *[_unproven_pair, _more_drawn, _failed_assumption, _unknown_event, _smaller_total],
]


@pytest.mark.parametrize("edit", FORGERIES, ids=lambda edit: edit.__name__)
def test_an_edited_certificate_does_not_verify(bundle, edit):
    certificate = certificate_of(bundle)
    edit(certificate)
    forge(bundle, certificate)
    with pytest.raises(DoesNotVerify, match=r"certificate\.json"):
        verify_bundle(bundle)


@pytest.mark.parametrize(
    "edit", [_no_blocks, _not_a_number, _odd_shapes, _huge_number], ids=lambda edit: edit.__name__
)
def test_an_unreadable_certificate_does_not_verify(bundle, edit):
    certificate = certificate_of(bundle)
    edit(certificate)
    certificate["digest"] = digest(certificate)
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    (bundle / "card.html").write_text(certificate["digest"])
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match=r"certificate\.json"):
        verify_bundle(bundle)


def test_a_certificate_of_another_model_does_not_verify(bundle, tmp_path):
    made = make(_folder(tmp_path, "other"), shape=(7, 7))
    write_bundle(made, tmp_path / "moved")
    for name in ("certificate.json", "card.html"):
        shutil.copy(tmp_path / "moved" / name, bundle / name)
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match="belongs to another model"):
        verify_bundle(bundle)


def test_a_card_of_another_certificate_does_not_verify(bundle, tmp_path):
    write_bundle(make(_folder(tmp_path, "other")), tmp_path / "moved")
    shutil.copy(tmp_path / "moved" / "card.html", bundle / "card.html")
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match=r"card\.html"):
        verify_bundle(bundle)


def test_signatures(tmp_path, original):
    private, public = make_keys(tmp_path / "mine.key")
    _, other = make_keys(tmp_path / "other.key")
    assert private.stat().st_mode & 0o777 == 0o600
    write_bundle(make(tmp_path), tmp_path / "bundle", read_private(private))
    assert "by the key given" in verify_bundle(tmp_path / "bundle", public)["signature"]
    assert "key in the bundle" in verify_bundle(tmp_path / "bundle")["signature"]
    with pytest.raises(DoesNotVerify, match="another key"):
        verify_bundle(tmp_path / "bundle", other)
    with pytest.raises(DoesNotVerify, match="not signed"):
        verify_bundle(original, public)

    manifest = json.loads((tmp_path / "bundle" / MANIFEST).read_text())
    manifest["signature"]["public_key"] = read_public(other).hex()
    manifest["digest"] = digest(manifest)
    (tmp_path / "bundle" / MANIFEST).write_bytes(to_bytes(manifest))
    with pytest.raises(DoesNotVerify, match="signature"):
        verify_bundle(tmp_path / "bundle")


def test_keys_are_kept_apart_and_private(tmp_path):
    private, public = make_keys(tmp_path / "mine.key")
    with pytest.raises(BadInput):
        make_keys(private)
    with pytest.raises(BadInput):
        read_public(private)
    os.chmod(public, 0o600)
    with pytest.raises(BadInput):
        read_private(public)
    os.chmod(private, 0o644)
    with pytest.raises(BadInput, match="read by others"):
        read_private(private)


def test_seeded_noise_is_void(tmp_path):
    certificate = write_bundle(make(tmp_path, entropy=SeededEntropy(1)), tmp_path / "bundle")
    assert certificate["status"] == "void"
    assert {line["epsilon"] for line in certificate["guarantees"]} == {"infinite"}
    assert certificate["headline"]["epsilon"] == "infinite"
    with pytest.raises(DoesNotVerify, match="void"):
        verify_bundle(tmp_path / "bundle")
    assert "Void" in (tmp_path / "bundle" / "card.html").read_text()


def test_a_failed_assumption_is_refused(tmp_path):
    with pytest.raises(DoesNotVerify, match="clipping"):
        make(tmp_path, assumptions={"clipping": "failed: a norm was too large"})


def test_a_block_that_is_none_is_refused(tmp_path):
    made = make_with_blocks(make(tmp_path), (1,))
    with pytest.raises(DoesNotVerify, match="block 1"):
        write_bundle(made, tmp_path / "bundle")
    with pytest.raises(DoesNotVerify, match="no block"):
        write_bundle(make_with_blocks(made, ()), tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(("block", "count"), [(999, 1), (None, 5)])
def test_draws_without_payment_are_refused(tmp_path, block, count):
    made = make(tmp_path)
    with made.ledger.store.transaction():
        made.ledger.store.append("draw", {"wish": 0, "count": count}, block or made.blocks[0])
    with pytest.raises(DoesNotVerify, match=r"no block|more than"):
        write_bundle(made, tmp_path / "bundle")


def test_lost_steps_are_counted(tmp_path):
    made = make(tmp_path, steps=1)
    made.ledger.begin_draw(made.blocks[0], 0, (SUM, 3), 1)
    certificate = write_bundle(made, tmp_path / "bundle")
    assert (certificate["blocks"][0]["drawn"], certificate["blocks"][0]["lost"]) == (2, 1)
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

    assert np.array_equal(
        load_file(original / "model.safetensors")["weights"], make(tmp_path).weights
    )
    assert (original / "recipe.toml").read_text() == RECIPE


def test_the_card_speaks_plainly(original):
    card, certificate = (original / "card.html").read_text(), certificate_of(original)
    epsilon = f"{certificate['headline']['epsilon']:.2f}"
    assert epsilon[:-1] in card
    for words in ("92.5%", "not attacked yet", "Tuning undeclared", "not protected", "30 records"):
        assert words in card
    assert "<b>" not in card
    assert "&lt;b&gt;" in card
    assert "<i>" not in card
    assert "<script" not in card
    assert "http" not in card


def test_a_protected_evaluation_is_not_listed_as_open(tmp_path):
    evaluation = Evaluation(0.5, None, "the sensitive test part", protected=True)
    made = make(tmp_path, evaluation=evaluation, tuning="none", warnings=("mind & the gap",))
    certificate = write_bundle(made, tmp_path / "bundle")
    assert certificate["unprotected"] == []
    card = (tmp_path / "bundle" / "card.html").read_text()
    assert "came through the gate" in card
    assert "Tuning undeclared" not in card
    assert "mind &amp; the gap" in card
    assert 'class="confusion"' not in card


def test_a_changed_ledger_gets_no_certificate(tmp_path):
    made = make(tmp_path)
    made.ledger.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as file:
        file.execute("DROP TRIGGER rows_never_update")
        file.execute("UPDATE rows SET body = replace(body, '\"count\":3', '\"count\":1')")
    file.close()
    with pytest.raises(DoesNotVerify):
        write_bundle(made, tmp_path / "bundle")
