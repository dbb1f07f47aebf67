"""Draw the rooms of stillroom and what they import of each other (`make docs`).

Rooms are the packages and modules directly under src/stillroom. Rows are the layers of the import
contract in pyproject.toml. An arrow says that one room imports another; it is wider where there are
more imports. The same tree gives the same bytes. Alone: `python docs/house.py`.
"""

from __future__ import annotations

import ast
import math
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "house.svg"
WIDTH, BOX, ROW = 1000, (116, 38), 90
PALE = "#d5d5d5"
COLOURS = ("#1f5fa8", "#d9822b", "#2e8b57", "#8e44ad", "#c0392b", "#16808c", "#7f6a1f")

Place = tuple[float, float, int]  # the middle of a box, and its row


def rooms(package: Path) -> dict[str, list[Path]]:
    """The modules of each room; the package's own `__init__` only hands names on."""
    entries = [path for path in sorted(package.iterdir()) if not path.name.startswith("__")]
    found = {
        path.stem: [path] if path.is_file() else sorted(path.rglob("*.py")) for path in entries
    }
    return {room: files for room, files in found.items() if files and files[0].suffix == ".py"}


def imports(package: Path) -> Counter[tuple[str, str]]:
    """How many imports of one room the modules of another have."""
    houses, counts = rooms(package), Counter[tuple[str, str]]()
    for room, files in houses.items():
        for file in files:
            named = _named(ast.parse(file.read_text(encoding="utf-8")), package.name)
            seen = {name for name in named if name[0] in houses and name[0] != room}
            counts.update((room, name[0]) for name in seen)
    return counts


def _named(tree: ast.AST, package: str) -> set[tuple[str, ...]]:
    """What a module imports of the package, as paths without the package's name."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {tuple(name.name.split(".")) for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            path = tuple(node.module.split("."))
            whole = path == (package,)
            found |= {(*path, name.name) for name in node.names} if whole else {path}
    return {path[1:] for path in found if path[0] == package and len(path) > 1}


def layers(project: Path, names: list[str]) -> list[list[str]]:
    """The rows of the contract, without rooms that are not there; others stand in the last row."""
    contracts = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]
    rows = [
        [word.strip(" ()").rpartition(".")[2] for word in row.replace("|", ":").split(":")]
        for row in contracts["contracts"][0]["layers"]
    ]
    known = {name for row in rows for name in row}
    rows[-1] += [name for name in names if name not in known]
    return [kept for row in rows if (kept := [name for name in row if name in names])]


def draw(package: Path, project: Path) -> str:
    """The picture, as the text of an SVG file."""
    counts = imports(package)
    rows = layers(project, list(rooms(package)))
    place, colour = dict[str, Place](), dict[str, str]()
    for depth, row in enumerate(rows):
        for number, room in enumerate(row):
            # Rows are moved by turns, so that few arrows pass behind the boxes of a row.
            shift = (depth % 2 - 0.5) * (300 if len(row) == 1 else 30)
            x = 20 + (WIDTH - 40) * (number + 0.5) / len(row) + shift
            place[room] = (x, ROW * depth + 40, depth)
            colour[room] = COLOURS[depth % len(COLOURS)]
    height, last = ROW * len(rows) + 10, len(rows) - 1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="14">',
        "<title>The rooms of stillroom and what they import of each other</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    # Arrows to the last row go everywhere, so they are drawn first and pale.
    order = sorted(counts, key=lambda pair: (place[pair[1]][2] != last, pair))
    for pair in order:
        ink = PALE if place[pair[1]][2] == last else colour[pair[0]]
        lines.append(_arrow(place, pair, counts[pair], ink))
    for room, (x, y, _) in place.items():
        lines.append(
            f'<rect x="{x - BOX[0] / 2:.0f}" y="{y - BOX[1] / 2:.0f}" width="{BOX[0]}" '
            f'height="{BOX[1]}" rx="6" fill="white" stroke="{colour[room]}" stroke-width="2"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{room}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _arrow(place: dict[str, Place], pair: tuple[str, str], count: int, ink: str) -> str:
    """A curve from below one box to above another; within a row, an arc below it."""
    (x, y, depth), (to_x, to_y, to_depth) = place[pair[0]], place[pair[1]]
    level = depth == to_depth
    start, end = y + BOX[1] / 2, to_y + (1 if level else -1) * BOX[1] / 2
    middle = start + 34 if level else (start + end) / 2
    width = 0.8 + math.log2(count) * (0.5 if ink == PALE else 0.8)
    return (
        f'<g fill="{ink}" stroke="{ink}"><title>{pair[0]} imports {pair[1]}: {count}</title>'
        f'<path d="M{x:.0f} {start:.0f}C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} '
        f'{to_x:.0f} {end:.0f}" fill="none" stroke-width="{width:.1f}" opacity="0.8"/>'
        f'<path d="M{to_x:.0f} {end:.0f}l-4 {7 if level else -7}h8z"/></g>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(ROOT / "src" / "stillroom", ROOT / "pyproject.toml"), encoding="utf-8")
