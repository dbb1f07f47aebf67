"""Tables and pictures of the benchmarks' results, as they stand on the pages.

Between `<!-- results: NAME -->` and `<!-- end of results -->` stands a table of the last figure of
each recipe in benchmarks/results/NAME.jsonl; `<!-- results: NAME KIND -->` asks for another kind of
table, see `TABLES`. Between `<!-- pictures: NAME -->` and `<!-- end of pictures -->` stand those of
NAME in `PICTURES` that are drawn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_RESULTS = re.compile(
    r"(<!-- results: ([\w-]+) ?([\w-]*) -->\n).*?(<!-- end of results -->\n)", re.S
)
_PICTURES = re.compile(r"(<!-- pictures: ([\w-]+) -->\n).*?(<!-- end of pictures -->\n)", re.S)
_ONE_OF_A_STUDY = re.compile(r"participation |\d+ entities")
"""Rows of pictures that vary one number; their students are quicker ones."""
NOTHING = "Nothing was measured yet."
PICTURES = {
    "rona-figures": {
        "rona-hint-epochs": "hint epochs",
        "rona-distillation-epochs": "distillation epochs",
        "rona-batch-size": "batch size",
        "rona-noise": "noise",
        "rona-queries": "number of queries, for four ways to select them",
        "rona-bound": "adaptive against fixed bound",
    },
    "dpdfd-ablations": {
        "dpdfd-bound-mnist": "the bound C, MNIST",
        "dpdfd-bound-fashion-mnist": "the bound C, Fashion-MNIST",
    },
    "votes": {
        "votes-epsilon-mnist": "epsilon and who must be trusted, MNIST",
        "votes-epsilon-fashion-mnist": "epsilon and who must be trusted, Fashion-MNIST",
        "votes-entities": "the number of entities",
        "votes-participation": "the share of questions that an entity answers",
    },
    "pg-figures": {
        "pg-states-mnist": "epochs, MNIST-Net",
        "pg-budget-mnist": "the budget, MNIST-Net",
        "pg-grouped-mnist": "the budgets of PGP, MNIST-Net",
        "pg-pruned-mnist": "pruning, MNIST-Net",
        "pg-precision-mnist": "precision, MNIST-Net",
        "pg-states-cifar-10": "epochs, CIFAR-Net",
        "pg-budget-cifar-10": "the budget, CIFAR-Net",
        "pg-grouped-cifar-10": "the budgets of PGP, CIFAR-Net",
        "pg-pruned-cifar-10": "pruning, CIFAR-Net",
        "pg-precision-cifar-10": "precision, CIFAR-Net",
        "pg-budget-svhn": "the budget, SVHN-Net",
        "pg-pruned-svhn": "pruning, SVHN-Net",
    },
}
"""By their results, the pictures that a benchmark draws, and what accuracy is drawn against."""


def filled(
    page: str,
    results: Path = ROOT / "benchmarks" / "results",
    pictures: Path = ROOT / "docs" / "pictures",
) -> str:
    """A page with its tables and pictures of results as the files have them."""

    def table(found: re.Match[str]) -> str:
        rows = TABLES[found[3]](results / f"{found[2]}.jsonl")
        return found[1] + "".join(row + "\n" for row in rows) + found[4]

    def drawn(found: re.Match[str]) -> str:
        lines = pictures_of(results / f"{found[2]}.jsonl", pictures, PICTURES[found[2]])
        return found[1] + "".join(line + "\n" for line in lines) + found[3]

    return _PICTURES.sub(drawn, _RESULTS.sub(table, page))


def _figures(results: Path, *keys: str) -> list[dict[str, Any]]:
    """The last figure of each kind: of each recipe, say."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    figures = map(json.loads, lines)
    kinds = {json.dumps([figure[key] for key in keys]): figure for figure in figures}
    return list(kinds.values())


