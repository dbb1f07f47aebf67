"""The pictures of PG's Figs. 2 to 7, drawn from lines of the results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rona_pictures import Parts, Picture

NAMES = {"mnist": "MNIST-Net", "cifar-10": "CIFAR-Net", "svhn": "SVHN-Net"}
SETTINGS = {
    "mnist": "6,000 records, 3 epochs, 50 models",
    "cifar-10": "4,000 records, 5 epochs, 20 models",
    "svhn": "4,000 digits, 25 epochs, 20 models",
}


@dataclass(frozen=True)
class Kind:
    """How a figure is drawn.

    Args:
        title: what varies, and the paper's figure.
        label: of the x axis.
        log: whether that axis is logarithmic.
    """

    title: str
    label: str
    log: bool = False


KINDS = {
    "states": Kind("Epochs before publishing (Fig. 2)", "epochs"),
    "budget": Kind(
        "Budget (Figs. 3 and 6)", "epsilon: of each weight; of all for DP-SGD", log=True
    ),
    "grouped": Kind(
        "The three budgets of PGP (Fig. 4)", "epsilon, the others as recommended", True
    ),
    "pruned": Kind("Pruning (Figs. 5 and 6)", "share of weights set to zero"),
    "precision": Kind("Precision (Fig. 7)", "bits"),
}


def draw(lines: list[Parts], folder: Path) -> list[Path]:
    """Draw all figures, one picture per data set."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for dataset, name in NAMES.items():
        for figure, kind in KINDS.items():
            some = [
                one
                for one in lines
                if (one["figure"], one["dataset"]) == (figure, f"{dataset}-small")
            ]
            if some:
                drawn.append(folder / f"pg-{figure}-{dataset}.png")
                _draw(some, kind, name, SETTINGS[dataset], drawn[-1])
    return drawn


def _draw(lines: list[Parts], kind: Kind, name: str, setting: str, file: Path) -> None:
    """The last line of each point; one of the models, as trained, is a level line."""
    latest = {(one["curve"], str(one["x"])): one for one in lines}
    about = f"{setting}; own runs, as published: nothing here is certified but DP-SGD"
    picture = Picture(list(latest.values()), f"{kind.title}, {name}", kind.label, about)
    picture.plot(with_epsilon=False)
    if kind.title != KINDS["states"].title:
        curve = next(c for c, found in picture.curves.items() if found[0]["controls"])
        picture.rule("one model", curve, "one of the models, as trained")
    picture.axes.set_ylabel("test accuracy, %", fontsize=11)
    picture.axes.set_ylim(0, 100)
    picture.ticks(log=kind.log)
    picture.save(file)
