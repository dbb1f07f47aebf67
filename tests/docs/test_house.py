"""The picture of the rooms is drawn from the tree as it is."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = runpy.run_path(str(ROOT / "docs" / "house.py"))


def test_the_picture_of_the_rooms_is_up_to_date():
    drawn = HOUSE["draw"](ROOT / "src" / "stillroom", ROOT / "pyproject.toml")
    stored = HOUSE["PICTURE"].read_text(encoding="utf-8")
    assert drawn == stored, "stale, run `make docs` or `python docs/house.py`"


@pytest.fixture
def small(tmp_path):
    """Three rooms, one of which the contract does not name."""
    files = {
        "top/a.py": "import stillroom.low.c\nfrom stillroom.low import c, d\nimport stillroom.odd",
        "top/b.py": "def late():\n    from stillroom.low import c\nfrom stillroom.top import a",
        "low/c.py": "import os, stillroom\nfrom stillroom import Name",
        "odd.py": "",
        "__init__.py": "from stillroom.top import a",
    }
    for name, text in files.items():
        path = tmp_path / "stillroom" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    layers = '["stillroom.top", "(stillroom.gone) | stillroom.low", "stillroom.bottom"]'
    contract = f"[[tool.importlinter.contracts]]\nlayers = {layers}\n"
    (tmp_path / "pyproject.toml").write_text(contract)
    return tmp_path


def test_imports_are_counted_wherever_they_stand(small):
    counts = HOUSE["imports"](small / "stillroom")
    assert dict(counts) == {("top", "low"): 3, ("top", "odd"): 1}


def test_rows_are_the_layers_of_the_contract(small):
    rows = HOUSE["layers"](small / "pyproject.toml", ["low", "odd", "top"])
    assert rows == [["top"], ["low"], ["odd"]]


def test_a_new_import_changes_the_picture(small):
    package, project = small / "stillroom", small / "pyproject.toml"
    before = HOUSE["draw"](package, project)
    assert before == HOUSE["draw"](package, project)
    (package / "odd.py").write_text("import stillroom.low.c")
    assert HOUSE["draw"](package, project) != before