def _rows(names: str, cells: Sequence[Sequence[str]]) -> list[str]:
    if not cells:
        return [NOTHING]
    head = names.split(", ")
    lines = [f"| {' | '.join(line)} |" for line in (head, *cells)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def _epsilon(figure: dict[str, Any]) -> str:
    from stillroom.gate.rounding import shown

    epsilon = figure["epsilon"]
    return shown(epsilon, 3) if isinstance(epsilon, (int, float)) else str(epsilon)


def _percent(found: dict[str, Any] | None, form: str = ".2f") -> str:
    """A mean with its standard deviation, both in per cent."""
    if not found or found["mean"] is None:
        return "-"
    spread = "" if found["sd"] is None else f" ({100 * found['sd']:.2f})"
    return f"{100 * found['mean']:{form}}{spread}"


def results_table(results: Path, dataset: str | None = None) -> list[str]:
    """The last figure of each recipe, or of those of a data set; links start in docs/."""
    cells = []
    for figure in _figures(results, "recipe"):
        if dataset not in (None, figure["dataset"]):
            continue
        recipe, spread = figure["recipe"], figure["sd"]
        cells.append(
            (
                figure["dataset"],
                _epsilon(figure),
                f"{figure['delta']:g}",
                f"{figure['mean']:.2%}" + ("" if spread is None else f", sd {spread:.2%}"),
                str(figure["draws"]),
                figure["published"] or "none",
                f"[{Path(recipe).stem}](../{recipe})",
            )
        )
    return _rows("data set, epsilon, delta, accuracy, draws, published, recipe", cells)


def controls_table(results: Path) -> list[str]:
    """Students beside their controls, in per cent with the standard deviation in brackets."""
    cells = []
    for figure in _figures(results, "recipe", "metric"):
        beside, recipe = figure["controls"], figure["recipe"]
        untaught = beside.get("teacher on public data") or beside.get("auxiliary teacher")
        part = figure["metric"].removeprefix("accuracy on ").removeprefix("the official test part")
        cells.append(
            (
                f"[{figure['setting']}](../{recipe})" + (part and f": {part}"),
                figure["dataset"],
                _epsilon(figure),
                f"`{figure['student']}` {_percent(figure)}",
                *(_percent(one) for one in (beside.get("Base"), untaught)),
                *(_percent(beside.get(name)) for name in ("teacher", "ceiling")),
                _percent(figure["gain"], "+.2f"),
                str(figure["published"] or "none"),
            )
        )
    names = "setting, data set, certified epsilon, student, Base, teacher on public data, teacher, "
    return _rows(names + "ceiling, gain over Base, paper", cells)


def compression_table(results: Path) -> list[str]:
    """Teacher over student: how many times smaller and faster."""
    cells = []
    for figure in _figures(results, "recipe", "metric"):
        if not figure["setting"].startswith("compression"):
            continue
        times, teacher = figure["ratios"], figure["controls"].get("teacher")
        lost = f"{100 * (teacher['mean'] - figure['mean']):+.2f}" if teacher else "-"
        ratios = (times.get(name) for name in ("parameters", "size", "speed", "int8_speed"))
        cells.append(
            (
                figure["setting"],
                figure["dataset"],
                _epsilon(figure),
                f"`{figure['student']}` {_percent(figure)}",
                _percent(teacher),
                lost,
                *("-" if ratio is None else f"{ratio:.1f}" for ratio in ratios),
                str(figure["published"] or "none"),
            )
        )
    names = "setting, data set, certified epsilon, student, teacher, points lost, "
    return _rows(names + "parameters, size, speed, int8 speed, paper", cells)


def speed_table(results: Path) -> list[str]:
    """Timings and memory beside a peer's."""
    cells = [
        (
            figure["metric"],
            f"{figure['mean']:.3g}",
            figure["peer"] or "-",
            *(
                "-" if figure[key] is None else f"{figure[key]:,.{digits}f}"
                for key, digits in (("peer_mean", 1), ("ratio", 1), ("peak_mb", 0))
            ),
        )
        for figure in _figures(results, "metric", "peer")
    ]
    return _rows("figure, ours, against, its figure, ratio, peak MB of ours", cells)


def students_table(results: Path) -> list[str]:
    """Students that never saw a real picture beside their teachers, and who took the time."""
    cells = []
    for figure in _figures(results, "recipe"):
        teacher, shares = figure["controls"].get("teacher"), figure["shares"]
        cells.append(
            (
                f"[{figure['setting']}](../{figure['recipe']})",
                figure["dataset"],
                _epsilon(figure),
                f"`{figure['student']}` {_percent(figure)}",
                _percent(teacher),
                f"{100 * (teacher['mean'] - figure['mean']):+.2f}" if teacher else "-",
                str(figure["draws"]),
                figure["published"] or "none",
                f"{figure['seconds'] / 60:.1f}",
                ", ".join(f"{who} {share:.0%}" for who, share in shares.items() if share >= 0.005),
            )
        )
    names = "setting, data set, certified epsilon, student, teacher, points lost, draws, paper, "
    return _rows(names + "minutes, share of the time", cells)


def samples_table(results: Path) -> list[str]:
    """Networks trained on samples alone, and below each data set what the field reaches."""
    cells, figures = [], _figures(results, "recipe", "row")
    others = {(one["dataset"], round(one["epsilon"])): one["field"] for one in figures}
    for (dataset, epsilon), peers in others.items():
        for one in sorted(figures, key=lambda one: str(one["row"])):
            if (one["dataset"], round(one["epsilon"])) == (dataset, epsilon):
                minutes, recipe = f"{one['seconds'] / 60:.1f} minutes", one["recipe"]
                about = f"ours, [{one['row']}](../{recipe})"
                told = (_epsilon(one), about, _percent(one), str(one["draws"]), minutes)
                cells.append((dataset, *told))
        for name, accuracy, printed in sorted(peers, key=lambda peer: -float(peer[1])):
            told = (str(epsilon), f"{name} ({printed})", f"{100 * accuracy:.1f}", "-", "-")
            cells.append((dataset, *told))
    return _rows("data set, epsilon, samples, accuracy, draws, time in all", cells)


def ablations_table(figure: str, what: str) -> Callable[[Path], list[str]]:
    """A table of the paper in small: what is claimed and what holds stand beside each accuracy."""

    def table(results: Path) -> list[str]:
        cells = []
        for one in _figures(results, "figure", "curve", "dataset", "x"):
            if one["figure"] != figure:
                continue
            teacher = one["controls"].get("teacher")
            cells.append(
                (
                    one["dataset"].removesuffix("-small"),
                    ", ".join([one["curve"], *(f"{k} {v}" for k, v in one["x"].items())]),
                    f"{100 * one['mean']:.2f}",
                    "-" if teacher is None else f"{100 * teacher:.2f}",
                    *(_rough(one[key]) for key in ("claimed_epsilon", "epsilon")),
                )
            )
        return _rows(f"data set, {what}, student, teacher, claimed epsilon, true epsilon", cells)

    return table


def _rough(epsilon: float | str | None) -> str:
    """Two digits are enough for an epsilon that certifies nothing."""
    if not isinstance(epsilon, (int, float)):
        return str(epsilon)
    return f"{epsilon:.2g}" if epsilon < 10 else f"{epsilon:,.0f}"


def latents_table(results: Path) -> list[str]:
    """One row per data set and way to publish, one column per epsilon."""
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for one in _figures(results, "dataset", "variant", "asked"):
        found.setdefault((one["dataset"], one["variant"]), {})[one["asked"]] = one
    epsilons = sorted({asked for figures in found.values() for asked in figures})
    cells = []
    for (dataset, variant), figures in found.items():
        any_one = next(iter(figures.values()))
        told = [_percent(figures.get(epsilon)) for epsilon in epsilons]
        start = any_one["controls"].get("start")
        cells.append((dataset, variant, *told, _percent(start), str(any_one["draws"])))
    names = ", ".join(f"epsilon {epsilon}" for epsilon in epsilons)
    return _rows(f"data set, published, {names}, start, draws", cells)


def generator_table(results: Path) -> list[str]:
    """How long parameters take and what memory, by their number, and beside loops."""
    cells = []
    for one in _figures(results, "weights", "metric", "peer"):
        beside = ("-", "-", "-")
        if one["peer"]:
            ratio = f"{one['ratio']:,.0f} times"
            beside = (one["peer"], f"{one['peer_mean']:,.0f}", ratio)
        cells.append((f"{one['weights']:,}", one["metric"], f"{one['mean']:,.2f}", *beside))
    return _rows("weights, figure, ours, peer, theirs, ratio", cells)


def voted_table(results: Path) -> list[str]:
    """One row per protocol, data set and way to answer, one column per epsilon."""
    found: dict[tuple[str, str, str], dict[float, dict[str, Any]]] = {}
    for one in _figures(results, "protocol", "dataset", "variant", "asked"):
        if _ONE_OF_A_STUDY.match(one["variant"]):
            continue
        found.setdefault((one["dataset"], one["protocol"], one["variant"]), {})[one["asked"]] = one
    if not found:
        return [NOTHING]
    epsilons = sorted({asked for figures in found.values() for asked in figures})
    cells = []
    for key, figures in sorted(found.items()):
        told = [_percent(figures.get(epsilon)) for epsilon in epsilons]
        draws = sorted({one["draws"] for one in figures.values()})
        minutes = sum(one["seconds"] for one in figures.values()) / len(figures) / 60
        often = str(draws[0]) if len(draws) == 1 else f"{draws[0]} to {draws[-1]}"
        cells.append((*key, *told, often, f"{minutes:.0f}"))
    names = ", ".join(f"epsilon {epsilon:g}" for epsilon in epsilons)
    return _rows(f"data set, protocol, answers, {names}, draws, minutes", cells)


def sessions_table(results: Path) -> list[str]:
    """What a secure sum costs an entity and the aggregator, by how many entities there are."""
    found: dict[tuple[int, str], dict[str, float]] = {}
    for one in _figures(results, "entities", "method", "metric"):
        found.setdefault((one["entities"], one["method"]), {})[one["metric"]] = one["mean"]
    cells = [
        (
            f"{entities:,}",
            method,
            f"{figures['CPU seconds, entity']:.3f}",
            f"{figures['CPU seconds, aggregator']:.2f}",
            f"{figures['bytes, entity'] / 1000:,.0f}",
        )
        for (entities, method), figures in sorted(found.items())
    ]
    names = "entities, protocol, CPU seconds per entity, CPU seconds of the aggregator"
    return _rows(f"{names}, kB per entity", cells)


def private_tables(results: Path) -> list[str]:
    """Private accuracy beside that of a model without privacy, on the same features."""
    cells = [
        (
            f"[{one['dataset']}](../{one['file']})",
            one["unit"],
            f"{_epsilon(one)} at {one['delta']:g}",
            str(one["features"]),
            _percent(one),
            f"{100 * one['peer_mean']:.2f}",
            f"{100 * (one['mean'] - one['peer_mean']):+.2f}",
            str(one["draws"]),
        )
        for one in _figures(results, "variant")
    ]
    names = "data set, unit, certified epsilon, features, private accuracy, not private, "
    return _rows(names + "difference in points, draws", cells)


TABLES: dict[str, Callable[[Path], list[str]]] = {
    "": results_table,
    "cifar-10": partial(results_table, dataset="cifar-10"),
    "controls": controls_table,
    "compression": compression_table,
    "speed": speed_table,
    "students": students_table,
    "samples": samples_table,
    "tables": private_tables,
    "noise": ablations_table("noise", "gradients and sigma"),
    "terms": ablations_table("terms", "terms of Eq. 5"),
    "latents": latents_table,
    "voted": voted_table,
    "sessions": sessions_table,
    "generator": generator_table,
    "networks": ablations_table("networks", "teacher's network"),
}
"""The kinds of tables, by the word after the name of the results."""


def pictures_of(results: Path, pictures: Path, wanted: dict[str, str]) -> list[str]:
    """The pictures that are drawn, and a plain word on those that are not."""
    found = {name: what for name, what in wanted.items() if (pictures / f"{name}.png").exists()}
    lines = [f"![Accuracy against {what}.](pictures/{name}.png)" for name, what in found.items()]
    missing = [what for name, what in wanted.items() if name not in found]
    if missing:
        lines.append(f"Not drawn yet: {'; '.join(missing)}.")
    if not _figures(results, "bench"):
        lines.append(NOTHING)
    return [line for pair in zip(lines, [""] * len(lines), strict=True) for line in pair][:-1]
