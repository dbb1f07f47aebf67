"""From a recipe's file to a bundle; the same call goes on where it was cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from stillroom.data import Dataset, Split
from stillroom.data.loading import MODEL, load_split, load_test, no_records
from stillroom.data.parts import About, Parts
from stillroom.errors import BadInput
from stillroom.gate import Budget, Ledger
from stillroom.methods.registry import package_of, read
from stillroom.methods.wording import assumptions_of, stated_by, unproven_by
from stillroom.pipeline.holders import PARTY, holder_names, holders
from stillroom.pipeline.packages import refuse_missing_packages
from stillroom.pipeline.run import Finished, default_places, in_silence, run
from stillroom.pipeline.run_folder import Run, begin_or_continue
from stillroom.pipeline.verify import verify
from stillroom.private import cap_records, capped
from stillroom.recipe import Recipe
from stillroom.release import classifier_record, record, write_bundle
from stillroom.release.certificate import VERSION
from stillroom.release.keys import read_private
from stillroom.sources import Party, Progress
from stillroom.vocabulary import Sealed


def release(
    recipe_file: Path,
    output: Path,
    *,
    sign_with: Path | None = None,
    budget: Budget | None = None,
    accept_infinite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Follow a recipe to a bundle in `output`.

    Guarantee: one unit of the sensitive part, at the epsilon on the certificate.

    Args:
        recipe_file: the recipe.
        output: the folder for the bundle; must not exist, or be empty.
        sign_with: a private key for the manifest.
        budget: set where the ledger has none yet; None leaves that to its owner.
        accept_infinite: let a paper's algorithm leave a ledger for release at infinity (L5).
        progress: told.

    Returns:
        The certificate.

    Raises:
        BadInput: the recipe, the data or the output folder cannot be used.
        BudgetExhausted: the release does not fit the budget; nothing was drawn.
    """
    progress = progress or Progress()
    recipe, text = read(recipe_file)
    key = None if sign_with is None else read_private(sign_with)
    folder, files = run_folder(output), recipe_file.parent
    if is_taken(output):
        return finished_certificate(output, text, signed=key is not None)
    refuse_infinite(recipe, accept_infinite)
    refuse_missing_packages(recipe)
    with begin_or_continue(folder, text) as state, in_silence():
        if state.paid:
            progress = replace(progress, expect=None)  # a part of it is done already
        parts = load_parts_of(recipe, files)
        progress.tell(f"looking at {recipe.data.source}")
        with ExitStack() as stack:
            runs = {name: _run_of(name, state) for name in holder_names(recipe)}

            def opened(name: str, own: Sealed[Any]) -> Ledger:
                sealed = [part for part in (own, parts.test) if isinstance(part, Sealed)]
                found = _ledger(recipe, _made_place(recipe, files, name), parts, sealed, runs[name])
                ledger = stack.enter_context(closing(found))
                # Before all else: a recipe for other data must not take its budgets away.
                ledger.refuse_others(*sealed, unit=recipe.data.unit)
                ledger.fix_unit(recipe.data.unit)
                if budget is not None and not ledger.budgets():
                    ledger.set_budget(budget, reason="set with the first release")
                return ledger

            parties = [
                Party(name, own, partial(opened, name, own))
                for name, own in holders(recipe, parts.sensitive).items()
            ]
            finished = run(
                recipe,
                parties,
                parts.public,
                parts.test,
                under=state.block_recipe(text),
                places=default_places(state.folder, files),
                progress=progress,
                paying=_paying(state, runs, parties),
            )
            for party in parties:
                runs[party.name].remember(party.ledger.head())
            progress.tell("writing the bundle")
            return publish(finished, output, text=text, key=key)


def is_taken(output: Path) -> bool:
    """Whether there is something at the place of a bundle."""
    return output.exists() and (not output.is_dir() or any(output.iterdir()))


def refuse_infinite(recipe: Recipe, accepted: bool) -> None:
    """A paper's algorithm leaves a ledger for release at infinity only where that is wanted (L5).

    Raises:
        BadInput: it is not.
    """
    if recipe.mode == "as-published" and recipe.purpose == "release" and not accepted:
        raise BadInput(
            "a paper's algorithm on a ledger for release",
            where="mode, purpose",
            why="what it draws may have no finite price, and the ledger stays at infinity",
            remedy='use purpose = "benchmark", or say --accept-infinite',
        )


def publish(
    finished: Finished, folder: Path, *, text: str, key: bytes | None = None
) -> dict[str, Any]:
    """Write the bundle of a finished run; return its certificate.

    Guarantee: the folder appears whole or not at all, and a valid bundle has passed `verify`.

    Args:
        finished: the run.
        folder: where the bundle will be; new, or empty.
        text: the recipe's text.
        key: the 32 bytes of a private Ed25519 key that signs the manifest.
    """
    recipe, result, terms = finished.recipe, finished.result, finished.terms
    package, version = package_of(recipe.method)
    told = classifier_record(
        **stated_by(recipe),
        method=recipe.method,
        package=package,
        versions={package: version},
        model=result.model,
        classes=finished.facts.classes,
        recipe=text,
        parties=tuple(
            record.Party(party.name, party.ledger, (finished.blocks[party.name],))
            for party in finished.parties
        ),
        assumptions={**terms.assumptions, **assumptions_of(recipe)},
        warnings=terms.warnings,
        public_knowledge=terms.knowledge,
        evaluation=finished.evaluation,
        facts=finished.observed,
        samples=result.samples,
        generator=result.generator,
        compression=result.compression,
        controls=finished.controls,
        claim=finished.plan.claim,
        unproven=unproven_by(recipe),
        columns=finished.columns,
        pictures=None if recipe.data.form is None else recipe.data.form.to_json(),
        schema=recipe.data.table,
    )
    return write_bundle(told, folder, key, verify)


