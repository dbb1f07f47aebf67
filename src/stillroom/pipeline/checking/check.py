"""Everything a release would refuse, found in one go, before anything is paid, drawn or kept."""

from __future__ import annotations

import os
from dataclasses import replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stillroom.data import Split
from stillroom.data.loading import MODEL
from stillroom.data.parts import Parts
from stillroom.data.survey import faults_of
from stillroom.errors import BadInput, StillroomError
from stillroom.methods.registry import method_named, read
from stillroom.methods.wording import note_on
from stillroom.pipeline.checking.ledgers import LedgerCheck
from stillroom.pipeline.checking.memory import needed, tell_memory
from stillroom.pipeline.checking.records import tell_records
from stillroom.pipeline.checking.report import Report
from stillroom.pipeline.estimate import tried, worth_trying
from stillroom.pipeline.holders import PARTY, holder_names, holders
from stillroom.pipeline.packages import refuse_missing_packages
from stillroom.pipeline.pricing import Cost, nominal_facts, price
from stillroom.pipeline.release import (
    finished_certificate,
    is_taken,
    parts_of_model,
    refuse_infinite,
    run_folder,
    sealed_parts,
    split_of,
)
from stillroom.pipeline.run import facts_of, in_silence, public_side
from stillroom.pipeline.run_folder import Run, going_on
from stillroom.recipe import Recipe
from stillroom.release.keys import read_private
from stillroom.sources import Facts, Party, Places, Progress, Setting
from stillroom.vocabulary import Sealed


class _Enough(Exception):
    """What can be refused at once was refused; what follows takes long."""


