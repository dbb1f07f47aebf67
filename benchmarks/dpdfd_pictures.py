"""The picture of DPDFD's Fig. 2, drawn from lines of the results."""

from __future__ import annotations

from pathlib import Path

from rona_pictures import COLOURS, Parts, Picture, at

SETTING = "6,000 records of 14x14 pixels, two teachers that saw all of them, gamma C fixed"


def draw(lines: list[Parts], folder: Path) -> list[Path]:
    """Draw Fig. 2, one picture per data set."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for dataset in dict.fromkeys(one["dataset"] for one in lines):
        some = [one for one in lines if (one["figure"], one["dataset"]) == ("bound", dataset)]
        if some:
            drawn.append(folder / f"dpdfd-bound-{dataset.removesuffix('-small')}.png")
            _draw_bounds(some, drawn[-1])
    return drawn


def _draw_bounds(lines: list[Parts], file: Path) -> None:
    """Below each point of the normalised curve stands what Theorem 3 claims, and what holds."""
    dataset = lines[0]["dataset"].removesuffix("-small")
    title = f"Normalise against clip over C (Fig. 2), {dataset}"
    picture = Picture(lines, title, "bound, C", about=f"{SETTING}; own runs, nothing certified")
    picture.plot(with_epsilon=False)
    for one in picture.curves["normalise"]:
        picture.axes.annotate(
            f"claimed {one['claimed_epsilon'] or 0:.0e}\ntrue {one['epsilon']:.0e}",
            (at(one), 3),
            ha="center",
            fontsize=8,
            color=COLOURS[list(picture.curves).index("normalise")],
        )
    picture.axes.margins(x=0.1)
    picture.ticks(log=True)
    picture.axes.set_ylim(0, 100)
    picture.save(file)
