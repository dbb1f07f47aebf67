"""Pictures as they come: every kind becomes 8 bits of one size and mode, by stated rules."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hostile.file_making import png
from stillroom.cli import run
from stillroom.data import PictureForm, read_images
from stillroom.data.folders import read_folder
from stillroom.data.loading import load_split
from stillroom.data.persons import Persons
from stillroom.data.pictures import picture_in, read_picture
from stillroom.data.store import load_parts
from stillroom.errors import BadInput

GREY = PictureForm((6, 4), "grey")
COLOUR = PictureForm((6, 4), "colour")
RED, WHITE = (255, 0, 0), (255, 255, 255)
LUMA_OF_RED = 76


def encoded(picture: Image.Image, kind: str = "PNG", **options: object) -> io.BytesIO:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    stream.seek(0)
    return stream


def wide(value: int) -> Image.Image:
    return Image.fromarray(np.full((9, 7), value, dtype=np.uint16))


def clear(mode: str) -> Image.Image:
    """Red that cannot be seen."""
    return Image.new("RGBA", (7, 9), (*RED, 0)).convert(mode)


def with_palette(transparent: bool) -> io.BytesIO:
    found = Image.new("RGB", (7, 9), RED).quantize(2)
    return encoded(found, transparency=found.getpixel((0, 0))) if transparent else encoded(found)


KINDS = {
    "grey": (encoded(Image.new("L", (7, 9), 40)), 40, (40, 40, 40)),
    "colour": (encoded(Image.new("RGB", (7, 9), RED)), LUMA_OF_RED, RED),
    "jpeg": (encoded(Image.new("L", (7, 9), 40), "JPEG"), 40, (40, 40, 40)),
    "bmp": (encoded(Image.new("RGB", (7, 9), RED), "BMP"), LUMA_OF_RED, RED),
    "tiff": (encoded(Image.new("RGB", (7, 9), RED), "TIFF"), LUMA_OF_RED, RED),
    "1 bit": (encoded(Image.new("1", (7, 9), 1)), 255, WHITE),
    "1 bit tiff": (encoded(Image.new("1", (7, 9), 1), "TIFF", compression="group4"), 255, WHITE),
    "palette": (with_palette(transparent=False), LUMA_OF_RED, RED),
    "clear palette": (with_palette(transparent=True), 255, WHITE),
    "transparent": (encoded(clear("RGBA")), 255, WHITE),
    "grey and transparent": (encoded(clear("LA")), 255, WHITE),
    "one clear colour": (encoded(Image.new("RGB", (7, 9), RED), transparency=RED), 255, WHITE),
    "half transparent": (encoded(Image.new("RGBA", (7, 9), (0, 0, 0, 51))), 204, (204,) * 3),
    "16 bits": (encoded(wide(0x1FFF)), 0x1F, (0x1F,) * 3),
    "16 bits tiff": (encoded(wide(0x8001), "TIFF"), 0x80, (0x80,) * 3),
    "inks": (encoded(Image.new("CMYK", (7, 9), (0, 255, 255, 0)), "TIFF"), LUMA_OF_RED, RED),
}


@pytest.mark.parametrize(("stream", "level", "colour"), KINDS.values(), ids=KINDS.keys())
def test_every_kind_becomes_grey_or_colour(stream, level, colour):
    stream.seek(0)
    grey = read_picture(stream, form=GREY)
    assert (grey.dtype, grey.shape) == (np.uint8, (6, 4))
    assert np.all(grey == level)
    stream.seek(0)
    assert np.all(read_picture(stream, form=COLOUR) == np.array(colour))
    stream.seek(0)
    assert read_picture(stream, form=PictureForm(None, "grey")).shape == (9, 7)


REFUSED = {
    "floats": (encoded(Image.new("F", (7, 9), 0.5), "TIFF"), "no readable picture"),
    "32 bits": (encoded(Image.new("I", (7, 9), 1 << 20), "TIFF"), "no readable picture"),
    "a gif": (encoded(Image.new("L", (7, 9)), "GIF"), "a GIF is not read"),
    "frames": (
        encoded(Image.new("L", (7, 9)), "TIFF", save_all=True, append_images=[wide(3)]),
        "several pictures",
    ),
    "an animated PNG": (
        encoded(Image.new("L", (7, 9)), save_all=True, append_images=[Image.new("L", (7, 9), 9)]),
        "several pictures",
    ),
    "900 million pixels": (io.BytesIO(png(30_000, 30_000)), "more than 89,478,485 pixels"),
    "64 million pixels": (io.BytesIO(png(8_000, 8_000)), "128 MiB"),
    "garbage": (io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"garbage" * 99), "no readable picture"),
    "cut": (io.BytesIO(encoded(wide(7)).getvalue()[:-30]), "no readable picture"),
}


@pytest.mark.parametrize(("stream", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_rule_is_stated_for_is_refused(stream, words):
    stream.seek(0)
    with pytest.raises(BadInput) as caught:
        read_picture(stream, form=GREY)
    assert words in caught.value.what
    assert caught.value.remedy


def test_size_alone_takes_plain_pictures_and_says_what_others_need():
    form = PictureForm((6, 4))
    assert read_picture(encoded(Image.new("L", (9, 9))), form=form).shape == (6, 4)
    assert read_picture(encoded(Image.new("RGB", (9, 9))), form=form).shape == (6, 4, 3)
    with pytest.raises(BadInput, match=r"data\.mode"):
        read_picture(encoded(wide(5)), form=form)


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (3, 2)])
def test_one_pixel_and_extreme_pictures_are_stretched(size):
    assert np.all(read_picture(encoded(Image.new("L", size, 77)), form=GREY) == 77)


def test_shrinking_looks_at_every_pixel():
    """One bright pixel of a hundred raises the average, wherever it is."""
    for place in range(0, 100, 7):
        x = np.zeros((10, 10), dtype=np.uint8)
        x.flat[place] = 255
        small = read_picture(encoded(Image.fromarray(x)), form=PictureForm((1, 1), "grey"))
        assert small.item() >= 1


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_orientation_is_followed(kind):
    x = np.zeros((16, 24), dtype=np.uint8)
    x[:8] = 255  # the upper half is bright, as stored
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter to the right
    stream = encoded(Image.fromarray(x), kind, exif=exif)
    turned = read_picture(stream, form=PictureForm(None, "grey"))
    assert turned.shape == (24, 16)
    assert turned[:, 12:].min() > 200
    assert turned[:, :4].max() < 50


def test_damaged_exif_leaves_the_picture_as_it_is_stored():
    for junk in (b"Exif\0\0MM\0*\0\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0" + b"9" * 40):
        stream = encoded(Image.new("L", (7, 9), 40), "JPEG", exif=junk)
        assert np.all(read_picture(stream, form=GREY) == 40)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Four pictures of four sizes and four modes."""
    sizes = {"cat/a.png": (7, 9), "cat/b.jpg": (30, 2), "dog/c.tif": (1, 1), "dog/d.bmp": (64, 64)}
    for number, (name, size) in enumerate(sizes.items()):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = ("RGBA", "RGB", "1", "P")[number]
        Image.new("RGB", size, (60 * number, 9, 9)).convert(mode).save(path)
    return tmp_path / "pets"


