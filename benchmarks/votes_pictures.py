"""Accuracy against entities, participation and epsilon: the study that Zhao 2018 announces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from rona_pictures import Parts, Picture

NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}
PARTICIPATION = "participation "
USUAL = "250 entities"
ABOUT = "all official test pictures; mean and sd of the draws; delta 1e-5"
STUDY = "2,000 questions, a student of one round; one draw; delta 1e-5"


@dataclass(frozen=True)
class Kind:
    """A picture, and which lines of the results are in it.

    Args:
        name: of its file.
        title: what varies.
        label: of the x axis.
        about: the setting.
        chance: whether the scale begins where guessing ends.
    """

    name: str
    title: str
    label: str
    about: str
    chance: bool = False


def draw(lines: list[Parts], folder: Path) -> list[Path]:
    """Draw the pictures for which there are lines."""
    folder.mkdir(parents=True, exist_ok=True)
    # The last line of each row has all of its draws.
    last = {(one["protocol"], one["variant"], one["recipe"]): one for one in lines}
    drawn = []
    for kind, points in _pictures([one for one in last.values() if one["protocol"] == "public"]):
        if not points:
            continue
        picture = Picture(points, kind.title, kind.label, kind.about)
        picture.plot(with_epsilon=False)
        picture.ticks(log=True)
        if kind.chance:
            picture.axes.set_ylim(0, 100)
            picture.axes.axhline(10, color="#777777", linestyle=":", label="guessing")
        drawn.append(folder / f"{kind.name}.png")
        picture.save(drawn[-1])
    return drawn


def _pictures(lines: list[Parts]) -> Iterator[tuple[Kind, list[Parts]]]:
    kind = Kind("votes-entities", "How many entities there are", "entities", STUDY)
    some = [one for one in lines if _is_count(one)]
    yield kind, [_point(one, _at(one), float(one["variant"].split()[0])) for one in some]
    label = "share of the questions that an entity answers"
    kind = Kind("votes-participation", "How many of them answer a question", label, STUDY)
    some = [one for one in lines if one["variant"].startswith(PARTICIPATION)]
    points = [_point(one, _at(one), float(Fraction(one["variant"].split()[1]))) for one in some]
    points += [_point(one, _at(one), 1.0) for one in lines if one["variant"] == USUAL and some]
    yield kind, points
    for dataset, name in NAMES.items():
        title = f"Whom must be trusted, and with what epsilon: {name}"
        label = "certified epsilon of each of 250 entities"
        kind = Kind(f"votes-epsilon-{dataset}", title, label, ABOUT, chance=True)
        some = [one for one in lines if one["dataset"] == dataset and not _is_study(one)]
        yield kind, [_point(one, one["variant"], one["asked"]) for one in some]


def _is_count(one: Parts) -> bool:
    return str(one["variant"]).split()[0].isdecimal()


def _is_study(one: Parts) -> bool:
    return _is_count(one) or str(one["variant"]).startswith(PARTICIPATION)


def _at(one: Parts) -> str:
    return f"{NAMES[one['dataset']]} at epsilon {one['asked']:g}"


def _point(one: Parts, curve: str, x: float) -> Parts:
    return {**one, "curve": curve, "x": {"x": x}}