def check(
    recipe_file: Path,
    output: Path | None = None,
    *,
    sign_with: Path | None = None,
    accept_infinite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Look at all that a release of this recipe would look at, and tell every misfit.

    Guarantee: nothing is paid for or drawn, and no file is written but in a folder that vanishes.
    What is told is exact and not private: for the operator, before any payment (K10).

    Args:
        recipe_file: the recipe.
        output: where the bundle will be, if that is to be looked at.
        sign_with: the private key the bundle will be signed with, if any.
        accept_infinite: as for a release.
        progress: told.
    """
    report, progress = Report(), progress or Progress()
    recipe = None
    with report.collecting("recipe"):
        recipe, text = read(recipe_file)
    if recipe is None:
        return report
    report.facts |= {"method": recipe.method, "source": recipe.source, "unit": recipe.data.unit}
    with report.collecting("release"):
        refuse_infinite(recipe, accept_infinite)
    with report.collecting("release"):
        refuse_missing_packages(recipe)
    if sign_with is not None:
        with report.collecting("key"):
            read_private(sign_with)
    run = None
    with report.collecting("output"):
        run = None if output is None else _run_at(report, output, text, sign_with is not None)
    with in_silence():
        progress.tell(f"looking at {recipe.data.source}")
        parts = _parts(report, recipe, recipe_file.parent)
        progress.tell("looking at features and price")
        _look_at_rest(report, recipe, text, recipe_file.parent, parts, run, progress)
    note = note_on(recipe)
    report.notes += [] if note is None else [note]
    return report


def _run_at(report: Report, output: Path, text: str, signed: bool) -> Run | None:
    """The run that would go on there; refusals of an output that cannot be used."""
    if is_taken(output):
        finished_certificate(output, text, signed=signed)
        report.notes.append(f"{output} is the finished bundle of this recipe already")
    folder = output.absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(
            "the output folder cannot be made: nothing can be written there",
            where=str(output),
            why="the bundle and the run's state are written there",
            remedy="choose an output folder that can be written to",
        )
    return going_on(run_folder(output), text)


def _parts(report: Report, recipe: Recipe, files: Path) -> Parts | None:
    """The records, told about and sealed; where they cannot be read, all their faults."""
    if recipe.data.source == MODEL:
        with report.collecting("plain.file"):
            return parts_of_model(recipe, files)
        return None
    split: Split | None = None
    try:
        with report.collecting("data"):
            split = _split_or_faults(report, recipe, files)
            if split is None:
                return None
            tell_records(report, recipe, split)
            return sealed_parts(recipe, split)
    except OSError as fault:
        report.misfit(
            BadInput(
                f"the data cannot be read ({fault.strerror})",
                where=recipe.data.source,
                why="without records there is nothing to learn",
                remedy="check the path and the permissions",
            )
        )
    return None


def _split_or_faults(report: Report, recipe: Recipe, files: Path) -> Split | None:
    try:
        return split_of(recipe, files)
    except StillroomError as first:
        data = recipe.data
        columns = {"id": data.id_column, "person": data.person_column}
        if data.table is not None:
            # A schema has rules of its own, and its reader says which is broken.
            report.misfit(first)
            return None
        try:
            faults = faults_of(data.source, files, data.classes, columns, data.form)
        except StillroomError:
            faults = []
        for fault in faults or [first]:
            report.misfit(fault)
        return None


def _look_at_rest(
    report: Report,
    recipe: Recipe,
    text: str,
    files: Path,
    parts: Parts | None,
    run: Run | None,
    progress: Progress,
) -> None:
    """Method, source, price, memory and ledgers, as far as they can be known."""
    facts = nominal_facts(recipe) if parts is None else facts_of(parts.public)
    sealed: dict[str, Sealed[Any]] = {}
    before = len(report.misfits)
    if parts is not None:
        with report.collecting("entities"):
            sealed = holders(recipe, parts.sensitive)
        with report.collecting(f"method {recipe.method}"):
            method_named(recipe.method).plan(recipe, facts)
            facts = replace(facts, width=_prepared(recipe, files, facts, parts, sealed, progress))
    cost: Cost | None = None
    if len(report.misfits) == before:
        with report.collecting("price"):
            cost = price(recipe, facts)
    if cost is not None:
        report.facts |= {
            "epsilon": cost.epsilon,
            "delta": recipe.privacy.delta,
            "noise_multiplier": None if cost.multiplier is None else float(cost.multiplier),
        }
    if parts is not None and cost is not None:
        _tell_time(report, recipe, facts)
    if "records" in report.facts:
        records, numbers = report.facts["records"], prod(facts.shape)
        stored = sum(records.values()) * numbers * _item(report.facts["type"])
        width = facts.width
        if width is not None and recipe.section("training") is not None:
            width //= len(facts.classes) if recipe.section("training").linear else 1
        tell_memory(report, needed(recipe, stored, records["sensitive"], numbers, width))
    ledgers = LedgerCheck(report, recipe, text, files, run)
    if parts is None:
        ledgers.look({}, None, None, cost)
    else:
        ledgers.look(sealed, parts.public, parts.test, cost)


def _item(kind: str) -> int:
    import numpy as np

    return np.dtype(kind).itemsize


def _prepared(
    recipe: Recipe,
    files: Path,
    facts: Facts,
    parts: Parts,
    sealed: dict[str, Sealed[Any]],
    progress: Progress,
) -> int | None:
    """The refusals of method and source, up to work that takes long; a gradient's width, if known.

    What they would keep goes to a folder that vanishes.
    """

    def begin(*, quick: bool = False) -> None:
        if not quick:
            raise _Enough

    parties = [Party(name, sealed[name], _no_ledger) for name in holder_names(recipe)]
    side = public_side(recipe, parts.public, parts.test)
    with TemporaryDirectory() as kept:
        folder = Path(kept)
        places = Places(folder / "work", folder / "private-work", folder / "checkpoint", files)
        for place in (places.work, places.private_work, places.checkpoint):
            place.mkdir(mode=0o700)
        setting = Setting(recipe, facts, parties, side, places, progress, begin)
        try:
            return method_named(recipe.method).prepare(setting).width
        except _Enough:
            return None


def _no_ledger() -> Any:
    raise AssertionError(f"a ledger of {PARTY} was opened before `begin`")


def _tell_time(report: Report, recipe: Recipe, facts: Facts) -> None:
    """About how long each phase takes, where that is long enough to be asked for."""
    if worth_trying(recipe, facts):
        report.seconds |= tried(recipe, facts) or {}
