"""What leaves is a function of the noisy answers: byte for byte, on neighbouring data sets."""

from __future__ import annotations

import numpy as np
import pytest

from neighbours.harness import Tape, everything
from neighbours.pairs import QUICK, base, chosen
from neighbours.worlds import PIPELINES
from quick_onnx import use_quick_exporter


def leaks(folder, pipeline: str, pairs) -> dict[str, list[str]]:
    """Pairs of which something tells the neighbours apart, and where."""
    found, kept = {}, {}
    for number, pair in enumerate(pairs):
        key = tuple(map(id, pair.first))
        if key not in kept:
            kept[key] = (
                (tape := Tape()),
                released(folder / f"{number}a", tape, pair.first, pipeline),
            )
        tape, first = kept[key]
        tape.played = 0
        second = released(folder / f"{number}b", tape, pair.second, pipeline)
        differences = first.differences(second)
        if tape.played != len(tape.answers):
            differences.append(f"{tape.played} of {len(tape.answers)} draws")
        if differences:
            found[pair.name] = differences
    for _, first in kept.values():
        # The very first command asks for a budget.
        if any(first.codes[1:]):
            found["the first run"] = [f"exit codes {first.codes}", *first.said]
    return found


def released(folder, tape, worlds, pipeline):
    with pytest.MonkeyPatch.context() as patch:
        # The quick one does not know the layers of these, or takes their norms apart.
        if pipeline != "scattering" and "dpdfd" not in pipeline:
            use_quick_exporter(patch)
        arrays = [world.arrays() for world in worlds]
        recipe = PIPELINES[pipeline].recipe
        pair = "label/change" if 'unit = "label"' in recipe else ""
        return everything(folder, patch, tape, arrays, recipe, pair=pair)


@pytest.mark.parametrize("pipeline", QUICK)
def test_neighbours_cannot_be_told_apart(tmp_path, pipeline):
    assert leaks(tmp_path, pipeline, chosen(pipeline, quick=True)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_no_neighbours_can_be_told_apart(tmp_path, pipeline):
    assert leaks(tmp_path, pipeline, chosen(pipeline, quick=False)) == {}


def test_make_test_has_at_most_50_pairs():
    assert 30 <= sum(len(chosen(pipeline, quick=True)) for pipeline in QUICK) <= 50


def test_a_record_of_nan_is_refused_before_anything_is_stored(tmp_path):
    """It cannot even be read; whoever runs the release is told, and the ledger is not."""
    usual = base(PIPELINES["linear"])
    broken = usual.plus(np.full((16, 16), np.nan), 1, "newcomer")
    seen = [
        released(tmp_path / name, Tape(), worlds, "linear")
        for name, worlds in {"one": (usual,), "two": (usual, broken)}.items()
    ]
    assert seen[1].codes == (*seen[0].codes[:4], 2, 2, 0, 0)
    assert "not a finite number" in seen[1].said[4]
    exported = [[said for said in one.said if said.startswith("ledger export")] for one in seen]
    assert exported[0] == exported[1]
    assert not any(name.startswith("out1/") for name in seen[1].files)
