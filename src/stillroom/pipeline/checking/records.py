"""What the records of a recipe are like, told to whoever holds them; see `Report`."""

from __future__ import annotations

from collections import Counter

import numpy as np

from stillroom.data import Dataset, Split
from stillroom.methods.wording import promise_warnings
from stillroom.pipeline.checking.report import Report
from stillroom.private import cap_records
from stillroom.recipe import Recipe
from stillroom.release.measures import SURELY

FEW = 20
"""Records of a class from which a model hardly learns it under noise."""
FAR = 1.5
"""How many times too large or too small a declared size may be before it is pointed out."""


def tell_records(report: Report, recipe: Recipe, split: Split) -> None:
    """Shapes, sizes, classes and persons, and what is odd about them."""
    parts = {"sensitive": split.sensitive, "test": split.test, "public": split.public}
    shown = {name: part for name, part in parts.items() if len(part) or name != "public"}
    first = split.sensitive
    report.facts |= {
        "shape": list(first.shape),
        "type": str(first.x.dtype),
        "records": {name: len(part) for name, part in shown.items()},
        "test_is_public": recipe.data.test_is_public,
    }
    report.per_class |= {
        name: dict(zip(first.classes, _counts(part), strict=True)) for name, part in shown.items()
    }
    if first.persons is not None:
        report.facts["persons"] = {n: len(set(part.persons or ())) for n, part in shown.items()}
    _tell_classes(report, split)
    _tell_size(report, recipe, split.sensitive)
    _tell_persons(report, recipe, split.sensitive)
    _tell_test(report, recipe, split.test)
    _tell_shards(report, recipe, split.sensitive)
    named = first.persons is not None
    warnings = promise_warnings(recipe, names_persons=named)
    report.notes += [f"the card will warn: {warning}" for warning in warnings]


def _counts(part: Dataset) -> list[int]:
    counts: list[int] = np.bincount(part.y, minlength=len(part.classes)).tolist()
    return counts


def _tell_classes(report: Report, split: Split) -> None:
    counted = dict(zip(split.sensitive.classes, _counts(split.sensitive), strict=True))
    absent = [name for name, count in counted.items() if count == 0]
    few = [f"{name} ({count})" for name, count in counted.items() if 0 < count < FEW]
    if absent:
        report.notes.append(
            f"no sensitive record is of class {', '.join(absent)}: it is never learnt; "
            "check data.classes if it should be there"
        )
    if few:
        report.notes.append(
            f"fewer than {FEW} sensitive records of class {', '.join(few)}: under the noise they "
            "are hardly learnt"
        )
    largest, total = max(counted, key=counted.__getitem__), len(split.sensitive)
    if total and counted[largest] > 0.9 * total:
        report.notes.append(
            f"{counted[largest] / total:.0%} of the sensitive records are of class {largest}: a "
            "model that always says so has that accuracy"
        )


def _units(recipe: Recipe, part: Dataset) -> int:
    of_persons = recipe.data.unit == "person" and part.persons is not None
    return len(set(part.persons or ())) if of_persons else len(part)


def _tell_size(report: Report, recipe: Recipe, sensitive: Dataset) -> None:
    declared, real = recipe.data.declared_size, _units(recipe, sensitive)
    kind = "persons" if recipe.data.unit == "person" else "records"
    if not real:
        report.notes.append("the sensitive part is empty: nothing can be learnt from it")
    elif not declared / FAR <= real <= declared * FAR:
        longer = "shorter" if declared > real else "longer"
        times = max(declared / real, real / declared)
        report.notes.append(
            f"data.declared_size is {declared:,}, and there are {real:,} sensitive {kind}: steps "
            f"will be {times:.1f} times {longer} than the recipe looks; it costs no privacy. Write "
            "a round figure near it, never the count itself"
        )


def _tell_persons(report: Report, recipe: Recipe, sensitive: Dataset) -> None:
    if sensitive.persons is None or not len(sensitive):
        return
    own, most = Counter(sensitive.persons), recipe.data.max_records_per_person
    largest = max(own.values())
    report.facts["records_of_a_person_at_most"] = largest
    if recipe.data.unit != "person":
        return
    left_out = len(sensitive) - len(cap_records(sensitive.persons, sensitive.ids, most))
    report.facts["records_left_out_by_cap"] = left_out
    if left_out:
        over = sum(count > most for count in own.values())
        report.notes.append(
            f"data.max_records_per_person = {most} leaves out {left_out:,} of {len(sensitive):,} "
            f"records, of {over:,} persons; one person has up to {largest}. docs/persons.md says "
            "what a larger cap costs"
        )
    elif most > largest and recipe.section("sketch") is not None:
        report.notes.append(
            f"data.max_records_per_person = {most}, and no person has more than {largest} records: "
            "the sketch pays for the cap, so a smaller one costs less"
        )


def _tell_test(report: Report, recipe: Recipe, test: Dataset) -> None:
    if not len(test):
        report.notes.append("the test part is empty: no accuracy will be told")
        return
    if recipe.data.test_is_public:
        return
    tested, privacy = len(test), recipe.privacy
    if recipe.data.unit == "person" and test.persons is not None:
        most = privacy.evaluation_records_per_person
        tested = len(cap_records(test.persons, test.ids, most))
    report.facts["tested"] = tested
    needed = float(SURELY * len(test.classes) * privacy.evaluation_sigma)
    if tested <= needed:
        report.notes.append(
            f"{tested:,} records are tested, and with noise {float(privacy.evaluation_sigma):g} on "
            f"each of {len(test.classes) ** 2:,} counts an accuracy is told from {needed:,.0f} on: "
            "it will most likely not be told. Test a larger share (data.test); or lower "
            "privacy.evaluation_sigma, which costs epsilon; or declare the test part public, if it "
            "is"
        )


def _tell_shards(report: Report, recipe: Recipe, sensitive: Dataset) -> None:
    """Whether the shards of teachers, models or entities hold about what their cap lets in."""
    for section, count, cap in (
        ("teachers", "count", "shard_cap"),
        ("collection", "models", "shard_cap"),
        ("entities", "count", "largest"),
    ):
        part = recipe.section(section)
        if part is None:
            continue
        each, most = len(sensitive) / getattr(part, count), getattr(part, cap)
        if each > most:
            report.notes.append(
                f"{section}.{cap} = {most}, and a shard gets about {each:.0f} records: about "
                f"{1 - most / each:.0%} of them are left out. Raise it, or {section}.{count}"
            )
        elif each < 2:
            report.notes.append(
                f"{section}.{count} = {getattr(part, count):,} shards get about {each:.1f} records "
                f"each: too few to learn from. Lower {section}.{count}"
            )
