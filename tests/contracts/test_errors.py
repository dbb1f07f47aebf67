"""Every error says what happened, why it matters and what to do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import stillroom
from stillroom import errors

SOURCE = Path(stillroom.__file__).parent
FAMILY = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.StillroomError)
}


def silent(source: str) -> list[str]:
    """Errors that are made without a reason or a remedy; `located` may say where."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in FAMILY:
            continue
        said = {keyword.arg for keyword in node.keywords}
        if None not in said and node.args and not {"why", "remedy"} <= said:
            found.append(f"line {node.lineno}: {ast.unparse(node.args[0])}")
    return found


FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("place", [f for f in FILES if f != "errors.py"])
def test_every_error_says_why_it_matters_and_what_to_do(place):
    assert silent((SOURCE / place).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "raise BadInput('no file')",
        "raise BadInput('no file', where='x', remedy='give one')",
        "raise DoesNotVerify(f'{name}', why='odd')",
    ],
)
def test_a_silent_error_would_be_found(line):
    assert silent(line)