def test_a_folder_of_mixed_pictures(pets):
    with pytest.raises(BadInput) as caught:
        read_images(pets)
    for words in ("data.size", "data.mode", "--size", "--mode"):
        assert words in caught.value.remedy
    read = read_images(pets, form=COLOUR)
    assert (read.shape, read.x.dtype, len(read)) == ((6, 4, 3), np.uint8, 4)
    for row, name in enumerate(("cat/a.png", "cat/b.jpg", "dog/c.tif", "dog/d.bmp")):
        assert np.array_equal(read.x[row], picture_in(pets / name, COLOUR))


def test_size_without_mode_says_how_grey_and_colour_go_together(pets):
    for path in pets.glob("*/*"):
        path.unlink()
    Image.new("L", (3, 3)).save(pets / "cat" / "a.png")
    Image.new("RGB", (3, 3)).save(pets / "dog" / "a.png")
    with pytest.raises(BadInput, match=r"data\.mode") as caught:
        read_images(pets, form=PictureForm((4, 4)))
    assert "dog" in caught.value.where


def test_one_picture_more_changes_no_other(pets):
    """Its neighbours keep their pixels and their ids."""
    before = read_images(pets, form=GREY)
    Image.fromarray(np.full((2000, 50), 65535, dtype=np.uint16)).save(pets / "cat" / "0.png")
    after = read_images(pets, form=GREY)
    assert set(before.ids) < set(after.ids)
    assert np.array_equal(after.x[1:], before.x)


def test_ids_are_those_of_the_pictures_as_they_are_stored(pets):
    """A ledger must know them again in another size, or it would grant a second budget."""
    ids = {read_images(pets, form=form).ids for form in (GREY, COLOUR, PictureForm((9, 9), "grey"))}
    assert len(ids) == 1
    (first, *_) = ids.pop()
    Image.new("RGBA", (7, 9), (1, 9, 9)).save(pets / "cat" / "a.png")
    assert first not in read_images(pets, form=GREY).ids


