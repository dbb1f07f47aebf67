"""A compressed model is released with its compact file, which `verify` decodes and compares."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from safetensors.numpy import load, save
from torch import nn

from quick_onnx import use_quick_exporter
from release.making import certificate_of, forge, linear, make, remanifest
from release.networks import CLASSES, network, records
from release.test_card import Page
from release.test_strangers import TRAINING
from release.test_strangers import run as without
from stillroom.cli import run
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.public.compression import compressed
from stillroom.randomness import seeded_torch
from stillroom.release import torch_model, verify_bundle, write_bundle
from stillroom.release.artefacts import artefacts_in
from stillroom.release.compact import tensors_of_compact
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.compression import report
from stillroom.release.files import sha256
from stillroom.release.model import checked_onnx
from stillroom.release.predict import predict, run_onnx
from stillroom.release.sections.compression import CompressionReport, Measured
from stillroom.release.torch_model import TorchModel
from stillroom.vocabulary import Unit

SHAPE = (8, 8)
X = records(SHAPE)
EXPORTER = {name: getattr(torch_model, name) for name in ("_program", "one_thread")}
FILE = "compact.safetensors"


def wide():
    """A network with a broad linear layer behind a batch norm."""
    layers = list(network(SHAPE))[:-1]
    with seeded_torch(3, "wide"):
        layers += [nn.Linear(16, 200), nn.ReLU(), nn.Linear(200, 3)]
    return nn.Sequential(*layers)


def small(kept=0.5, codebook_bits=4, residual_bits=3):
    layers, codes = compressed(
        wide(), X, kept=kept, codebook_bits=codebook_bits, residual_bits=residual_bits
    )
    return CompressedModel(TorchModel(layers, SHAPE, "a small network"), codes)


@pytest.fixture(scope="module", autouse=True)
def quick_exporter():
    with pytest.MonkeyPatch.context() as patch:
        use_quick_exporter(patch)
        yield


@pytest.fixture(scope="module")
def model():
    return small()


@pytest.fixture(scope="module")
def original(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("release")
    write_bundle(make(folder, model=model, classes=CLASSES), folder / "bundle")
    return folder / "bundle"


def test_a_network_and_its_codes_are_one_model(model):
    content = checked_onnx(model, CLASSES)
    logits, _ = run_onnx(content, X)
    plain, _ = run_onnx(model.plain_onnx(CLASSES), X)
    assert np.array_equal(logits, plain)
    assert np.allclose(logits, model.logits(X), atol=1e-4)
    assert model.kept < model.parameters == model.plain.parameters
    pruned = sum(int((~code.kept).sum()) for code in model.codes.values())
    assert model.parameters - model.kept == pruned
    assert (model.shape, model.outputs) == (SHAPE, 3)
    assert len(content) < 0.6 * len(model.plain_onnx(CLASSES))


def test_the_exporter_of_releases_leaves_the_weights_as_they_are():
    """Batch norms are folded before weights are coded, so that an exporter has none to fold."""
    with pytest.MonkeyPatch.context() as patch:
        for name, part in EXPORTER.items():
            patch.setattr(torch_model, name, part)
        model = small(kept=1, codebook_bits=4, residual_bits=0)
        content, plain = model.onnx(CLASSES), model.plain_onnx(CLASSES)
    assert np.array_equal(run_onnx(content, X)[0], run_onnx(plain, X)[0])
    tensors = {tensor.name for tensor in onnx.load_model_from_string(content).graph.initializer}
    before = onnx.load_model_from_string(plain).graph.initializer
    gone = {tensor.name for tensor in before} - tensors
    assert any(name.endswith("9.weight") for name in gone)
    arrays = [onnx.numpy_helper.to_array(tensor).tobytes() for tensor in before]
    assert all(code.array().tobytes() in arrays for code in model.codes.values())


def test_codes_of_another_model_are_refused(model):
    other = small(kept=0.4)
    for codes in (other.codes, {}, {"w": next(iter(model.codes.values()))}):
        with pytest.raises(BadInput, match="other weights"):
            CompressedModel(model.plain, codes)


def test_the_compact_file_is_an_artefact_of_its_own(original, model):
    certificate = certificate_of(original)
    content = (original / FILE).read_bytes()
    (artefact,) = [one for one in certificate["artefacts"] if one["name"] == "compact"]
    assert artefact == {
        "name": "compact",
        "kind": "parameters",
        "about": "the weights of the model, pruned and coded",
        "parameters": model.kept,
        "files": {FILE: {"sha256": sha256(content), "size": len(content)}},
        "make": "compact",
        "of": "model",
    }
    assert len(content) < 0.35 * (original / "model.safetensors").stat().st_size
    found = tensors_of_compact(content)
    expected = load((original / "model.safetensors").read_bytes())
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }
    assert verify_bundle(original)["verifies"]


def test_numpy_is_all_that_decodes_and_compares_it(original, tmp_path):
    code = (
        "from stillroom.release.compact import tensors_of_compact\n"
        "from stillroom.release import verify_bundle\n"
        f"verify_bundle({str(original)!r})\n"
        f"print(len(tensors_of_compact(open({str(original / FILE)!r}, 'rb').read())))"
    )
    done = without(code, tmp_path, TRAINING)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(load((original / "model.safetensors").read_bytes()))


def test_it_is_used_like_any_model(original, model, tmp_path, capsys):
    labels, logits = predict(original, X[:5])
    assert np.allclose(logits, model.logits(X[:5]), atol=1e-4)
    np.save(tmp_path / "x.npy", X[:5])
    assert run(["predict", str(original), str(tmp_path / "x.npy")]) == 0
    told = [line.split("\t")[1] for line in capsys.readouterr().out.splitlines()]
    assert told == [CLASSES[label] for label in labels]


def test_compression_is_free(tmp_path, model):
    """What is promised to whom is the same, to the digit, with the compact file and without."""
    told = []
    for name, one in (("plain", TorchModel(wide(), SHAPE, "a network")), ("small", model)):
        made = make(tmp_path / name, model=one, classes=CLASSES)
        told.append(write_bundle(made, tmp_path / name / "bundle"))
    plain, small = told
    for field in ("headline", "unit", "delta", "assumptions", "unprotected", "asked", "tuning"):
        assert plain[field] == small[field]
    for mine, other in zip(plain["parties"], small["parties"], strict=True):
        assert mine["guarantees"] == other["guarantees"]
        assert mine["events"] == other["events"]
    assert plain["version"] == small["version"]
    assert Unit(plain["unit"]) is Unit.RECORD


# -- other weights do not verify ----------------------------------------------------------------


def refit(bundle: Path) -> None:
    """Fit certificate and manifest to the files, as a forger without a key would."""
    certificate = certificate_of(bundle)
    contents = {file.name: file.read_bytes() for file in bundle.iterdir()}
    certificate["artefacts"] = artefacts_in(contents)
    forge(bundle, certificate)


def _changed(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


@pytest.fixture
def bundle(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "bundle"))


@pytest.mark.parametrize("place", [-1, -40])
@pytest.mark.parametrize("name", [FILE, "model.safetensors"])
def test_a_bit_of_either_file_is_found(bundle, name, place, capsys):
    """Also where every hash was fitted to it."""
    _changed(bundle / name, place)
    refit(bundle)
    with pytest.raises(DoesNotVerify, match="does not hold the weights of model") as caught:
        verify_bundle(bundle)
    assert caught.value.where == str(bundle / FILE)
    assert run(["verify", str(bundle)]) == 4
    assert FILE in capsys.readouterr().err


def test_a_flipped_byte_is_found_by_its_hash(bundle):
    _changed(bundle / FILE, -1)
    with pytest.raises(DoesNotVerify, match=FILE):
        verify_bundle(bundle)


def test_a_file_that_does_not_decode_says_so(bundle):
    content = (bundle / FILE).read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    start, end = header["9.weight/codebook"]["data_offsets"]
    whole = bytearray(content)
    whole[8 + size + start : 8 + size + end] = b"\xff" * (end - start)
    (bundle / FILE).write_bytes(whole)
    refit(bundle)
    with pytest.raises(DoesNotVerify, match="a centroid is not a finite number"):
        verify_bundle(bundle)


def _more_kept(artefact):
    artefact["parameters"] += 1


def _another_kind(artefact):
    artefact["kind"] = "classifier"


def _of_another(artefact):
    artefact["of"] = "other"


def _of_nothing(artefact):
    del artefact["of"]


@pytest.mark.parametrize("change", [_more_kept, _another_kind, _of_another, _of_nothing])
def test_what_the_certificate_says_of_it_follows_from_the_file(bundle, change):
    certificate = certificate_of(bundle)
    (artefact,) = [one for one in certificate["artefacts"] if one["name"] == "compact"]
    change(artefact)
    forge(bundle, certificate)
    with pytest.raises(DoesNotVerify):
        verify_bundle(bundle)


@pytest.mark.parametrize("change", [{"parameters": 1}, {"of": "compact"}, {"of": "none"}], ids=str)
def test_a_file_that_says_something_else_is_refused(bundle, change):
    content = (bundle / FILE).read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    said = json.loads(header["__metadata__"]["stillroom"]) | change
    header["__metadata__"]["stillroom"] = json.dumps(said)
    text = json.dumps(header).encode()
    (bundle / FILE).write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    certificate = certificate_of(bundle)
    (artefact,) = [one for one in certificate["artefacts"] if one["name"] == "compact"]
    content = (bundle / FILE).read_bytes()
    artefact |= {**change, "files": {FILE: {"sha256": sha256(content), "size": len(content)}}}
    forge(bundle, certificate)
    with pytest.raises(DoesNotVerify):
        verify_bundle(bundle)


def test_without_its_file_the_bundle_does_not_verify(bundle):
    (bundle / FILE).unlink()
    remanifest(bundle)
    with pytest.raises(DoesNotVerify):
        verify_bundle(bundle)


def test_other_parameters_are_no_compact_file(tmp_path):
    """An artefact of the same kind that is something else is listed as ever."""
    made = make(tmp_path)
    content = save({"v": np.ones(4, np.float32)}, metadata={"stillroom": json.dumps(SAID)})
    contents = {name: body for one in made.artefacts for name, body in one.files().items()}
    found = artefacts_in({**contents, "mean.safetensors": content})
    assert [one["name"] for one in found] == ["model", "mean"]
    assert set(found[1]) == {"name", "kind", "about", "parameters", "files"}


SAID = {"kind": "parameters", "about": "a mean", "parameters": 4}


# -- the report and the card --------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(model):
    return report(linear(shape=(40, 40)), model, CLASSES)


def test_the_report_has_the_compact_file(measured, original, model):
    student = measured.student
    assert student.kept == model.kept
    assert student.compact_size == (original / FILE).stat().st_size
    assert student.size == (original / "model.onnx").stat().st_size < len(model.plain_onnx(CLASSES))
    assert student.int8_size is not None
    assert measured.ratios["compact_size"] == measured.teacher.size / student.compact_size
    assert CompressionReport.from_json(measured.to_json()) == measured
    told = measured.to_json()
    assert "kept" not in told["teacher"]
    assert told["student"]["kept"] == student.kept


def test_a_report_without_it_is_as_it_was():
    """Certificates of before have no such keys, and are derived again to the letter."""
    model = Measured("a", 1000, 5000, 2000, 0.5, 0.4)
    told = CompressionReport(model, model).to_json()
    assert set(told["student"]) == {
        *("name", "parameters", "size", "int8_size", "seconds", "int8_seconds", "int8_note")
    }
    assert set(told["ratios"]) == {"parameters", "size", "int8_size", "speed", "int8_speed"}
    assert CompressionReport.from_json(told).to_json() == told


def test_the_card_shows_what_is_kept_and_the_compact_file(tmp_path, measured, model):
    made = make(tmp_path, model=model, classes=CLASSES, compression=measured)
    write_bundle(made, tmp_path / "bundle")
    assert verify_bundle(tmp_path / "bundle")["verifies"]
    page = Page((tmp_path / "bundle" / "card.html").read_text())
    cells = [words for tag, words in page.sections["Compression"] if tag in ("td", "strong")]
    rows = "|".join(cells)
    assert f"parameters kept|-|{model.kept:,}|-" in rows
    size = f"{measured.student.compact_size / 1000:.1f} kB"
    assert f"size, compact|-|{size}|{measured.ratios['compact_size']:.1f}" in rows
    texts = " ".join(words for _, words in page.sections["Compression"])
    assert f"{100 * model.kept / model.parameters:.3g} % of its parameters are kept" in texts
    assert "student compact" in texts
    (told,) = [words for _, words in page.sections["The model"] if "fewer bytes" in words]
    assert f"{model.kept:,} of its {model.parameters:,} parameters are kept" in told


def test_without_a_teacher_the_card_shows_it_too(original):
    card = (original / "card.html").read_text()
    assert "Compression" not in card
    assert "compact.safetensors holds the weights of model.onnx in fewer bytes" in card


@pytest.mark.parametrize(
    "change",
    [{"kept": 5}, {"compact_size": 5}, {"kept": None, "compact_size": None}],
    ids=str,
)
def test_the_report_of_another_compact_file_is_refused(tmp_path, measured, model, change):
    student = Measured(**{**measured.student.to_json(), **change})
    other = CompressionReport(measured.teacher, student)
    made = make(tmp_path, model=model, classes=CLASSES, compression=other)
    with pytest.raises(BadInput, match="another student"):
        write_bundle(made, tmp_path / "bundle")


@pytest.mark.parametrize(
    "change",
    [{"kept": 1001, "compact_size": 9}, {"kept": 9}, {"compact_size": 9}, {"kept": 0}],
    ids=str,
)
def test_what_cannot_be_kept_is_refused(change):
    with pytest.raises(BadInput, match="not a positive number"):
        Measured("a", 1000, 5000, 2000, 0.5, 0.4, **change)
