"""Rows of a benchmark, each measured in several draws: one loop, and as many processes as wanted.

After each draw a line is appended to the results, with all draws of that row so far. With
--continue, draws of the same recipe that stand in the results are not made again.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from measuring import append, read

Parts = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """What is measured.

    Args:
        dataset: its name.
        name: how it is answered or published, in words.
        epsilon: what is asked for.
        text: the recipe of the first draw.
        draws: how many there are.
        least: the least mean accuracy wanted.
        protocol: what is public and what is reported, where there are several.
    """

    dataset: str
    name: str
    epsilon: float
    text: str
    draws: int
    least: float | None = None
    protocol: str | None = None

    @property
    def title(self) -> str:
        """What a pattern is looked for in."""
        words = (self.protocol, self.dataset, self.name, f"{self.epsilon:g}")
        return " ".join(word for word in words if word)

    def is_of(self, line: Parts) -> bool:
        """Whether a line of the results is a figure of this row."""
        found = (line.get("protocol"), line["variant"], line["recipe"])
        return found == (self.protocol, self.name, self.text)


@dataclass(frozen=True)
class Benchmark:
    """How rows are measured, and where the figures go.

    Args:
        name: of the results.
        rows: all rows, the most important first.
        draw: one draw of a row, by its number; a function of a module, so that processes find it.
        line: a line of the results, from a row and its draws so far.
        cores: how many draws run at the same time.
    """

    name: str
    rows: Iterable[Row]
    draw: Callable[[Row, int], Parts]
    line: Callable[[Row, list[Parts]], Parts]
    cores: int = 1

    def main(self, words: Sequence[str], about: str) -> int:
        """Measure the rows that match; 1 if a target was missed."""
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("pattern", nargs="?", default="", help="a part of a row's title")
        parser.add_argument("--draws", type=int, help="of each row, at most")
        parser.add_argument("--cores", type=int, default=self.cores, help="draws at the same time")
        parser.add_argument("--continue", action="store_true", dest="go_on", help="keep known ones")
        told = parser.parse_args(words)
        rows = [row for row in self.rows if re.search(told.pattern, row.title)]
        runs = {row: self._known(row) if told.go_on else {} for row in rows}
        wanted = {row: min(row.draws, told.draws or row.draws) for row in rows}
        left = [(row, n) for row in rows for n in range(wanted[row]) if n not in runs[row]]
        for row, number, found in self._measured(left, told.cores):
            runs[row][number] = {"draw": number, **found}
            append(self.name, [self.line(row, _in_order(runs[row]))])
            if len(runs[row]) == wanted[row]:
                print(f"{row.title}: {_verdict(row, self.line(row, _in_order(runs[row])))}")
        means = {row: self.line(row, _in_order(done))["mean"] for row, done in runs.items() if done}
        missed = [row for row, mean in means.items() if row.least and mean < row.least]
        for row in missed:
            print(f"{row.title}: {means[row]:.2%} MISSES {row.least:.1%}")
        return 1 if missed else 0

    def _known(self, row: Row) -> dict[int, Parts]:
        old = [one for one in read(self.name) if row.is_of(one)]
        runs = old[-1]["runs"] if old else []
        return {one.get("draw", place): one for place, one in enumerate(runs)}

    def _measured(
        self, left: Sequence[tuple[Row, int]], cores: int
    ) -> Iterator[tuple[Row, int, Parts]]:
        if cores == 1:
            for row, number in left:
                yield row, number, self.draw(row, number)
            return
        # A new process for each draw: memory is given back, and its peak is that draw's.
        with ProcessPoolExecutor(
            cores, mp_context=get_context("spawn"), max_tasks_per_child=1
        ) as pool:
            asked: dict[Future[Parts], tuple[Row, int]] = {
                pool.submit(self.draw, row, number): (row, number) for row, number in left
            }
            try:
                for done in as_completed(asked):
                    yield *asked[done], done.result()
            finally:
                pool.shutdown(cancel_futures=True)


def _in_order(runs: dict[int, Parts]) -> list[Parts]:
    return [runs[number] for number in sorted(runs)]


def _verdict(row: Row, found: Parts) -> str:
    wanted = f", wanted {row.least:.1%}" if row.least else ""
    return (
        f"{found['mean']:.2%} (sd {found['sd'] or 0:.2%}, {found['draws']} draws){wanted}  "
        f"{found['seconds']:.0f} s each"
    )