def test_ids_of_plain_pictures_are_the_same_with_and_without_a_form(pets, tmp_path):
    for number, path in enumerate(sorted(pets.glob("*/*"))):
        path.unlink()
        Image.new("RGB", (7, 9), (number, 2, 3)).save(path.with_suffix(".png"))
    assert read_images(pets).ids == read_images(pets, form=GREY).ids
    (tmp_path / "owners.csv").write_text("person\n" + "Ann\nBob\nAnn\nCas\n")
    owners = Persons(listed=tmp_path / "owners.csv")
    plain, small = (read_folder(pets, None, owners, form)["all"] for form in (None, GREY))
    assert plain.ids == small.ids
    assert set(plain.ids).isdisjoint(read_images(pets).ids)
    named = "file,person\n" + "".join(
        f"{path.relative_to(pets)},{name}\n"
        for path, name in zip(sorted(pets.glob("*/*")), plain.persons, strict=True)
    )
    (tmp_path / "files.csv").write_text(named)
    by_file = Persons(listed=tmp_path / "files.csv")
    plain, small = (read_folder(pets, None, by_file, form)["all"] for form in (None, GREY))
    assert plain.ids == small.ids


def test_memory_is_that_of_small_pictures(tmp_path):
    """Far more pixels than the folder may hold unresized."""
    import tracemalloc

    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("L", (5000, 5000), 200).save(tmp_path / name / "0.png")
        for number in range(1, 8):
            os.link(tmp_path / name / "0.png", tmp_path / name / f"{number}.png")
    with pytest.raises(BadInput, match="128 MiB"):
        read_images(tmp_path)
    tracemalloc.start()
    assert read_images(tmp_path, form=GREY).x.shape == (16, 6, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20  # of Python; Pillow's own picture is not traced


def test_more_than_this_machine_holds_is_refused(pets, monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: 8)
    with pytest.raises(BadInput, match=r"smaller data\.size"):
        read_images(pets, form=GREY)


def test_a_size_is_for_folders_of_pictures(pets, tmp_path):
    (tmp_path / "x.csv").write_text("a,label\n1,0\n2,1\n")
    for source in ("digits", str(tmp_path / "x.csv")):
        with pytest.raises(BadInput, match="folder of pictures"):
            load_parts(source, 2 if source != "digits" else None, form=GREY)


def test_train_and_test_folders_and_persons(pets, tmp_path):
    for part in ("train", "test"):
        for name in ("cat", "dog"):
            path = tmp_path / "scans" / part / name / f"{part}{name}_1.png"
            path.parent.mkdir(parents=True)
            Image.new("L", (len(part), len(name))).save(path)
    split = load_split(
        "scans",
        tmp_path,
        split="as-given",
        public=0,
        test=0,
        form=GREY,
        person_pattern="^([a-z]+)_",
    )
    assert split.test.shape == (6, 4)
    assert set(split.test.persons or ()) == {"testcat", "testdog"}


def test_data_show_and_import(pets, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    assert run(["data", "show", str(pets), "--size", "6x4", "--mode", "grey"]) == 0
    assert "shape (6, 4), uint8" in capsys.readouterr().out
    words = ["data", "import", str(pets), "--name", "pets", "--size", "8", "--mode", "colour"]
    assert run(words) == 0
    assert 'size = 8, mode = "colour"' in capsys.readouterr().out
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert {path.name for path in kept} == {"all.npz", "meta.json"}
    imported = PictureForm((8, 8), "colour")
    assert (
        load_parts("pets", form=imported)["all"].ids == load_parts(pets, form=imported)["all"].ids
    )
    assert load_parts("pets")["all"].shape == (8, 8, 3)
    with pytest.raises(BadInput, match='imported with size = 8, mode = "colour"'):
        load_parts("pets", form=GREY)
    for wrong in ("0", "x", "6x4x2", "-3", "5000", "6,4"):
        assert run(["data", "show", str(pets), "--size", wrong]) == 2
    assert run(["data", "show", str(pets), "--mode", "gray"]) == 2


def test_what_a_certificate_may_say():
    assert PictureForm.from_json(GREY.to_json()) == GREY
    whole = GREY.to_json()
    for name, value in [
        ("rules", 2),
        ("rules", True),
        ("size", [6]),
        ("size", [6, 0]),
        ("size", [6, 1 << 20]),
        ("size", "64"),
        ("size", [6.0, 4]),
        ("mode", "sepia"),
        ("mode", 3),
    ]:
        with pytest.raises(ValueError, match="pictures"):
            PictureForm.from_json({**whole, name: value})
    for odd in (None, [], {}, {**whole, "more": 1}, {"size": None, "mode": None, "rules": 1}):
        with pytest.raises(ValueError, match="pictures"):
            PictureForm.from_json(odd)


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 3), (6, 4, 1), (4, 6), (6,)])
def test_the_shape_of_a_record_follows(shape):
    assert GREY.fits(shape) == (shape == (6, 4))
    assert COLOUR.fits(shape) == (shape == (6, 4, 3))
    assert PictureForm((6, 4)).fits(shape) == (shape in ((6, 4), (6, 4, 3)))
    assert PictureForm(None, "grey").fits(shape) == (len(shape) == 2)