def load_parts_of(recipe: Recipe, folder: Path) -> Parts:
    """The records a recipe names, capped per person where persons are protected, and sealed.

    Of a model alone, the model, sealed, and no records but public ones to test on.
    """
    if recipe.data.source == MODEL:
        return parts_of_model(recipe, folder)
    return sealed_parts(recipe, split_of(recipe, folder))


def split_of(recipe: Recipe, folder: Path) -> Split:
    """The records a recipe names, in their parts, as they are: nothing is sealed yet."""
    data = recipe.data
    return load_split(
        data.source,
        folder,
        classes=data.classes,
        labels=data.labels,
        columns={"id": data.id_column, "person": data.person_column},
        schema=data.table,
        test_file=data.test_file,
        person_pattern=data.person_pattern,
        persons=data.persons,
        form=data.form,
        split=data.split,
        key=data.key,
        public=data.public_share,
        test=data.test,
        sensitive_classes=data.withheld,
    )


def sealed_parts(recipe: Recipe, split: Split) -> Parts:
    """These records, capped per person where persons are protected, and sealed."""
    data = recipe.data
    parts = split.sealed(data.test_is_public)
    if data.unit != "person":
        return parts
    most = data.max_records_per_person

    def capped_part(part: Dataset) -> Dataset:
        return part.select(cap_records(part.persons or (), part.ids, most))

    test = parts.test
    return replace(
        parts,
        sensitive=capped(parts.sensitive, most),
        public=capped_part(parts.public),
        test=capped(test, most) if isinstance(test, Sealed) else capped_part(test),
    )


def parts_of_model(recipe: Recipe, folder: Path) -> Parts:
    """The model a recipe names, sealed, and no records but public ones to test on."""
    from stillroom.models import AsPictures
    from stillroom.private.model_file import read_model

    data, part = recipe.data, recipe.section("plain")
    nobody = no_records(data.shape or (), data.classes)
    given = AsPictures(nobody.shape, recipe.features.full_scale).given
    model = read_model(folder / part.file, part.teacher, given, len(nobody.classes))
    test = nobody if data.test_source is None else load_test(data.test_source, folder, nobody)
    return Parts(nobody, model, test, replace(About.of(nobody), ids_from_content=False))


def _run_of(party: str, state: Run) -> Run:
    """Where the heads of a party's ledger are kept."""
    return state if party == PARTY else state.of_party(party)


@contextmanager
def _paying(state: Run, runs: Mapping[str, Run], parties: Sequence[Party]) -> Iterator[None]:
    """Around the payment, from which on the run keeps every change of a ledger outside it."""
    for party in parties:
        party.ledger.on_new_head(runs[party.name].keep)
    with ExitStack() as stack:
        if len(parties) > 1:
            stack.enter_context(state.paying(lambda: None))
        for party in parties:
            stack.enter_context(runs[party.name].paying(party.ledger.head))
        yield


def run_folder(output: Path) -> Path:
    """Where the state of the run is kept whose bundle will be at `output`."""
    return output.with_name(output.name + ".run")


def finished_certificate(output: Path, text: str, *, signed: bool) -> dict[str, Any]:
    """The certificate of a run that had come to its end, for the command that is given again.

    Raises:
        BadInput: what is there is something else.
    """
    recipe = output / "recipe.toml"
    same = recipe.is_file() and recipe.read_bytes() == text.encode()
    if not same or not (run_folder(output) / "run.json").is_file():
        raise BadInput(
            "there is already something at the output",
            where=str(output),
            why="a bundle is never overwritten",
            remedy="choose another folder, or verify the bundle that is there",
        )
    report = verify(output)
    if signed and report["signature"].startswith("none"):
        raise BadInput(
            "the finished bundle is not signed",
            where=str(output),
            why="the command asks for a signature, and a bundle is never changed",
            remedy="delete the bundle and give the command again: nothing more is drawn for it",
        )
    certificate: dict[str, Any] = json.loads((output / "certificate.json").read_text())
    if certificate["version"] != VERSION:
        raise BadInput(
            "the finished bundle is of an older version",
            where=str(output),
            why="a bundle is never changed, and this version reads it only to verify it",
            remedy="verify the bundle that is there, or choose another folder",
        )
    return certificate


def ledger_place(recipe: Recipe, files: Path, party: str) -> Path:
    """The file of a party's ledger: of several, in a folder of their own."""
    place = files / recipe.ledger
    return place if party == PARTY else place / f"{party}.sqlite"


def _made_place(recipe: Recipe, files: Path, party: str) -> Path:
    """The same; a folder of ledgers is made, and only its owner may open it."""
    place = ledger_place(recipe, files, party)
    if party == PARTY:
        return place
    folder = place.parent
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"the folder of the entities' ledgers cannot be made ({error.strerror})",
            where=str(folder),
            why="without ledgers nothing may be drawn",
            remedy="choose a place that exists and can be written to",
        ) from None
    return place


def _ledger(
    recipe: Recipe, path: Path, parts: Parts, sealed: Sequence[Sealed[Any]], state: Run
) -> Ledger:
    if path.exists() or state.head is not None:
        return Ledger.open(path, head=state.head)
    try:
        return Ledger.create(
            path,
            *sealed,
            purpose=recipe.purpose,
            ids_from_content=parts.about.ids_from_content,
            unit=recipe.data.unit,
        )
    except BadInput:
        if not path.exists():
            raise
        return Ledger.open(path)  # another run has made it meanwhile, and they share it
