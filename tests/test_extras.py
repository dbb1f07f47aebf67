"""Only a package that is absent is called not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.cli import run
from stillroom.errors import BadInput
from stillroom.extras import needed


def loaded(folder: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "wings.py").write_text(content)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "wings", raising=False)
    with pytest.raises(BadInput) as caught, needed("wings", where="flight", why="they carry"):
        import wings  # noqa: F401
    assert caught.value.remedy
    return caught.value.what


@pytest.mark.parametrize(
    "content",
    [
        "raise ImportError('wings.so: failed to map segment from shared object')",
        "raise OSError('libwings.so: cannot allocate memory in static TLS block')",
        "import feathers_that_are_missing",
    ],
)
def test_a_package_that_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    assert "cannot be loaded" in loaded(tmp_path, content, monkeypatch)


def test_a_package_that_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not installed" in loaded(tmp_path, "import wings.tips", monkeypatch)


def test_too_little_memory_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wings.py").write_text("raise MemoryError")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MemoryError), needed("wings", where="flight", why="they carry"):
        import wings  # noqa: F401


def test_no_import_is_caught_too_broadly() -> None:
    sources = (Path(__file__).parents[1] / "src").rglob("*.py")
    broad = {path.name for path in sources if "except ImportError" in path.read_text()}
    assert broad == set()


def shown(address_space: int) -> tuple[int, str]:
    """The exit code and the errors of `data show digits`, in so many bytes of address space."""
    started = subprocess.run(
        [
            sys.executable,
            "-c",
            f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({address_space}, {address_space}))
from stillroom.cli import run
sys.exit(run(["data", "show", "digits"]))
""",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    return started.returncode, started.stderr


def test_a_library_that_does_not_fit_the_memory_is_not_called_missing() -> None:
    """Somewhere between the first command line and the first library, memory is too short."""
    ended = [shown(megabytes << 20) for megabytes in (200, 260, 320)]
    assert all("not installed" not in errors for _, errors in ended)


def test_too_little_memory_ends_a_command_clearly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("stillroom.data.store.load_parts", fail)
    assert run(["data", "show", "digits"]) == 2
    errors = capsys.readouterr().err
    assert "not enough memory" in errors
    assert "what to do" in errors
