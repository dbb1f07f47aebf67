"""Draw records from the generator of a bundle into a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.public.query_mixing import Variety
from stillroom.randomness import integers
from stillroom.release.drawing import GeneratorBundle, open_generator
from stillroom.release.generator import Records
from stillroom.release.npz import new_npz, refuse_existing

TOGETHER = 1024
"""Records drawn at once, or fewer where they are large."""
NUMBERS_TOGETHER = 1 << 24
MOST_SAMPLES = 100_000_000
LONGEST_NAMES = 1 << 22
"""The number of classes times the letters of the longest name: all take as many in a file."""
LEAST_TRIES = 20_000
FEWEST = 200
"""After so many tries, fewer than one in so many that is kept ends the drawing."""
SMALLEST_SIDE, MOST_PIXELS = 4, 1 << 18
"""Of a picture that can be varied."""

Rows = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Wish:
    """What is to be drawn.

    Args:
        count: how many records.
        start_seed: of the draws; the same one gives the same records.
        labels: "drawn", the class a record was drawn for; "model", the class the bundle's
            classifier gives it; None for the first where there is one.
        agreeing: only records whose two classes agree.
        only: the names of the classes that are drawn, or that the classifier gives where a
            generator knows no classes; all, where it is empty.
        varied: pictures made of several that were drawn, and random ones like them, as a student
            is asked about; only the classifier knows their classes.

    Raises:
        BadInput: the number of records is out of range, the labels are unknown, or the records are
            varied and the classifier does not label them.
    """

    count: int
    start_seed: int = 0
    labels: str | None = None
    agreeing: bool = False
    only: Sequence[str] = ()
    varied: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_SAMPLES or self.labels not in (None, "drawn", "model"):
            raise BadInput(
                "the number of samples is out of range, or the labels are unknown",
                where="sample",
                why="there is nothing to draw, or nothing to call it",
                remedy=f"draw 1 to {MOST_SAMPLES} samples; use labels drawn or model",
            )
        if self.varied and (self.labels != "model" or self.agreeing or self.only):
            raise _unfit(
                "varied records are drawn for no class",
                "use --varied with --labels model, without --agreeing and --only-class",
            )


def sample(folder: Path, path: Path, wish: Wish) -> dict[str, Any]:
    """Draw records from a bundle's generator into a new npz file.

    Guarantee: the generator is the one the manifest lists; prices are left to `verify_bundle`. A
    network is run in a process of its own, with a limit on its time and its memory. The file has
    `x` in units of the data, `y` and the names of its `classes` where classes are known, and
    `scores` where the classifier labels; it appears whole or not at all.

    Args:
        folder: the bundle.
        path: the file; there is none yet.
        wish: what is to be drawn.

    Returns what was drawn, as a document for `--json`.

    Raises:
        BadInput: there is no bundle or no generator, the file cannot be written, or too few
            records agree.
        DoesNotVerify: a file of the bundle was changed, or its generator is none that is run here.
    """
    refuse_existing(path)
    bundle = open_generator(folder)
    names = bundle.said["classes"]
    if len(names) * max(map(len, names)) > LONGEST_NAMES:
        raise _unfit("the names of the classes are too long", "release with shorter names")
    with ExitStack() as stack:
        drawing = _Drawing(wish, bundle, stack)
        counts = np.zeros(len(names), dtype=np.int64)
        file = stack.enter_context(new_npz(path, wish.count))
        for rows in drawing.rows():
            file.add(rows)
            counts += np.bincount(rows.get("y", ()), minlength=len(names))
        labelled = drawing.labels is not None
        file.finish({"classes": np.array(names)} if labelled else {})
    return {
        "file": str(path),
        "generator": bundle.said["about"],
        "samples": wish.count,
        "drawn": drawing.tries,
        "shape": list(bundle.shape),
        "type": str(rows["x"].dtype),
        "labels": drawing.labels,
        "classes": dict(zip(names, counts.tolist(), strict=True)) if labelled else None,
    }


class _Drawing:
    """A wish on its way.

    Args:
        wish: what is to be drawn.
        bundle: from what.
        stack: ends what runs.

    Raises:
        BadInput: the generator cannot fulfil it.
    """

    def __init__(self, wish: Wish, bundle: GeneratorBundle, stack: ExitStack) -> None:
        names, conditional = bundle.said["classes"], bundle.said["conditional"]
        for name in wish.only:
            if name not in names:
                raise _unfit(f"there is no class {name!r}", f"use some of: {_listed(names)}")
        asks = wish.agreeing or wish.labels == "model"
        needs_class = wish.agreeing or wish.labels == "drawn" or (wish.only and not asks)
        if needs_class and not conditional:
            raise _unfit(
                "the generator is not told classes, so its records were drawn for none",
                "use --labels model, without --agreeing",
            )
        chosen = sorted({names.index(name) for name in wish.only}) or None
        self._wish, self._bundle = wish, bundle
        self._among = None if conditional else chosen
        self._drawer = bundle.drawer(chosen, stack)
        self._model = bundle.classifier(stack) if asks else None
        if wish.varied:
            _check_pictures(bundle.shape)
        self.labels = wish.labels or ("drawn" if conditional else None)
        self.tries = 0

    def rows(self) -> Iterator[Rows]:
        """What is kept of each draw, until there is enough.

        Raises:
            BadInput: hardly any record is kept.
        """
        together = max(1, min(TOGETHER, NUMBERS_TOGETHER // self._bundle.numbers))
        left = self._wish.count
        for turn in range(MOST_SAMPLES):
            # Always as many: the first hundred of a thousand are the hundred of another file.
            kept = self._kept(turn, together)
            self.tries += together
            rows = {name: some[:left] for name, some in kept.items()}
            left -= len(rows["x"])
            yield rows
            if not left:
                return
            found = self._wish.count - left
            if self.tries >= LEAST_TRIES and found * FEWEST < self.tries:
                raise BadInput(
                    f"of {self.tries} samples only {found} could be kept",
                    where="sample",
                    why="the model hardly ever gives them the wanted class; it would take too long",
                    remedy="leave --agreeing out, or draw other classes",
                )

    def _kept(self, turn: int, together: int) -> Rows:
        wish = self._wish
        seed = int(integers(wish.start_seed, "sample", turn, size=1, below=2**62)[0])
        if wish.varied:
            drawn, classes = self._varied(seed, together), None
        else:
            drawn, classes = self._drawer(seed, together)
        rows: Rows = {"x": self._bundle.stored(drawn)}
        if classes is not None:
            rows["y"] = classes
        keep = np.ones(together, dtype=bool)
        if self._model is not None:
            scores, given = self._model.run(np.ascontiguousarray(rows["x"], dtype=np.float32))
            if wish.agreeing:
                keep &= given == classes
            if self._among is not None:
                keep &= np.isin(given, self._among)
            if wish.labels == "model":
                rows |= {"y": given, "scores": scores}
        return {name: some[keep] for name, some in rows.items()}

    def _varied(self, seed: int, together: int) -> Records:
        mixed, structured = together // 2, together * 3 // 16
        variety = Variety(together - mixed - structured, mixed, structured)
        drawn, _ = self._drawer(seed, variety.samples)
        self._bundle.refuse_no_numbers(drawn)
        full_scale = np.float32(self._bundle.said["full_scale"])
        return variety.of(drawn / full_scale, seed=seed) * full_scale


def _check_pictures(shape: tuple[int, ...]) -> None:
    pictures = len(shape) in (2, 3) and min(shape[:2]) >= SMALLEST_SIDE
    if not pictures or shape[0] * shape[1] > MOST_PIXELS:
        raise BadInput(
            f"records of shape {' x '.join(map(str, shape))} cannot be varied",
            where="sample",
            why=f"pictures of {SMALLEST_SIDE} x {SMALLEST_SIDE} to {MOST_PIXELS} pixels can",
            remedy="leave --varied out",
        )


def _listed(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (", ..." if names[most:] else "")


def _unfit(what: str, remedy: str) -> BadInput:
    return BadInput(
        what, where="sample", why="a sample would get a class that means nothing", remedy=remedy
    )
