"""The pictures of RONA's Fig. 2, drawn from lines of the results."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

Parts = dict[str, Any]

ENSEMBLE = "RONA-E"
NOISE = 20
"""In votes of 100 teachers, unless a figure varies it."""
MARKS = ("o", "s", "^", "D", "v")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
SETTING = "MNIST, 12,000 records of 14x14 (2,000 public), 10,000 tested; mean and sd of 2 seeds"
ABOUT = f"{SETTING}\nthe paper's own figure, for CIFAR-10, had no valid guarantee"


def float_of(epsilon: float | str) -> float:
    """An epsilon as certificates spell it."""
    return float("inf") if epsilon == "infinite" else float(epsilon)


def spelled(epsilon: float | str) -> str:
    """An epsilon for a picture."""
    number = float_of(epsilon)
    return (
        "\u221e" if number == float("inf") else f"{number:.2g}" if number < 10 else f"{number:.0f}"
    )


class Picture:
    """A picture of some curves, made from lines of the results and nothing else.

    Args:
        lines: of one figure.
        title: what varies.
        label: of the x axis; x is the one number each line has.
        about: the setting.
    """

    def __init__(self, lines: list[Parts], title: str, label: str, about: str = ABOUT) -> None:
        from matplotlib.figure import Figure

        self._figure = Figure(figsize=(7.6, 4.9), dpi=140, layout="constrained")
        self.axes = self._figure.subplots()
        self._figure.suptitle(title, fontsize=13, fontweight="bold")
        self.axes.set_title(about, fontsize=9, color="#444444")
        self.axes.set_xlabel(label, fontsize=11)
        self.axes.set_ylabel("student's accuracy, %", fontsize=11)
        self.axes.grid(alpha=0.3)
        self.curves: dict[str, list[Parts]] = {}
        for one in lines:
            self.curves.setdefault(one["curve"], []).append(one)
        for found in self.curves.values():
            found.sort(key=at)

    def plot(self, *, with_epsilon: bool = True) -> None:
        """All curves; an epsilon that is the same all along stands in the legend."""
        for place, (name, lines) in enumerate(self.curves.items()):
            prices = list(dict.fromkeys(spelled(one["epsilon"]) for one in lines))
            price = f" (\u03b5 = {prices[0]})" if with_epsilon and len(prices) == 1 else ""
            self.axes.errorbar(
                [at(one) for one in lines],
                [100 * one["mean"] for one in lines],
                [100 * (one["sd"] or 0) for one in lines],
                marker=MARKS[place % len(MARKS)],
                color=COLOURS[place % len(COLOURS)],
                linestyle="-" if ENSEMBLE in name or not with_epsilon else "--",
                capsize=3,
                label=f"{name}{price}",
            )

    def rule(self, control: str, curve: str, label: str, style: str = ":") -> None:
        """A level line: the mean of a control over the points of a curve."""
        if curve not in self.curves:
            return
        level = 100 * mean(one["controls"][control] for one in self.curves[curve])
        self.axes.axhline(level, color="#777777", linestyle=style, linewidth=1.2, label=label)

    def ticks(self, *, log: bool = False) -> None:
        """A tick at each x."""
        if log:
            self.axes.set_xscale("log")
        places = sorted({at(one) for lines in self.curves.values() for one in lines})
        self.axes.set_xticks(places, [f"{place:g}" for place in places])
        self.axes.minorticks_off()

    def save(self, file: Path) -> None:
        """Write the picture."""
        self.axes.legend(fontsize=9)
        self._figure.savefig(file)


def at(one: Parts) -> float:
    """The x of a line."""
    (x,) = one["x"].values()
    return float(x)


def draw(lines: list[Parts], folder: Path) -> list[Path]:
    """Draw Fig. 2 from lines of the results."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for figure, (name, how) in DRAWN.items():
        some = [one for one in lines if one["figure"] == figure]
        if some:
            drawn.append(folder / f"rona-{name}.png")
            how(some, drawn[-1])
    return drawn


def _draw_hints(lines: list[Parts], file: Path) -> None:
    picture = Picture(lines, "Hint epochs (Fig. 2a)", "hint epochs, T_h")
    picture.plot()
    picture.ticks()
    picture.save(file)


def _draw_distillation(lines: list[Parts], file: Path) -> None:
    picture = Picture(lines, "Distillation epochs (Fig. 2b)", "distillation epochs in all, R T_d")
    picture.plot()
    picture.ticks(log=True)
    picture.save(file)


def _draw_batches(lines: list[Parts], file: Path) -> None:
    picture = Picture(lines, "Batch size (Fig. 2c)", "batch size, S, at the same number of epochs")
    picture.plot()
    picture.ticks(log=True)
    picture.save(file)


def _draw_noise(lines: list[Parts], file: Path) -> None:
    label = "noise, \u03c3: in bounds B as published, in teachers' votes for RONA-E"
    picture = Picture(lines, "Noise (Fig. 2d), and the true \u03b5 beside each point", label)
    picture.plot(with_epsilon=False)
    for name, found in picture.curves.items():
        for one in found:
            price = spelled(one["epsilon"])
            if price == "\u221e":
                price += f" (claimed {spelled(one['claimed_epsilon'])})"
            picture.axes.annotate(
                f"\u03b5 = {price}",
                (at(one), 100 * one["mean"]),
                xytext=(0, 9) if name == "as published" else (26, -13),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                color=COLOURS[list(picture.curves).index(name)],
            )
    picture.rule("Base", ENSEMBLE, "RONA-E's Base: public labels alone")
    picture.ticks(log=True)
    picture.axes.set_xlim(0.6, 170)
    picture.axes.set_ylim(0, 105)
    picture.save(file)


def _draw_queries(lines: list[Parts], file: Path) -> None:
    noise = f"noise {NOISE} of 100 votes each"
    picture = Picture(lines, "Queries (Fig. 2e)", f"answers, {noise}, and their certified \u03b5")
    picture.plot(with_epsilon=False)
    picture.rule("Base", "k-centre", "Base: public labels alone")
    picture.ticks(log=True)
    prices = {at(one): spelled(one["epsilon"]) for one in lines}
    ticks = sorted(prices)
    picture.axes.set_xticks(ticks, [f"{x:g}\n\u03b5 = {prices[x]}" for x in ticks])
    picture.save(file)


def _draw_bounds(lines: list[Parts], file: Path) -> None:
    label = "distillation epochs in all, R T_d, with R = 2; as published, \u03b5 = \u221e"
    picture = Picture(lines, "Adaptive against fixed bounds (Fig. 2f)", label)
    picture.plot(with_epsilon=False)
    picture.ticks(log=True)
    picture.save(file)


DRAWN = {
    "a": ("hint-epochs", _draw_hints),
    "b": ("distillation-epochs", _draw_distillation),
    "c": ("batch-size", _draw_batches),
    "d": ("noise", _draw_noise),
    "e": ("queries", _draw_queries),
    "f": ("bound", _draw_bounds),
}
"""Figure -> its picture, and how it is drawn."""
