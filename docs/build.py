"""Rebuild the transcripts and the pictures of the documentation from real runs (`make docs`).

A page is a script. Its blocks run from top to bottom in one fresh folder:

- a `console` block holds commands (`$ ...`) and what they print; the printed part is replaced.
  A command that must fail says so: `$ stillroom ... # exit 3`;
- a `python` block runs in one session per page; a `text` block right after it is what it printed;
- `<!-- doctest: module.Name -->` before a `python` block fills it with that name's example;
- `<!-- copy: path -->` before a `toml` block fills it with that file of the repository, and
  `<!-- write: name -->` writes the block to a file in the folder; `examples` is there beforehand;
- `sh` blocks are for make and the shell and do not run.

Tables and pictures of results are filled in by `result_tables.py`. Given paths of pages, only these
are refreshed.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from result_tables import filled

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "labels.svg"
BUNDLE = "digits-model"
DEMO = f"stillroom demo -o {BUNDLE}"

_FENCE = re.compile(r"^```(\w*)\s*$")
_EXIT = re.compile(r"#\s*exit (\d+)\s*$")
_DOCTEST = re.compile(r"^<!-- doctest: ([\w.]+) -->$")
_FILE = re.compile(r"^<!-- (copy|write): ([\w./-]+) -->$")


def pages() -> list[Path]:
    """The pages whose blocks are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def prepare(folder: Path) -> None:
    """Put what a page may use into its fresh folder: the recipes of the repository."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=_anything_but_recipes)


def _anything_but_recipes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".toml")]


@dataclass
class Part:
    """A stretch of a page: a fenced block, or the lines between two of them.

    Args:
        kind: the word after the fence; None for what is not a block.
        lines: without the fences.
    """

    kind: str | None
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The stretch as it stands in the page."""
        fenced = self.lines if self.kind is None else [f"```{self.kind}", *self.lines, "```"]
        return "".join(line + "\n" for line in fenced)


@dataclass(frozen=True)
class Ran:
    """One thing a page said, and what really happened."""

    what: str
    expected_code: int
    code: int
    documented: str
    printed: str


def parts(page: str) -> list[Part]:
    """The stretches of a page, in order."""
    found = [Part(None)]
    for line in page.splitlines():
        fence = _FENCE.match(line)
        if found[-1].kind is None and fence:
            found.append(Part(fence[1]))
        elif found[-1].kind is not None and fence:
            found.append(Part(None))
        else:
            found[-1].lines.append(line)
    return found


def run(page: list[Part]) -> Iterator[Ran]:
    """Run the blocks of a page in the current folder, and put what they print in its place."""
    session: dict[str, Any] = {"__name__": "page"}
    for place, part in enumerate(page):
        if part.kind == "console":
            yield from _run_console(part)
        elif part.kind == "toml":
            yield from _put_file(part, page[place - 1].lines)
        elif part.kind == "python":
            before, after = page[place - 1].lines, page[place + 1 : place + 3]
            marker = _DOCTEST.match(before[-1]) if before else None
            if marker:
                shown, part.lines = "\n".join(part.lines), example(marker[1])
                yield Ran(f"doctest of {marker[1]}", 0, 0, shown, "\n".join(part.lines))
            printed = _run_python("\n".join(part.lines), session)
            follows = len(after) == 2 and after[1].kind == "text" and not any(after[0].lines)
            output = after[1] if follows else Part("text")
            documented, output.lines = "\n".join(output.lines), printed
            yield Ran(part.lines[0], 0, 0, documented, "\n".join(printed))


def _put_file(part: Part, before: list[str]) -> Iterator[Ran]:
    marker = _FILE.match(before[-1]) if before else None
    if marker is None:
        return
    if marker[1] == "write":
        Path(marker[2]).write_text("".join(line + "\n" for line in part.lines), encoding="utf-8")
        return
    shown, part.lines = part.lines, (ROOT / marker[2]).read_text(encoding="utf-8").splitlines()
    yield Ran(f"copy of {marker[2]}", 0, 0, "\n".join(shown), "\n".join(part.lines))


def _run_console(part: Part) -> Iterator[Ran]:
    commands: list[tuple[str, list[str]]] = []
    for line in part.lines:
        if line.startswith("$ "):
            commands.append((line, []))
        else:
            commands[-1][1].append(line)
    part.lines = []
    for line, documented in commands:
        stated = _EXIT.search(line)
        code, printed = _run_command(line.removeprefix("$ "))
        part.lines += [line, *printed]
        expected = int(stated[1]) if stated else 0
        yield Ran(line, expected, code, "\n".join(documented), "\n".join(printed))


def _run_command(command: str) -> tuple[int, list[str]]:
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "STILLROOM_PROGRESS": "no"}
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, **plain, "PATH": own},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, _tidy(done.stdout)


def _run_python(source: str, session: dict[str, Any]) -> list[str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "<page>", "exec"), session)
    return _tidy(printed.getvalue())


def _tidy(output: str) -> list[str]:
    """No trailing blanks, no runs of empty lines: the frames of tables leave both."""
    lines = "\n".join(line.rstrip() for line in output.splitlines()).strip("\n").splitlines()
    return [line for i, line in enumerate(lines) if line or lines[i - 1]]


