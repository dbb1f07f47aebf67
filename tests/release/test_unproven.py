"""A relation that the split does not support has no epsilon, whatever was drawn."""

from __future__ import annotations

import pytest

from release.making import certificate_of, forge, make
from stillroom.errors import DoesNotVerify
from stillroom.release import verify_bundle, write_bundle
from stillroom.vocabulary import CHANGED_RECORD


def relations(certificate):
    return {line["relation"] for line in certificate["parties"][0]["guarantees"]}


def test_a_change_is_left_out_where_a_class_decides_what_is_public(tmp_path):
    write_bundle(make(tmp_path / "a"), tmp_path / "whole")
    write_bundle(make(tmp_path / "b", unproven=(CHANGED_RECORD,)), tmp_path / "part")
    whole, part = (certificate_of(tmp_path / name) for name in ("whole", "part"))
    assert relations(whole) == {"add-or-remove", "change"}
    assert relations(part) == {"add-or-remove"}
    assert part["headline"]["epsilon"] == whole["headline"]["epsilon"]
    assert any("change of a record's content or class" in line for line in part["unprotected"])
    for name in ("whole", "part"):
        assert verify_bundle(tmp_path / name)["verifies"]


def test_an_epsilon_that_is_not_proven_does_not_verify(tmp_path):
    write_bundle(make(tmp_path / "a", unproven=(CHANGED_RECORD,)), tmp_path / "bundle")
    certificate = certificate_of(tmp_path / "bundle")
    line = dict(certificate["parties"][0]["guarantees"][0], relation="change")
    line["for"] = f"{line['unit']}/change"
    certificate["parties"][0]["guarantees"].append(line)
    forge(tmp_path / "bundle", certificate)
    with pytest.raises(DoesNotVerify, match="not what the events cost"):
        verify_bundle(tmp_path / "bundle")


def test_ids_from_content_leave_a_change_unproven(tmp_path):
    """The ledger knows where its ids come from; nobody has to say it again."""
    made = make(tmp_path / "a", ids=["sha256:ab-0", "sha256:cd-0"])
    certificate = write_bundle(made, tmp_path / "bundle")
    assert certificate["parties"][0]["unproven"] == ["record/change"]
    assert relations(certificate) == {"add-or-remove"}
    certificate["parties"][0]["unproven"] = []
    forge(tmp_path / "bundle", certificate)
    with pytest.raises(DoesNotVerify, match="unproven"):
        verify_bundle(tmp_path / "bundle")
