"""Teacher and student are measured side by side, and the card shows what was measured."""

from __future__ import annotations

import logging
import statistics

import numpy as np
import pytest
from torch import nn

from release.making import certificate_of, linear, make
from release.networks import CLASSES, cnn, network, records
from stillroom.errors import BadInput
from stillroom.randomness import seeded_torch
from stillroom.release import compression, verify_bundle, write_bundle
from stillroom.release.compression import quantised, report
from stillroom.release.predict import run_onnx
from stillroom.release.sections.compression import RATIOS, CompressionReport, Measured
from stillroom.release.torch_model import TorchModel

SHAPE = (8, 8)


def wide():
    """The same kind of network with a broad linear layer."""
    layers = list(network(SHAPE))[:-1]
    with seeded_torch(3, "wide"):
        layers += [nn.Linear(16, 300), nn.ReLU(), nn.Linear(300, 3)]
    return TorchModel(nn.Sequential(*layers), SHAPE, "wide <network>")


@pytest.fixture(scope="module")
def measured():
    return report(wide(), cnn(SHAPE), CLASSES)


def test_both_models_are_measured(measured):
    for one, model in ((measured.teacher, wide()), (measured.student, cnn(SHAPE))):
        assert one.name == model.about
        assert one.parameters == model.parameters
        assert one.size > 4 * model.parameters
        assert one.int8_note == ""
        assert min(one.int8_size, one.seconds, one.int8_seconds) > 0
    told = measured.to_json()
    assert (told["images"], told["repeats"]) == (100, 5)


def test_ratios_are_those_of_the_entries(measured):
    assert set(measured.ratios) == set(RATIOS)
    for ratio, entry in RATIOS.items():
        expected = getattr(measured.teacher, entry) / getattr(measured.student, entry)
        assert measured.ratios[ratio] == expected
    assert CompressionReport.from_json(measured.to_json()) == measured


def test_convolutions_and_linear_layers_are_quantised():
    import onnx

    content = quantised(wide().onnx(CLASSES))
    nodes = [node.op_type for node in onnx.load_model_from_string(content).graph.node]
    assert nodes.count("ConvInteger") == 2
    assert nodes.count("MatMulInteger") == 2
    assert "Conv" not in nodes
    x = records(SHAPE)
    logits, _ = run_onnx(content, x)
    exact = wide().logits(x)
    assert 0 < np.abs(logits - exact).max() < 0.1 * np.abs(exact).max()


def test_a_linear_model_is_measured_and_nothing_is_logged(caplog):
    handlers = list(logging.root.handlers)
    model = linear(shape=SHAPE)
    told = report(model, model, CLASSES)
    assert told.teacher.int8_size is not None
    assert caplog.records == []
    assert logging.root.handlers == handlers
    assert logging.root.manager.disable == logging.NOTSET


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be quantised (ValueError)"), (b"no model", "cannot run it quantised")],
    ids=["not quantised", "not run"],
)
def test_without_int8_the_report_says_why(monkeypatch, content, reason):
    def fails(onnx):
        if content is None:
            raise ValueError("secret words")
        return content

    monkeypatch.setattr(compression, "quantised", fails)
    told = report(linear(shape=(20, 20)), linear(), CLASSES)
    assert told.student.int8_size is told.student.int8_seconds is None
    assert reason in told.student.int8_note
    assert "secret" not in told.student.int8_note
    assert told.ratios["int8_size"] is told.ratios["int8_speed"] is None
    assert told.ratios["size"] > 1


def test_a_time_is_the_median_and_models_take_turns(monkeypatch):
    turns = []

    class Runner:
        def __init__(self, onnx, shape):
            self._onnx, self._rounds = onnx, []

        def round(self):
            turns.append(self._onnx)
            # One round of each model meets a busy machine.
            self._rounds.append(1e9 if len(self._rounds) == 1 else float(len(self._onnx)))

        @property
        def seconds(self):
            return statistics.median(self._rounds)

    monkeypatch.setattr(compression, "_Runner", Runner)
    told = report(linear(shape=(20, 20)), linear(), CLASSES)
    assert turns[:4] == turns[4:8]
    assert len(set(turns[:4])) == 4
    assert told.teacher.seconds == told.teacher.size
    assert told.ratios["speed"] == told.ratios["size"]


GOOD = {
    "name": "student",
    "parameters": 100,
    "size": 1000,
    "int8_size": 500,
    "seconds": 0.1,
    "int8_seconds": 0.2,
}


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": 0},
        {"size": 1.5},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"int8_size": None},
        {"int8_size": None, "int8_seconds": None},
        {"int8_note": "why though"},
        {"seconds": -1.0},
        {"parameters": True},
    ],
    ids=str,
)
def test_what_was_not_measured_is_refused(change):
    assert Measured(**GOOD)
    with pytest.raises(BadInput):
        Measured(**{**GOOD, **change})


@pytest.fixture(scope="module")
def released(tmp_path_factory, measured):
    folder = tmp_path_factory.mktemp("release")
    made = make(folder, model=cnn(SHAPE), classes=CLASSES, compression=measured)
    write_bundle(made, folder / "bundle")
    return folder / "bundle"


def test_the_certificate_holds_the_report(released, measured):
    told = certificate_of(released)["sections"]["compression"]
    assert told == measured.to_json()
    assert verify_bundle(released)["verifies"]


def test_the_card_shows_table_and_picture(released, measured):
    card = (released / "card.html").read_text()
    assert "<h2>Compression</h2>" in card
    assert "wide &lt;network&gt;" in card
    assert "<network>" not in card
    for ratio in measured.ratios.values():
        assert f"<strong>{ratio:.1f}</strong>" in card
    assert f"{wide().parameters:,}" in card
    assert card.count("<svg") == 1
    # Two bars for the parameters, four each for size and time.
    assert card.count("<rect") == 10
    assert "<script" not in card
    assert "http" not in card


def test_int8_is_told_even_where_it_is_slower_or_missing(tmp_path):
    size = len(linear().onnx(("<b>", "two", "three")))
    student = Measured(linear().about, linear().parameters, size, 900, 0.1, 0.3)
    teacher = Measured("teacher", 5000, 20_000, None, 0.2, None, "it has <no> weights")
    made = make(tmp_path, compression=CompressionReport(teacher, student))
    write_bundle(made, tmp_path / "bundle")
    card = (tmp_path / "bundle" / "card.html").read_text()
    assert "In int8 the student took longer than in fp32 on this machine." in card
    assert "300 ms" in card
    assert "The teacher has no int8 version: it has &lt;no&gt; weights." in card
    assert card.count("<rect") == 8


def test_without_a_report_there_is_no_section(original):
    assert "compression" not in certificate_of(original)["sections"]
    assert "Compression" not in (original / "card.html").read_text()


def test_the_report_of_another_model_is_refused(tmp_path, measured):
    made = make(tmp_path, compression=measured)
    with pytest.raises(BadInput, match="another student"):
        write_bundle(made, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()
