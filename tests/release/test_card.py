"""The card says what the certificate says, in plain words, and loads nothing."""

from __future__ import annotations

import base64
import io
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from release.making import certificate_of, make
from stillroom.errors import BadInput
from stillroom.gate import NoisyCounts
from stillroom.randomness import integers, uniforms
from stillroom.release import Evaluation, verify_bundle, write_bundle
from stillroom.release.sections.evaluation import noise_in
from stillroom.release.sections.samples import MOST


def test_the_card_speaks_plainly(original):
    card, certificate = (original / "card.html").read_text(), certificate_of(original)
    epsilon = f"{certificate['headline']['epsilon']:.2f}"
    assert epsilon[:-1] in card
    for words in ("86.7%", "not attacked yet", "Tuning undeclared", "not protected", "test part"):
        assert words in card
    assert "<b>" not in card
    assert "&lt;b&gt;" in card
    assert "<i>" not in card
    assert "<script" not in card
    assert "http" not in card


def test_a_protected_evaluation_is_not_listed_as_open(tmp_path):
    evaluation = Evaluation(((90, 0, 0), (0, 45, 45), (0, 90, 0)), protected=True)
    counts = NoisyCounts(sigma=6, width=9)
    warnings = ("mind & the gap",)
    made = make(tmp_path, evaluation=evaluation, tuning="none", warnings=warnings, mechanism=counts)
    certificate = write_bundle(made, tmp_path / "bundle")
    assert certificate["unprotected"] == []
    card = (tmp_path / "bundle" / "card.html").read_text()
    assert "came through the gate" in card
    assert "Tuning undeclared" not in card
    assert "mind &amp; the gap" in card
    assert "50.0% right" in card
    # 6 / 270 * sqrt(3 * 1/4 + 6 * 1/4)
    measured = certificate["sections"]["evaluation"]
    assert measured["accuracy_noise"] == pytest.approx(0.0333, abs=1e-4)
    assert "standard deviation of 3.3 points" in card


def test_the_noise_in_an_accuracy():
    """50,000 noisy tables; the estimate of a deviation is then good to 0.3 %, and 3 % are allowed.

    That is beyond nine deviations, and the stream is fixed.
    """
    table = np.array([[190, 5, 5], [10, 170, 20], [30, 0, 170]])
    noisy = table + np.random.default_rng(1).normal(0, 4, (50_000, 3, 3))
    seen = (np.trace(noisy, axis1=1, axis2=2) / noisy.sum(axis=(1, 2))).std()
    assert noise_in(table.tolist(), Fraction(4)) == pytest.approx(seen, rel=0.03)


@pytest.mark.parametrize(("each", "told"), [(10, False), (11, True)])
def test_an_accuracy_needs_a_total_beyond_its_noise(tmp_path, each, told):
    """Sigma 6 on 9 counts is a total with deviation 18; it must exceed five times that, 90."""
    evaluation = Evaluation(((each,) * 3,) * 3, protected=True)
    made = make(tmp_path, evaluation=evaluation, mechanism=NoisyCounts(sigma=6, width=9))
    certificate = write_bundle(made, tmp_path / "bundle")
    measured = certificate["sections"]["evaluation"]
    assert measured["accuracy"] == (pytest.approx(1 / 3) if told else None)
    assert measured["confusion"] == [[each] * 3] * 3
    card = (tmp_path / "bundle" / "card.html").read_text()
    assert ("33.3% right" in card) == told
    assert ("cannot be told from the noise" in card) == (not told)
    assert verify_bundle(tmp_path / "bundle")["verifies"]


class Page(HTMLParser):
    """The headings, lists, pictures and tables of a card, by section."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.sections: dict[str, list[tuple[str, str]]] = {}
        self.pictures: list[dict[str, str | None]] = []
        self._heading, self._inside = "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        if tag == "img":
            self.pictures.append({**dict(attrs), "under": self._heading})

    def handle_data(self, data):
        if self._inside == "h2" and data.strip():
            self._heading = data
        if data.strip():
            self.sections.setdefault(self._heading, []).append((self._inside, data.strip()))


def card_of(folder, **changes):
    write_bundle(make(folder, **changes), folder / "bundle")
    return (folder / "bundle" / "card.html").read_text()


def test_the_model_and_public_knowledge_have_places_of_their_own(tmp_path):
    known = ("the mean of <MNIST>", "edge features")
    page = Page(card_of(tmp_path, public_knowledge=known))
    cells = [words for tag, words in page.sections["The model"] if tag == "td"]
    size = certificate_of(tmp_path / "bundle")["artefacts"][0]["files"]["model.onnx"]["size"]
    assert cells == [
        "linear layer over fixed features `pixels`",
        *("3", "6 x 6", "111", f"{size / 1000:.1f} kB"),
    ]
    listed = [words for tag, words in page.sections["Public knowledge used"] if tag == "li"]
    assert tuple(listed) == known
    assert page.pictures == []


def test_no_public_knowledge_is_said_as_well(tmp_path):
    page = Page(card_of(tmp_path, public_knowledge=()))
    assert ("p", "None.") in page.sections["Public knowledge used"]


SAMPLES = [
    integers(4, "grey", size=(25, 8, 7), below=256).astype(np.uint8),
    integers(4, "colour", size=(100, 6, 6, 3), below=256).astype(np.uint8),
    uniforms(4, "floats", size=(3, 5, 5)),
]


@pytest.mark.parametrize("samples", SAMPLES, ids=["grey", "colour", "floats"])
def test_samples_are_shown_as_what_they_are(tmp_path, samples):
    page = Page(card_of(tmp_path, samples=samples))
    (picture,) = page.pictures
    assert picture["under"] == "Drawn from the private sketch: no real records"
    assert picture["alt"] == f"{len(samples)} pictures drawn from the private sketch"
    kind, _, code = picture["src"].partition(",")
    assert kind == "data:image/png;base64"
    seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(code))))
    high, wide = samples.shape[1:3]
    columns = min(10, len(samples))
    expected = samples if samples.dtype == np.uint8 else np.rint(samples * 255)
    for place, sample in enumerate(expected):
        top, left = place // columns * (high + 1), place % columns * (wide + 1)
        assert np.array_equal(seen[top : top + high, left : left + wide], sample)
    assert seen.shape[1] == columns * (wide + 1) - 1
    assert verify_bundle(tmp_path / "bundle")["verifies"]


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros((4, 4)),
        np.zeros((2, 4, 4, 4)),
        np.zeros((0, 4, 4)),
        np.zeros((MOST + 1, 2, 2)),
        np.zeros((2, 4, 4), dtype=np.int64),
        np.full((2, 4, 4), 1.5),
        np.full((2, 4, 4), -0.1),
        np.full((2, 4, 4), np.nan),
    ],
    ids=["one", "four channels", "none", "too many", "int64", "above", "below", "nan"],
)
def test_what_is_no_sheet_of_pictures_is_refused(tmp_path, samples):
    with pytest.raises(BadInput) as caught:
        make(tmp_path, samples=samples)
    assert caught.value.where == "samples"
