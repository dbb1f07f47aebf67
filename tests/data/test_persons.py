"""Whose record each one is: by the names of files, or by a list beside the data."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from stillroom.cli import run as command
from stillroom.data.loading import load_split
from stillroom.data.persons import Persons
from stillroom.data.store import load_parts, save
from stillroom.errors import BadInput

PATTERN = r"^(person\d+)_"
FILES = ("ill/person1_a.png", "ill/person2_a.png", "well/person1_b.png", "well/person3_a.png")
OWNERS = ("person1", "person2", "person1", "person3")


@pytest.fixture
def scans(tmp_path):
    for number, name in enumerate(FILES):
        (tmp_path / "scans" / name).parent.mkdir(parents=True, exist_ok=True)
        picture = np.full((4, 4), 40 * number, dtype=np.uint8)
        Image.fromarray(picture).save(tmp_path / "scans" / name)
    return tmp_path / "scans"


@pytest.fixture
def both(scans, tmp_path):
    """The same pictures as an official train and test part."""
    (tmp_path / "both").mkdir()
    for part in ("train", "test"):
        (tmp_path / "both" / part).symlink_to(scans)
    return tmp_path / "both"


def listed(folder, text):
    (folder / "persons.csv").write_text(text)
    return Persons(listed=folder / "persons.csv")


def owners(path, persons, classes=None):
    return {part: data.persons for part, data in load_parts(path, classes, persons=persons).items()}


def test_a_pattern_finds_persons_in_names_of_files(scans):
    assert owners(scans, Persons(PATTERN)) == {"all": OWNERS}


@pytest.mark.parametrize("named", [lambda name: name, lambda name: name.split("/")[1]])
def test_a_list_names_files_as_in_the_folder_or_alone(scans, tmp_path, named):
    lines = [f"{named(name)},{owner}" for name, owner in zip(FILES, OWNERS, strict=True)]
    text = "\n".join(["file,person", *reversed(lines)])
    assert owners(scans, listed(tmp_path, text)) == {"all": OWNERS}


def test_a_list_without_files_stands_in_the_order_of_the_records(scans, tmp_path):
    text = "person\n" + "\n".join(OWNERS)
    assert owners(scans, listed(tmp_path, text)) == {"all": OWNERS}


def test_official_parts_of_a_folder(both, tmp_path):
    named = [(part, n, name) for part in ("train", "test") for n, name in enumerate(FILES)]
    text = "\n".join(["file,person", *(f"{part}/{name},{part} {n}" for part, n, name in named)])
    found = owners(both, listed(tmp_path, text))
    assert found == {part: tuple(f"{part} {n}" for n in range(4)) for part in ("train", "test")}


def test_a_list_for_files_without_names(tmp_path):
    """One line per record, those of train first; digits have no parts."""
    np.savez(
        tmp_path / "d.npz",
        **{"x_train": np.eye(3), "y_train": [0, 1, 0], "x_test": np.eye(3)[:2], "y_test": [0, 1]},
    )
    found = owners(tmp_path / "d.npz", listed(tmp_path, "person\na\nb\na\nc\nd\n"), 2)
    assert found == {"train": ("a", "b", "a"), "test": ("c", "d")}
    many = listed(tmp_path, "person\n" + "\n".join(f"p{i // 9}" for i in range(1797)))
    assert owners("digits", many)["all"][:10] == ("p0",) * 9 + ("p1",)


def test_equal_records_of_two_persons_keep_their_ids_when_one_leaves(tmp_path):
    """Numbers of equal records count within a person, so nobody moves another's (K7)."""
    np.savez(tmp_path / "both.npz", x=np.ones((2, 3)), y=[0, 0])
    np.savez(tmp_path / "one.npz", x=np.ones((1, 3)), y=[0])
    both = load_parts(tmp_path / "both.npz", 2, persons=listed(tmp_path, "person\na\nb\n"))["all"]
    one = load_parts(tmp_path / "one.npz", 2, persons=listed(tmp_path, "person\nb\n"))["all"]
    assert one.ids == both.ids[1:]


def test_imported_sets_keep_their_persons(scans, tmp_path):
    save(load_parts(scans, persons=Persons(PATTERN)), "scans", tmp_path)
    assert load_parts("scans", root=tmp_path)["all"].persons == OWNERS


def test_a_person_in_train_and_test_is_found(both, tmp_path):
    given = {"split": "as-given", "key": "k", "public": 0, "test": 0}
    with pytest.raises(BadInput, match="a person is in two parts"):
        load_split("both", tmp_path, person_pattern=PATTERN, **given)


@pytest.mark.parametrize("pattern", ["person", "(a)(b)", "(", "(?:a)", "(" * 600])
def test_a_pattern_with_other_than_one_group_is_refused(pattern):
    with pytest.raises(BadInput, match="exactly one group"):
        Persons(pattern)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("file,person\nill/person1_a.png,a\n", "does not name a file"),
        ("file,person\nx.png,a\nx.png,b\n", "names a file twice"),
        ("file,person\nx.png,\n", "empty cell"),
        ("file,person\nx.png\n", "empty cell"),
        ("file,who\nx.png,a\n", "exactly one column called 'person'"),
        ("person\na\nb\n", "not one line per record"),
        ("person\na\nb\n\nc\nd\n", "empty cell"),
    ],
)
def test_lists_that_leave_somebody_out_are_refused(scans, tmp_path, text, says):
    with pytest.raises(BadInput, match=says):
        owners(scans, listed(tmp_path, text))


def test_a_file_that_the_pattern_does_not_fit_is_refused(scans):
    with pytest.raises(BadInput, match="finds no person"):
        owners(scans, Persons(r"^(patient\d+)_"))


def test_names_of_files_are_for_folders(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.eye(3), y=[0, 1, 0])
    for persons in (Persons(PATTERN), listed(tmp_path, "file,person\na,b\n")):
        with pytest.raises(BadInput, match="for a folder of pictures"):
            owners(tmp_path / "d.npz", persons, 2)
    np.savez(tmp_path / "d.npz", x=np.eye(3), y=[0, 1, 0], persons=["a", "b", "c"])
    with pytest.raises(BadInput, match="name their persons already"):
        owners(tmp_path / "d.npz", listed(tmp_path, "person\na\nb\nc\n"), 2)


def test_by_command(scans, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    assert command(["data", "show", str(scans), "--person-pattern", PATTERN, "--json"]) == 0
    assert '"persons": {' in capsys.readouterr().out
    words = ["data", "import", str(scans), "--name", "scans", "--person-pattern", PATTERN]
    assert command(words) == 0
    assert command(["data", "show", str(scans), "--person-pattern", "no group"]) == 2
    assert "exactly one group" in capsys.readouterr().err
