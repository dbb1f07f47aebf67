"""Whatever is changed in a bundle is found; what a forger can do without the key is known."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from release.making import certificate_of, forge, linear, make, remanifest
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.release import Claim, Control, verify_bundle, write_bundle
from stillroom.release.files import LISTED, MANIFEST, digest, to_bytes
from stillroom.release.keys import make_keys, read_private, read_public
from stillroom.release.sections.compression import CompressionReport, Measured


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


def _cheaper_noise(certificate):
    certificate["parties"][0]["events"][0]["sigma_squared"] = "160000"


def _fewer_events(certificate):
    certificate["parties"][0]["events"][0]["count"] = 1


def _no_events(certificate):
    certificate["parties"][0].update(events=[], guarantees=[])


def _smaller_sensitivity(certificate):
    bounds = certificate["parties"][0]["events"][0]["sensitivity"]
    certificate["parties"][0]["events"][0]["sensitivity"] = dict.fromkeys(bounds, "1")


def _cheaper_events_and_mechanism(certificate):
    """Events and what was reserved agree, and the stated figures give it away."""
    _cheaper_noise(certificate)
    certificate["parties"][0]["blocks"][0]["wishes"][0]["mechanism"]["sigma"] = "400"


def _smaller_epsilon(certificate):
    for line in [certificate["headline"], *certificate["parties"][0]["guarantees"]]:
        line["epsilon"] *= 0.9


def _one_line_less(certificate):
    certificate["parties"][0]["guarantees"].pop()


def _better_headline(certificate):
    certificate["headline"]["epsilon"] = 0.01


def _unproven_pair(certificate):
    line = dict(certificate["parties"][0]["guarantees"][0], unit="entity")
    certificate["parties"][0]["guarantees"].append({**line, "for": "entity/add-or-remove"})


def _more_drawn(certificate):
    (block,) = certificate["parties"][0]["blocks"]
    for counts in (block, block["wishes"][0]):
        counts["drawn"] = 4


def _failed_assumption(certificate):
    certificate["assumptions"]["clipping"] = "failed: a norm was too large"


def _unknown_event(certificate):
    certificate["parties"][0]["events"][0]["kind"] = "magic"


def _smaller_total(certificate):
    certificate["parties"][0]["data_set"]["totals"][0]["spent"] = 0.01


def _smaller_model(certificate):
    certificate["artefacts"][0]["files"]["model.onnx"]["size"] -= 1


def _odd_shapes(certificate):
    certificate["assumptions"] = ["clipping"]


def _huge_number(certificate):
    certificate["parties"][0]["guarantees"][0]["epsilon"] = 10**400


def _older_version(certificate):
    certificate["version"] = 2


def _unknown_mode(certificate):
    certificate["mode"] = "trusted"


def _private_control_on_a_release(certificate):
    certificate["purpose"] = "release"
    certificate["sections"]["controls"]["models"][1]["private"] = True


def _exact_controls_on_sensitive_records(certificate):
    certificate["sections"]["evaluation"]["protected"] = True


def _accuracy_beyond_all(certificate):
    certificate["sections"]["controls"]["models"][0]["accuracy"] = 1.2


def _better_ratio(certificate):
    certificate["sections"]["compression"]["ratios"]["speed"] *= 10


def _smaller_student(certificate):
    certificate["sections"]["compression"]["student"]["size"] = 10
    certificate["sections"]["compression"]["ratios"]["size"] = 500.0


def _another_teacher(certificate):
    certificate["sections"]["compression"]["teacher"]["parameters"] *= 10


def _claim_below_zero(certificate):
    certificate["sections"]["published"]["epsilon"] = 0


def _claim_without_standing(certificate):
    certificate["sections"]["published"]["status"] = ""


def _no_controls_field(certificate):
    del certificate["sections"]["controls"]["models"]


def _no_compression_field(certificate):
    del certificate["sections"]["compression"]["student"]


def _compression_of_nothing(certificate):
    certificate["sections"]["compression"] = None


def _no_sections(certificate):
    del certificate["sections"]


def _time_below_zero(certificate):
    certificate["sections"]["compression"]["teacher"]["seconds"] = -1


def _control_with_more_to_say(certificate):
    certificate["sections"]["controls"]["models"][0]["epsilon"] = 1


def _no_blocks(certificate):
    del certificate["parties"][0]["blocks"]


def _not_a_number(certificate):
    certificate["parties"][0]["guarantees"][0]["epsilon"] = "small"


FORGERIES = [
    *[_cheaper_noise, _fewer_events, _no_events, _smaller_sensitivity],
    *[_cheaper_events_and_mechanism, _smaller_epsilon, _one_line_less, _better_headline],
    *[_unproven_pair, _more_drawn, _failed_assumption, _unknown_event, _smaller_total],
    *[_smaller_model, _older_version, _unknown_mode],
]
COMPANY_FORGERIES = [
    *[_private_control_on_a_release, _exact_controls_on_sensitive_records, _accuracy_beyond_all],
    *[_better_ratio, _smaller_student, _another_teacher, _claim_below_zero],
    *[_claim_without_standing, _time_below_zero, _control_with_more_to_say],
    *[_no_controls_field, _no_compression_field, _compression_of_nothing, _no_sections],
]


@pytest.mark.parametrize("edit", FORGERIES, ids=lambda edit: edit.__name__)
def test_an_edited_certificate_does_not_verify(bundle, edit):
    certificate = certificate_of(bundle)
    edit(certificate)
    forge(bundle, certificate)
    with pytest.raises(DoesNotVerify, match=r"certificate\.json"):
        verify_bundle(bundle)


@pytest.fixture(scope="module")
def in_company(tmp_path_factory):
    """A bundle with a claim, controls and a compression report."""
    folder = tmp_path_factory.mktemp("company")
    onnx = linear().onnx(("<b>", "two", "three"))
    student = Measured(linear().about, linear().parameters, len(onnx), 900, 0.01, 0.02)
    made = make(
        folder,
        compression=CompressionReport(Measured("teacher", 1110, 5000, 2000, 0.1, 0.1), student),
        controls=(
            Control("Base", 0.9, "public labels only", private=False),
            Control("teacher", 0.93, "trained through the gate", private=False),
        ),
        claim=Claim(7.68, "does not hold"),
    )
    write_bundle(made, folder / "bundle")
    return folder / "bundle"


@pytest.mark.parametrize("edit", COMPANY_FORGERIES, ids=lambda edit: edit.__name__)
def test_edited_company_does_not_verify(in_company, tmp_path, edit):
    assert verify_bundle(in_company)["verifies"]
    _refuses(Path(shutil.copytree(in_company, tmp_path / "bundle")), edit)


def _refuses(bundle, edit):
    """Edited, with hashes that fit again."""
    certificate = certificate_of(bundle)
    edit(certificate)
    certificate["digest"] = digest(certificate)
    (bundle / "certificate.json").write_bytes(to_bytes(certificate))
    (bundle / "card.html").write_text(certificate["digest"])
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match=r"certificate\.json"):
        verify_bundle(bundle)


@pytest.mark.parametrize(
    "edit", [_no_blocks, _not_a_number, _odd_shapes, _huge_number], ids=lambda edit: edit.__name__
)
def test_an_unreadable_certificate_does_not_verify(bundle, edit):
    _refuses(bundle, edit)


def test_a_certificate_of_another_model_does_not_verify(bundle, tmp_path):
    made = make(tmp_path / "other", model=linear(shape=(7, 7)))
    write_bundle(made, tmp_path / "moved")
    for name in ("certificate.json", "card.html"):
        shutil.copy(tmp_path / "moved" / name, bundle / name)
    remanifest(bundle)
    with pytest.raises(DoesNotVerify, match="belongs to another model"):
        verify_bundle(bundle)


def test_a_card_of_another_certificate_does_not_verify(bundle, tmp_path):
    write_bundle(make(tmp_path / "other"), tmp_path / "moved")
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
