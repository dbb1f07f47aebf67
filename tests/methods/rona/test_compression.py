"""A student of RONA is pruned and coded, and nobody pays for it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from safetensors.numpy import load

from methods.rona.recipes import BUDGET, recipe_in
from stillroom.errors import BadInput
from stillroom.methods.registry import read
from stillroom.methods.rona import job
from stillroom.pipeline.release import release
from stillroom.release import verify_bundle
from stillroom.release.compact import tensors_of_compact

PART = '[compression]\nkept = "1/5"\ncodebook_bits = 3\nresidual_bits = 0\n'


def with_compression(folder, part=PART, kind="trained"):
    recipe = recipe_in(folder, kind)
    recipe.write_text(recipe.read_text() + part)
    return recipe


@pytest.fixture
def released(tmp_path, small):
    made = release(with_compression(tmp_path), tmp_path / "out", budget=BUDGET)
    return made, tmp_path / "out"


def test_the_student_is_pruned_and_coded(released):
    made, bundle = released
    assert verify_bundle(bundle)["verifies"]
    weights = load((bundle / "model.safetensors").read_bytes())
    compact = tensors_of_compact((bundle / "compact.safetensors").read_bytes())
    assert {name: array.tobytes() for name, array in compact.items()} == {
        name: array.tobytes() for name, array in weights.items()
    }
    matrices = [array for array in weights.values() if array.ndim >= 2]
    total, kept = (sum(count(array) for array in matrices) for count in (np.size, np.count_nonzero))
    assert kept == -(-total // 5)
    assert all(len(np.unique(array)) <= 9 for array in matrices)
    model, small = (
        next(one for one in made["artefacts"] if one["name"] == name)
        for name in ("model", "compact")
    )
    assert small["parameters"] == model["parameters"] - (total - kept)
    assert model["about"] == "network `mlp`, a student"
    assert small["files"]["compact.safetensors"]["size"] < 0.1 * 4 * model["parameters"]


def test_it_costs_nothing_and_promises_the_same(released, tmp_path):
    small, _ = released
    plain = release(recipe_in(tmp_path / "plain"), tmp_path / "plain" / "out", budget=BUDGET)
    for field in ("headline", "assumptions", "unprotected", "public_knowledge", "warnings"):
        assert small[field] == plain[field]
    mine, other = small["parties"][0], plain["parties"][0]
    for field in ("guarantees", "events", "noise", "unproven"):
        assert mine[field] == other[field]
    assert mine["blocks"][0]["wishes"] == other["blocks"][0]["wishes"]
    assert [one["name"] for one in plain["artefacts"]] == ["model"]


def test_what_is_tested_and_measured_is_the_compressed_student(tmp_path, small, monkeypatch):
    seen = []
    monkeypatch.setattr(job, "report", lambda *given: seen.append(given[1]))
    release(with_compression(tmp_path), tmp_path / "out", budget=BUDGET)
    (model,) = seen
    weights = load((tmp_path / "out" / "model.safetensors").read_bytes())
    assert model.kept < 0.25 * model.parameters
    for name, array in model.tensors().items():
        assert array.tobytes() == weights[name].tobytes()


def test_the_section_has_defaults_and_bounds(tmp_path):
    section = read(with_compression(tmp_path, "[compression]\n"))[0].compression
    assert (section.kept, section.codebook_bits, section.residual_bits) == (Fraction(3, 4), 4, 4)
    assert read(recipe_in(tmp_path))[0].compression is None
    for line in (
        *("kept = 0", "kept = 1.1", "kept = -1", "codebook_bits = 0", "codebook_bits = 9"),
        *("residual_bits = -1", "residual_bits = 9", "codebook_bits = 2.5", "bits = 4"),
    ):
        with pytest.raises(BadInput, match=f"compression.{line.split()[0]}"):
            read(with_compression(tmp_path, f"[compression]\n{line}\n"))


def test_the_papers_algorithm_is_not_compressed(tmp_path):
    with pytest.raises(BadInput, match="compression: the paper's algorithm has none"):
        read(with_compression(tmp_path, kind="plain"))
