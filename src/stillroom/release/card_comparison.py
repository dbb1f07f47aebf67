"""The card's two comparisons: what the sensitive data added, and how far the model was shrunk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stillroom.release.card_bars import Bar, bars
from stillroom.release.card_parts import file_size, section, share, table, text
from stillroom.release.controls import BASE, gain
from stillroom.release.files import number

_NOTHING = (
    "<p><strong>The sensitive data added nothing that can be measured here: a model trained on "
    "public data alone does {how}.</strong></p>"
)
_WHO = ("teacher", "student")
_GATE = "what came through the gate"
_OPEN = "everything, <strong>without protection</strong>"
_NOT_COVERED = f"{_OPEN}; no epsilon on this page covers it"


def added(certificate: Mapping[str, Any]) -> str:
    """The released model beside its controls, and a plain word on what sensitive data gave."""
    controls, evaluation = certificate["controls"], certificate["evaluation"]
    if not controls or evaluation is None:
        return ""
    accuracy = evaluation["accuracy"]
    own = _GATE if math.isfinite(number(certificate["headline"]["epsilon"])) else _OPEN
    rows = [("<strong>this model</strong>", share(accuracy), "the model of this card", own)]
    rows += [
        (
            text(control["name"]),
            share(control["accuracy"]),
            text(control["about"]),
            _saw(control),
        )
        for control in controls
    ]
    # Noisy counts have no interval: its width would leave the noise out.
    exact = None if evaluation["protected"] else evaluation["confusion"]
    tested = sum(map(sum, exact or ()))
    known = [one for one in controls if accuracy is not None and one["accuracy"] is not None]
    base = [control for control in known if control["name"] == BASE][:1]
    public = [control for control in known if control["public_only"]]
    best = max(public, key=lambda control: control["accuracy"], default=None)
    body = [table(("model", "accuracy", "what it is", "what it saw of the sensitive data"), rows)]
    body += [_distance(accuracy, control, tested) for control in base]
    if best is not None and best not in base:
        body.append(_distance(accuracy, best, tested))
    if best is not None:
        body.append(_verdict(accuracy, best["accuracy"], tested))
    if tested and public:
        body.append(
            f"<p>The intervals hold with 95 % for {tested:,} test records. They are computed as if "
            "each model had been tested on records of its own; both had the same ones and tend to "
            "err on the same, so the true intervals are narrower.</p>"
        )
    return section("What the sensitive data added", *body)


def _saw(control: Mapping[str, Any]) -> str:
    if control["private"]:
        return _NOT_COVERED
    return "nothing" if control["public_only"] else _GATE


def _distance(accuracy: float, control: Mapping[str, Any], tested: int) -> str:
    points = 100 * (accuracy - control["accuracy"])
    interval = ""
    if tested:
        low, high = gain(accuracy, control["accuracy"], tested)
        interval = f" (95 % interval: {100 * low:+.2f} to {100 * high:+.2f})"
    return (
        f"<p>Gain of this model over {text(control['name'])}: <strong>{points:+.2f} points</strong>"
        f"{interval}.</p>"
    )


def _verdict(accuracy: float, best: float, tested: int) -> str:
    """Beyond chance, or not; without the exact size of the test only the sign is known."""
    if not tested:
        if accuracy > best:
            return "<p>The size of the test is not told exactly, so the gain may be chance.</p>"
        return _NOTHING.format(how="as well")
    low, high = gain(accuracy, best, tested)
    if low > 0:
        return (
            "<p>The sensitive data added something: the gain over every model trained on public "
            "data alone is larger than chance explains.</p>"
        )
    return _NOTHING.format(how="better" if high < 0 else "as well")


def compression(certificate: Mapping[str, Any]) -> str:
    """Teacher against student: a table and a picture."""
    told = certificate["compression"]
    if told is None:
        return ""
    teacher, student, ratios = told["teacher"], told["student"], told["ratios"]
    kinds = (
        ("parameters", "parameters", "parameters", "{:,}".format),
        ("size of model.onnx", "size", "size", file_size),
        ("size, int8", "int8_size", "int8_size", file_size),
        (f"{told['images']} images", "seconds", "speed", duration),
        (f"{told['images']} images, int8", "int8_seconds", "int8_speed", duration),
    )
    rows = [
        (name, *(_cell(model[entry], spell) for model in (teacher, student)), _ratio(ratios[key]))
        for name, entry, key, spell in kinds
    ]
    names = (f"{who}: {text(told[who]['name'])}" for who in _WHO)
    notes = [
        f"The {who} has no int8 version: {text(told[who]['int8_note'])}."
        for who in _WHO
        if told[who]["int8_note"]
    ]
    slower = [who for who in _WHO if (told[who]["int8_seconds"] or 0) > told[who]["seconds"]]
    if slower:
        notes.append(
            f"In int8 the {' and the '.join(slower)} took longer than in fp32 on this machine."
        )
    return section(
        "Compression",
        table(("", *names, "teacher / student"), rows),
        *(f"<p>{note}</p>" for note in notes),
        _picture(teacher, student, told["images"]),
        "<p>Both were measured in one run, turn by turn, in ONNX Runtime on one thread, one image "
        f"a call; a time is the median of {told['repeats']} rounds. Another machine has other "
        "times. The bundle holds the fp32 model; int8 is what it becomes with weights of 8 bits "
        "and activations quantised as they come.</p>",
    )


def _picture(teacher: Mapping[str, Any], student: Mapping[str, Any], images: int) -> str:
    def group(entry: str, small: str | None, spell: Any) -> list[Bar]:
        whole = teacher[entry]
        found = [
            (who, kind, model[key])
            for who, model in zip(_WHO, (teacher, student), strict=True)
            for kind, key in (("", entry), (" int8", small))
            if key is not None and model[key] is not None
        ]
        return [Bar(who + kind, value / whole, spell(value)) for who, kind, value in found]

    return bars(
        "Teacher against student, the teacher in fp32 being 100 %",
        {
            "Parameters": group("parameters", None, "{:,}".format),
            "File size": group("size", "int8_size", file_size),
            f"Time for {images} images": group("seconds", "int8_seconds", duration),
        },
    )


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(0.00471), duration(0.0312), duration(2.5)
    ('4.71 ms', '31.2 ms', '2.50 s')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms"


def _cell(value: Any, spell: Any) -> str:
    return "-" if value is None else str(spell(value))


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"<strong>{ratio:.1f}</strong>"
