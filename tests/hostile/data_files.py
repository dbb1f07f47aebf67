"""Data files that are damaged, of another kind, or made to fill the memory or to wait for ever."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from hostile.file_making import (
    MIB,
    Content,
    Maker,
    described,
    element,
    encoded,
    holding,
    idx,
    listening,
    mat,
    npy,
    npz,
    packed_zeros,
    png,
    repeated,
    saved,
    sparse,
    zeros,
)
from hostile.harness import Case


def case(name: str, file: str, make: Maker, says: str, *options: str, code: int = 2) -> Case:
    """`stillroom data show` on what `make` puts in the folder."""

    def build(folder: Path) -> list[str]:
        make(folder / file)
        two = [] if "--classes" in options else ["--classes", "2"]
        return ["data", "show", str(folder / file), *two, *options]

    return Case(name, build, code, says)


LABELS = saved([0, 1])
RECORDS = saved(np.eye(2))


def of_npz(name: str, says: str, **arrays: Content) -> Case:
    return case(f"npz: {name}", "data.npz", holding(lambda: npz(**arrays)), says)


def of_header(name: str, header: bytes, says: str = "plain arrays") -> Case:
    return of_npz(name, says, x=header, y=LABELS)


PAIR = npz(x=RECORDS, y=LABELS)
LAST_MEMBER = b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 65535, 65535, 46_000_000, 2, 0)

NPZ = [
    of_npz("other keys", "images, labels", images=RECORDS, labels=LABELS),
    of_npz("labels missing", "x and y", x=RECORDS),
    of_npz("no array", "none at all"),
    of_npz("empty arrays", "plain arrays", x=b"", y=b""),
    of_npz("objects", "plain arrays", x=saved(np.array([[None], [0]], dtype=object)), y=LABELS),
    of_npz("structured", "plain arrays", x=saved(np.zeros(2, dtype="f4,i4")), y=LABELS),
    of_npz("complex", "numbers of at most 64 bits", x=saved(np.eye(2) * 1j), y=LABELS),
    of_npz("no records", "no records", x=saved(np.zeros((0, 3))), y=LABELS),
    of_npz("not a number", "finite", x=saved([[np.nan], [1.0]]), y=LABELS),
    of_npz("labels out of range", "outside 0 to 1", x=RECORDS, y=saved([0, 7])),
    of_npz("labels with points", "one integer", x=RECORDS, y=saved([0.0, 1.0])),
    of_npz("too many ids", "as many ids", x=RECORDS, y=LABELS, ids=saved(["a"] * 9)),
    of_npz(
        "names without end",
        "as many persons",
        x=RECORDS,
        y=LABELS,
        persons=lambda: saved(np.zeros(5_000_000, "<U4")),
    ),
    of_npz(
        "more records than bytes",
        "records once",
        x=lambda: saved(np.zeros((2_000_000, 1), "u1")),
        y=lambda: saved(np.zeros(2_000_000, "u1")),
    ),
    of_header("huge dimension", npy(described("(9000000000000000000,)")), "128 MiB"),
    of_header("huge product", npy(described(f"({', '.join(['2147483647'] * 4)},)")), "128 MiB"),
    of_header("huge texts", npy(described("(2,)", "'<U500000000'")), "128 MiB"),
    of_header("negative dimension", npy(described("(-1, 2)"), b"abcd")),
    of_header("a hundred axes", npy(described(f"({'1, ' * 100})"), b"a")),
    of_header("texts of no length", npy(described("(900000000000000,)", "'<U0'"))),
    of_header("deep header", npy("(" * 9000 + ")" * 900)),
    of_header("endless minus", npy("-" * 9990 + "1")),
    of_header("endless header", npy(" " * 60_000, version=2)),
    of_header("header that is cut", npy(described("(2, 2)"))[:30]),
    of_header("header in Chinese", npy(described("(2, 2)").replace("shape", "形状"))),
    of_header("unknown version", b"\x93NUMPY\x09\0" + b"\0" * 200),
    of_header("sub-arrays", npy(described("(2,)", "('<f8', (1000000000,))"))),
    of_header("body that is cut", RECORDS[:-8]),
    of_header("body that is too long", RECORDS + b"x"),
    case("npz: by columns", "f.npz", holding(npz(x=saved(np.eye(2).T), y=LABELS)), "", code=0),
    case("npz: cut", "data.npz", holding(PAIR[:-40]), "plain arrays"),
    case("npz: garbage", "data.npz", holding(b"PK\x03\x04" + b"garbage" * 99), "plain arrays"),
    case(
        "npz: wrong checksum",
        "data.npz",
        holding(PAIR.replace(struct.pack("<I", zlib.crc32(RECORDS)), b"\1\2\3\4")),
        "plain arrays",
    ),
    case(
        "npz: locked with a password",
        "data.npz",
        holding(PAIR.replace(b"PK\1\2\x14\x03\x14\0\0", b"PK\1\2\x14\x03\x14\0\1")),
        "plain arrays",
    ),
    case(
        "npz: a million members",
        "data.npz",
        holding(
            lambda: gzip.compress(b"PK" + (b"PK\1\2" + bytes(42)) * 1_000_000 + LAST_MEMBER, 1)
        ),
        "plain arrays",
    ),
    case("npy: no labels", "data.npy", holding(RECORDS), "one array"),
]


TWO_LABELS = idx((2,), b"\0\1")


def of_idx(name: str, content: Content, says: str, labels: Content = TWO_LABELS) -> Case:
    def build(folder: Path) -> list[str]:
        holding(content)(folder / "images")
        holding(labels)(folder / "labels")
        words = ["data", "show", str(folder / "images"), "--classes", "2"]
        return [*words, "--labels", str(folder / "labels")]

    return Case(f"idx: {name}", build, 2, says)


PIXELS = idx((2, 2, 2), bytes(8))


IDX = [
    of_idx("empty", b"", "start like an IDX"),
    of_idx("cut", PIXELS[:-1], "shorter"),
    of_idx("garbage", b"garbage" * 99, "start like an IDX"),
    of_idx("huge dimensions", idx((2**32 - 1,) * 8, b"x"), "shorter"),
    of_idx("a dimension of nothing", idx((0, 2**32 - 1)), "shorter"),
    of_idx("trailing bytes", PIXELS + b"x", "longer"),
    of_idx("labels that are cut", PIXELS, "shorter", idx((2,), b"\0")),
    of_idx("labels that are pictures", PIXELS, "one integer", PIXELS),
    of_idx("gzip that is cut", gzip.compress(PIXELS)[:-9], "damaged"),
    of_idx("gzip of gzip", gzip.compress(gzip.compress(PIXELS)), "start like an IDX"),
    of_idx("gzip with a wrong checksum", gzip.compress(PIXELS)[:-8] + bytes(8), "damaged"),
    of_idx("5 GB in 5 MB", repeated(zeros, 80, idx((2, 2**31))), "MiB once"),
    of_idx(
        "more records than bytes",
        lambda: gzip.compress(idx((3_000_000, 1), bytes(3_000_000))),
        "records once",
        lambda: gzip.compress(idx((3_000_000,), bytes(3_000_000))),
    ),
    case("idx: 5 GB of holes", "images", sparse(5 << 30, idx((2, 2**31))), "128 MiB"),
    case("idx: no labels", "images", holding(PIXELS), "file of labels"),
]


def of_csv(name: str, content: Content, says: str, *options: str, code: int = 2) -> Case:
    return case(f"csv: {name}", "data.csv", holding(content), says, *options, code=code)


HEADER = "age,weight,label\n"

CSV = [
    of_csv("empty", "", "first line"),
    of_csv("header alone", HEADER, "no records"),
    of_csv("a missing cell", HEADER + "1,2,0\n3,,1\n", "line 3, column 2 ('weight')"),
    of_csv("a cell of text", HEADER + "1,2,0\nold,3,1\n", "line 3, column 1 ('age')"),
    of_csv("a cell without end", HEADER + f"1,{'9' * 200_000},0\n", "damaged"),
    of_csv("not a number", HEADER + "1,2,0\n3,NaN,1\n", "record 1, column 2 ('weight')"),
    of_csv("beyond all numbers", HEADER + "1e999,2,0\n", "record 0, column 1 ('age')"),
    of_csv("ragged", HEADER + "1,2,0\n1,0\n", "as many cells"),
    of_csv("an open quote", HEADER + '"1,2,0\n', "damaged"),
    of_csv("NUL bytes", HEADER + "1,\0,0\n", "column 2"),
    of_csv("a column whose name rules the terminal", "a\x1b[2J,label\nx,0\n", "column 1"),
    of_csv("not UTF-8", HEADER.encode() + b"\xff\xfe,2,0\n", "not in UTF-8"),
    of_csv("UTF-16", (HEADER + "1,2,0\n").encode("utf-16"), "UTF-16"),
    of_csv("a byte order mark", "\ufeff" + HEADER + "1,2,0\n3,4,1\n", "", code=0),
    of_csv("garbage", bytes(range(10, 256)) * 99, "damaged"),
    of_csv("two label columns", "label,label\n0,1\n", "exactly one column"),
    of_csv("a label that is not declared", HEADER + "1,2,7\n", "given classes"),
    of_csv("an id that is a book", f"id,a,label\n{'x' * 5000},1,0\n", "1000", "--id-column", "id"),
    of_csv("an id twice", "id,a,label\nx,1,0\nx,2,1\n", "occurs twice", "--id-column", "id"),
    of_csv(
        "3 GB in 3 MB", repeated(lambda: b"1,2,0\n" * 10 * MIB, 48, HEADER.encode()), "records once"
    ),
    of_csv(
        "3 GB of long lines",
        repeated(lambda: (b"0," * 50_000 + b"0\n") * 300, 100, b"a," * 50_000 + b"label\n"),
        "128 MiB",
    ),
    of_csv("a billion columns", repeated(lambda: b"," * 64 * MIB, 16), "characters"),
    of_csv("one line without end", repeated(lambda: b"a" * 64 * MIB, 16), "characters"),
    of_csv("a record without end", repeated(lambda: b'"\n",' * 8 * MIB, 16), "characters"),
    of_csv("classes without end", HEADER + "1,2,0\n", "not known", "--classes", "9" * 5000),
    case("csv: 3 GB of holes", "data.csv", sparse(3 << 30, HEADER.encode()), "characters"),
]


SCHEMA = (
    "[label]\ncolumn = 'label'\nclasses = ['0', '1']\n"
    "[numbers]\nage = {low = 0, high = 9}\n[categories]\nward = ['a']\n"
)
TABLE_HEADER = "age,ward,label\n"


def of_table(
    name: str, content: Content, says: str, schema: Content = SCHEMA, code: int = 2
) -> Case:
    """`stillroom data show` on a table and its schema."""

    def build(folder: Path) -> list[str]:
        holding(content)(folder / "data.csv")
        holding(schema)(folder / "schema.toml")
        return ["data", "show", str(folder / "data.csv"), "--schema", str(folder / "schema.toml")]

    return Case(f"table: {name}", build, code, says)


TABLES = [
    of_table("beyond all numbers", TABLE_HEADER + "1e999,a,0\n-inf,\u202eb,1\n", "", code=0),
    of_table("not a number", TABLE_HEADER + "NaN,a,0\n", "line 2, column 1 ('age')"),
    of_table("NUL bytes", TABLE_HEADER + "1\0,a,0\n", "column 1"),
    of_table("a column twice", "age,age,ward,label\n", "more than one column"),
    of_table("a column that rules the terminal", "age,ward,a\x1b[2J,label\n", "column 3"),
    of_table("a billion columns", repeated(lambda: b"," * 64 * MIB, 16), "characters"),
    of_table("a category without end", TABLE_HEADER + f"1,{'x' * 200_000},0\n", "damaged"),
    of_table("no schema", TABLE_HEADER, "cannot be read", b"\x80\xff"),
    of_table("a schema of numbers", TABLE_HEADER, "unknown key", "a = 1\n"),
    of_table("a schema nested deep", TABLE_HEADER, "cannot be read", "a = " + "[" * 90_000),
    of_table("a key of many parts", TABLE_HEADER, "no plain TOML", "a" + ".a" * 90_000 + " = 1\n"),
    of_table(
        "a range that is none",
        TABLE_HEADER,
        "beyond",
        SCHEMA.replace("high = 9", "high = inf"),
    ),
    of_table(
        "more bins than memory",
        TABLE_HEADER,
        "from 2 to",
        SCHEMA.replace("high = 9", "high = 9, bins = 999999999999"),
    ),
    of_table(
        "a whole number beyond all",
        TABLE_HEADER,
        "",
        SCHEMA.replace("high = 9", f"high = {'9' * 4000}"),
    ),
]


def pets(path: Path) -> None:
    for name in ("cat", "dog"):
        (path / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(path / name / "1.png")


def of_pets(
    name: str, says: str, make: Maker, *options: str, file: str = "2.png", code: int = 2
) -> Case:
    def beside(path: Path) -> None:
        pets(path)
        make(path / "dog" / file)

    return case(f"pictures: {name}", "pets", beside, says, *options, code=code)


def converted(name: str, says: str, make: Maker, code: int = 2) -> Case:
    """The same, brought to a size and a mode."""
    return of_pets(f"converted, {name}", says, make, "--size", "4", "--mode", "grey", code=code)


def palette_of_zeros(side: int) -> bytes:
    """A whole PNG of so many pixels, a thousandth of that on disk, half of them transparent."""
    stream = io.BytesIO()
    picture = Image.new("P", (side, side))
    picture.save(stream, "PNG", transparency=0, compress_level=1)
    return stream.getvalue()


def exif_that_points_at_itself() -> bytes:
    entry = struct.pack(">2H2I", 0x8769, 4, 1, 8)
    block = b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 1) + entry + struct.pack(">I", 8)
    return encoded("JPEG", exif=block)


FRAMES = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]

PICTURES = [
    of_pets("a pipe", "plain file", lambda path: os.mkfifo(path)),
    of_pets("a socket", "cannot be read", listening),
    of_pets("a device", "plain file", lambda path: path.symlink_to("/dev/zero")),
    of_pets("a link to nowhere", "cannot be read", lambda path: path.symlink_to("nowhere")),
    of_pets("a link to itself", "cannot be read", lambda path: path.symlink_to(path.name)),
    of_pets("a folder of folders", "plain file", lambda path: path.symlink_to("..")),
    of_pets("an empty file", "no readable picture", holding(b"")),
    of_pets("a PNG that is cut", "no readable picture", holding(encoded("PNG")[:-30])),
    of_pets("a JPEG that is cut", "no readable picture", holding(encoded("JPEG")[:150])),
    of_pets("a BMP that is cut", "no readable picture", holding(encoded("BMP")[:60])),
    of_pets("a TIFF that is cut", "no readable picture", holding(encoded("TIFF")[:20])),
    of_pets("garbage", "no readable picture", holding(b"\x89PNG\r\n\x1a\n" + b"garbage" * 99)),
    of_pets("PostScript", "no readable picture", holding("%!PS-Adobe-3.0 EPSF-3.0\nshowpage\n")),
    of_pets(
        "two frames",
        "several pictures",
        holding(encoded("TIFF", save_all=True, append_images=FRAMES)),
    ),
    of_pets("another size", "another size", holding(png(3, 3, 2, bytes(30)))),
    of_pets("900 million pixels", "pixels", holding(png(30_000, 30_000))),
    of_pets("150 million bytes", "MiB once", holding(png(7_000, 7_000, 2))),
    of_pets("no pixel", "no readable picture", holding(png(0, 0))),
    of_pets("a GIF", "a GIF is not read", holding(encoded("GIF"))),
]

CONVERTED = [
    converted("a pipe", "plain file", lambda path: os.mkfifo(path)),
    converted("a device", "plain file", lambda path: path.symlink_to("/dev/zero")),
    converted("an empty file", "no readable picture", holding(b"")),
    converted("a PNG that is cut", "no readable picture", holding(encoded("PNG")[:-30])),
    converted("a TIFF that is cut", "no readable picture", holding(encoded("TIFF")[:20])),
    converted("a GIF", "a GIF is not read", holding(encoded("GIF"))),
    converted(
        "two frames",
        "several pictures",
        holding(encoded("TIFF", save_all=True, append_images=FRAMES)),
    ),
    converted("PostScript", "no readable picture", holding("%!PS-Adobe-3.0 EPSF-3.0\nshowpage\n")),
    converted("900 million pixels", "pixels", holding(png(30_000, 30_000))),
    converted("64 million pixels", "MiB once", holding(png(8_000, 8_000))),
    converted("1 bit for each of 64 million", "MiB once", holding(lambda: palette_of_zeros(8_000))),
    converted("as many as may be", "", holding(lambda: palette_of_zeros(5_700)), code=0),
    converted("no pixel", "no readable picture", holding(png(0, 0))),
    converted("one row of a million", "", holding(png(1 << 20, 1, 0, bytes(1 + (1 << 20)))), 0),
    converted("one column", "", holding(png(1, 1 << 20, 0, bytes(2 << 20))), 0),
    converted("EXIF in a circle", "", holding(exif_that_points_at_itself), 0),
    converted("EXIF of nothing", "", holding(encoded("JPEG", exif=b"Exif\0\0" + b"\xff" * 60)), 0),
    of_pets("a size of thousands of digits", "--size", holding(png(3, 3)), "--size", "9" * 5000),
    of_pets("a size below zero", "--size", holding(png(3, 3)), "--size=-1"),
    of_pets("a mode that is none", "mode", holding(png(3, 3)), "--mode", "\x1b[2J"),
]


def of_mat(name: str, content: Content, says: str = "no MATLAB file") -> Case:
    return case(f"mat: {name}", "digits.mat", holding(content), says, "--classes", "10")


STREETS = np.zeros((32, 32, 3, 2), dtype=np.uint8)
SVHN = mat(X=STREETS, y=[[10], [1]])


MAT = [
    of_mat("cut", SVHN[:-100]),
    of_mat("garbage", SVHN[:128] + b"garbage" * 99),
    of_mat("header alone", SVHN[:128]),
    of_mat("other names", mat(A=STREETS, b=[[1]])),
    of_mat("another shape", mat(X=np.zeros((2, 3)), y=[[1], [2]]), "32x32x3xN"),
    of_mat("complex numbers", mat(X=STREETS + 1j, y=[[1], [2]])),
    of_mat("labels out of range", mat(X=STREETS, y=[[1], [77]]), "outside 1 to 10"),
    of_mat(
        "an element that fills the memory",
        lambda: SVHN[:128] + element(15, packed_zeros()),
        "128 MiB",
    ),
    of_mat("a million elements", lambda: SVHN[:128] + element(0, b"") * 1_000_000),
    of_mat("a size beyond the file", SVHN[:128] + struct.pack("<2I", 14, 2**32 - 1)),
]


class Attack:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("true",)


def of_cifar(name: str, content: Content, says: str) -> Case:
    return case(f"cifar: {name}", "batch", holding(content), says, "--classes", "10")


CIFAR = [
    of_cifar("a record that is cut", bytes([3] * 3072), "3073 bytes"),
    of_cifar("a label out of range", bytes([3]) * 3073 + bytes([200]) * 3073, "outside 0 to 9"),
    of_cifar("a program", pickle.dumps(Attack(), 2), "asks for"),
    of_cifar("a pickle that is cut", b"\x80\x02}q\x00", "damaged"),
    of_cifar("no batch", pickle.dumps({"data": 1, "labels": 2}, 2), "no CIFAR-10 batch"),
    of_cifar("lists without end", lambda: b"\x80\x02" + b"]" * 5_000_000, "no CIFAR-10 batch"),
    of_cifar(
        "lists without end, zipped", repeated(lambda: b"]" * 64 * MIB, 4, b"\x80\x02"), "CIFAR"
    ),
    of_cifar("a frame beyond all memory", b"\x80\x04\x95" + b"\xff" * 7 + b"\x3f", "damaged"),
    of_cifar("a text beyond all memory", b"\x80\x02T" + b"\xff\xff\xff\x7f", "damaged"),
    of_cifar("5 GB in 5 MB", repeated(zeros, 80), "MiB once"),
]


def named(name: str, words: list[str], says: str) -> Case:
    return Case(f"path: {name}", lambda folder: ["data", "show", *words], 2, says)


def labels_from(name: str, make: Maker, says: str) -> Case:
    def build(folder: Path) -> list[str]:
        (folder / "images").write_bytes(PIXELS)
        make(folder / "labels")
        words = ["data", "show", str(folder / "images"), "--classes", "2"]
        return [*words, "--labels", str(folder / "labels")]

    return Case(f"path: {name}", build, 2, says)


PATHS = [
    named("a device without end", ["/dev/zero", "--classes", "2"], "plain file"),
    named("a name no file can have", ["x" * 5000, "--classes", "2"], "no data set"),
    case("path: a pipe", "data.csv", lambda path: os.mkfifo(path), "plain file"),
    case("path: a socket", "data.csv", listening, "cannot be read"),
    case("path: a link to itself", "a.csv", lambda path: path.symlink_to("a.csv"), "no data set"),
    case("path: an empty folder", "empty", lambda path: path.mkdir(), "no sub-folders"),
    labels_from("labels from a pipe", lambda path: os.mkfifo(path), "plain file"),
    labels_from("labels without end", lambda path: path.symlink_to("/dev/zero"), "plain file"),
    labels_from("labels from a folder", lambda path: path.mkdir(), "plain file"),
]

CASES: list[Case] = [*NPZ, *IDX, *CSV, *TABLES, *PICTURES, *CONVERTED, *MAT, *CIFAR, *PATHS]