def example(name: str) -> list[str]:
    """The doctest of a public name as plain lines; what an expression gives is a comment.

    A doctest need not import the name it belongs to; a reader must.
    """
    module, _, attribute = name.rpartition(".")
    documented = getattr(importlib.import_module(module), attribute)
    lines = [f"from {module} import {attribute}"]
    for step in doctest.DocTestParser().get_examples(documented.__doc__ or ""):
        given = f"  # {step.want.strip()}" if step.want else ""
        lines.append(step.source.strip() + given)
    imports = sum(line.startswith(("import ", "from ")) for line in lines)
    return [*lines[:imports], "", *lines[imports:]]


def build(*only: str) -> None:
    """Refresh every page, or those named, and the pictures."""
    runpy.run_path(str(ROOT / "docs" / "house.py"), run_name="__main__")
    for page in [Path(name).resolve() for name in only] or pages():
        stretches = parts(filled(page.read_text(encoding="utf-8")))
        with tempfile.TemporaryDirectory(prefix="stillroom-docs-") as folder:
            home = mock.patch.dict(os.environ, STILLROOM_HOME=str(Path(folder, "home")))
            prepare(Path(folder))
            with home, contextlib.chdir(folder):
                for ran in run(stretches):
                    if ran.code != ran.expected_code:
                        raise SystemExit(
                            f"{page.name}: {ran.what}: ended {ran.code}\n{ran.printed}"
                        )
                    if ran.what == f"$ {DEMO}":
                        draw(Path(BUNDLE), PICTURE)
        page.write_text("".join(part.text() for part in stretches), encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: refreshed")


def draw(bundle: Path, target: Path) -> None:
    """The picture: what the demo's model says of digits it never saw, and what answers cost."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    style: Any = {"svg.hashsalt": "stillroom", "font.size": 10}
    with plt.rc_context(style):
        figure: Any = plt.figure(figsize=(10, 5), facecolor="white")
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
        _draw_labels(left, bundle)
        _draw_prices(right)
        target.parent.mkdir(exist_ok=True)
        figure.savefig(target, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def _draw_labels(panel: Any, bundle: Path) -> None:
    """Digits of the demo's test part, each with the label the released model gives."""
    from stillroom.data import Split, digits
    from stillroom.gate.rounding import shown
    from stillroom.release.predict import predict

    certificate = json.loads((bundle / "certificate.json").read_text(encoding="utf-8"))
    top, accuracy = certificate["headline"], certificate["sections"]["evaluation"]["accuracy"]
    # The demo's own split: the model must not have been trained on these.
    test = Split.by_fraction(digits(), key="demo", public=0, test="1/5").test
    labels, _ = predict(bundle, test.x)
    right = float((labels == test.y).mean())
    # Weights were measured on a grid of integers; a digit that is nearly a tie may fall elsewhere.
    assert abs(right - accuracy) < 0.01, "the certificate measured the demo's test part"
    grid = panel.subplots(6, 6, gridspec_kw={"hspace": 0.5, "wspace": 0.1})
    panel.subplots_adjust(left=0.06, right=0.94, top=0.84, bottom=0.07)
    panel.suptitle(
        f"The released model's labels for {grid.size} test digits, wrong ones in red;\n"
        f"{accuracy:.1%} of all {len(test)} right, at a certified epsilon of "
        f"{shown(top['epsilon'], 3)}",
        fontsize=10,
    )
    for axes, picture, label, truth in zip(grid.flat, test.x, labels, test.y, strict=False):
        wrong = label != truth
        colour = "#c0392b" if wrong else "#222222"
        axes.imshow(picture, cmap="gray_r", interpolation="nearest")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(visible=True, color=colour if wrong else "#cccccc", linewidth=2 * wrong or 1)
        name = f"{label}, not {truth}" if wrong else str(label)
        axes.set_xlabel(name, color=colour, labelpad=2, fontsize=9)


def _draw_prices(panel: Any) -> None:
    """Epsilon against the number of answers, by both accountants."""
    from stillroom import plan
    from stillroom.gate.rounding import shown

    axes = panel.subplots()
    panel.subplots_adjust(left=0.13, right=0.96, top=0.84, bottom=0.13)
    answers = [25, 100, 250, *range(500, 5001, 500)]
    for sigma, colour in ((40, "#1f5fa8"), (100, "#d9822b")):
        made = [plan(queries=count, sigma=sigma).guarantees[0] for count in answers]
        for who, line in (("RDP", "--"), ("PLD", "-")):
            priced = [guarantee.by_accountant[who] for guarantee in made]
            axes.plot(answers, priced, line, color=colour, label=f"sigma {sigma}, {who}")
    marked = plan(queries=2000, sigma=40).epsilon
    axes.plot([2000], [marked], "o", color="#1f5fa8")
    axes.annotate(
        f"2000 answers at sigma 40:\nepsilon {shown(marked, 3)}",
        (2000, marked),
        xytext=(14, -6),
        textcoords="offset points",
        va="top",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlim=(0, 5100), ylim=(0, None))
    axes.set_xlabel("answers (noisy votes, one vote per teacher)")
    axes.set_ylabel("epsilon at delta 1e-5, one record")
    axes.grid(color="#e5e5e5")
    axes.legend(frameon=False, loc="upper left")
    panel.suptitle(
        "What answers cost, by two accountants:\nthe certified figure is the lower one, PLD",
        fontsize=10,
    )


if __name__ == "__main__":
    build(*sys.argv[1:])
