"""The card: one self-contained page that says in plain words what the certificate says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stillroom.release.card_comparison import added, compression
from stillroom.release.card_parts import (
    RELATIONS,
    UNITS,
    assumptions,
    confusion,
    epsilon,
    figures,
    listed,
    model_table,
    sample_sheet,
    section,
    share,
    text,
    totals,
)
from stillroom.release.files import number
from stillroom.release.style import CSS

_TUNING = {
    "none": "No settings were tuned on these data.",
    "public": "Settings were tuned on public data only, which costs nothing.",
    "charged": "Settings were tuned on these data, and that is part of the price above.",
    "undeclared": "Nobody declared how the settings were chosen. If they were chosen by trying "
    "them out on these sensitive data, the figures on this page are too small.",
}
_PURPOSES = {
    "release": "a release: the ledger keeps count of everything ever told about these data",
    "benchmark": "a benchmark: its ledger may be new for each run, so its totals say nothing about "
    "other runs on the same data",
    "audit": "an audit: its ledger may be new for each run, so its totals say nothing about other "
    "runs on the same data",
}
_VOID = (
    '<p class="alarm"><strong>Void.</strong> The noise of this model came from a repeatable '
    "stream, which anyone who knows the seed can subtract. It protects nobody: do not hand it "
    "out.</p>"
)
_AS_PUBLISHED = (
    "<p>This model reproduces a paper's algorithm as it was published, for comparison. Its "
    "protection is the certified figure below, not the published one.</p>"
)
_UNPROTECTED = (
    '<p class="alarm"><strong>No protection.</strong> This model reproduces a paper\'s algorithm '
    "as it was published, for comparison only. Whatever the paper claims, nothing is proven here: "
    "epsilon is infinite, and the model may tell everything about the records it was trained on. "
    "Do not hand it out.</p>"
)
_TOO_FEW = (
    "<p><strong>Not told.</strong> So few records were tested that their number cannot be told "
    "from the noise; a share of it would be a random number.</p>"
)


def card_html(certificate: Mapping[str, Any], picture: bytes | None = None) -> str:
    """The page for a certificate.

    Guarantee: no script, nothing loaded from elsewhere; all text of others is escaped; every
    epsilon is rounded up.

    Args:
        certificate: what the page says.
        picture: the sheet of samples drawn from a sanitised sketch, a PNG file.
    """
    parts = [
        _banner(certificate),
        _three_epsilons(certificate),
        _meaning(certificate),
        model_table(certificate),
        _quality(certificate),
        added(certificate),
        compression(certificate),
        _protection(certificate),
        _public_knowledge(certificate),
        _warnings(certificate),
        "" if picture is None else sample_sheet(picture, certificate["samples"]["count"]),
        figures(certificate),
        totals(certificate),
        assumptions(certificate),
        _small_print(certificate),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="stillroom-certificate" content="{text(certificate["digest"])}">\n'
        f"<title>Privacy card: {text(certificate['method'])}</title>\n"
        f"<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _banner(certificate: Mapping[str, Any]) -> str:
    title = (
        "<header><p>stillroom privacy card</p>"
        f"<h1>Method {text(certificate['method'])}, {text(certificate['mode'])} mode</h1>"
        "<p>Made as "
        f"{text(_PURPOSES.get(certificate['purpose'], certificate['purpose']))}.</p></header>"
    )
    if certificate["status"] != "valid":
        return title + _VOID
    if certificate["mode"] == "as-published":
        return title + (_AS_PUBLISHED if _is_finite(certificate) else _UNPROTECTED)
    return title


def _three_epsilons(certificate: Mapping[str, Any]) -> str:
    published, top = certificate["published"], certificate["headline"]
    claim = published["epsilon"]
    whom = f"for {text(UNITS[top['unit']])}, at delta {top['delta']:g}"
    proven = _is_finite(certificate)
    tiles = [
        ("Published", "none" if claim is None else epsilon(claim), text(published["status"])),
        (
            "Certified",
            epsilon(top["epsilon"]),
            f"{whom}, by {text(top['accountant'])}" if proven else f"{whom}: nothing is proven",
        ),
        ("Attacked", "not attacked yet", "no audit has tried to break this model"),
    ]
    inner = "".join(
        f'<div class="tile {name.lower()}{"" if proven else " open"}"><h3>{name}</h3>'
        f'<p class="figure">{figure}</p><p>{note}</p></div>'
        for name, figure, note in tiles
    )
    return section(
        "The three epsilons",
        f'<div class="tiles">{inner}</div>',
        "<p>Published is what a paper claims, certified is what the noise really drawn is proven "
        "to give, attacked is how much an attack could show. Smaller protects better.</p>",
    )


def _is_finite(certificate: Mapping[str, Any]) -> bool:
    return math.isfinite(number(certificate["headline"]["epsilon"]))


def _meaning(certificate: Mapping[str, Any]) -> str:
    top = certificate["headline"]
    bound = number(top["epsilon"])
    if not _is_finite(certificate):
        return section(
            "What that means",
            "<p>An infinite epsilon promises nothing: the model may tell everything about a "
            "record it was trained on.</p>",
        )
    sure = math.ceil(100 / (1 + math.exp(-bound)))
    return section(
        "What that means",
        f"<p>Take anyone who cannot tell, fifty to fifty, whether {text(UNITS[top['unit']])} "
        f"{text(RELATIONS[top['relation']])}, even if they know all other data. With this model "
        f"in hand they can be at most <strong>{sure} % sure</strong>, whatever they compute. The "
        f"promise fails with a chance of at most 1 in {round(1 / top['delta']):,}.</p>",
    )


def _give_or_take(noise: float | None) -> str:
    if noise is None:
        return ""
    return f" Its noise has a standard deviation of {100 * noise:.1f} points."


def _quality(certificate: Mapping[str, Any]) -> str:
    evaluation = certificate["evaluation"]
    if evaluation is None:
        return section("How good the model is", "<p>This was not measured.</p>")
    how = (
        "The figure came through the gate, and its price is part of the epsilon above."
        + _give_or_take(evaluation["accuracy_noise"])
        if evaluation["protected"]
        else "The figure is exact. The records it was measured on were declared public and are "
        "<strong>not protected</strong>."
    )
    body = [
        f'<p class="figure">{share(evaluation["accuracy"], 1)} right</p>'
        if evaluation["accuracy"] is not None
        else _TOO_FEW,
        f"<p>Measured on: {text(evaluation['records'])}. {how}</p>",
    ]
    if evaluation["confusion"] is not None:
        body.append(confusion(evaluation["confusion"], certificate["model"]["classes"]))
    return section("How good the model is", *body)


def _protection(certificate: Mapping[str, Any]) -> str:
    units = dict.fromkeys(
        f"{UNITS[line['unit']]}: whether it {RELATIONS[line['relation']]}"
        for line in certificate["guarantees"]
    )
    open_things = [
        *([] if units else ["the records the model was trained on"]),
        *certificate["unprotected"],
        "what is true of the data as a whole, such as what a typical example of a class looks like",
        "the names of the classes, the recipe, and everything else that was declared public",
    ]
    if not any(line["unit"] == "person" for line in certificate["guarantees"]):
        open_things.append("a person who has several records among the data, as one person")
    body = [
        '<div class="tiles"><div class="tile"><h3>Protected</h3>',
        listed(map(text, units)) if units else "<p>Nothing is proven.</p>",
        '</div><div class="tile"><h3>Not protected</h3>',
        listed(map(text, open_things)),
        "</div></div>",
    ]
    return section("What is protected and what is not", *body)


def _public_knowledge(certificate: Mapping[str, Any]) -> str:
    known = certificate["public_knowledge"]
    if not known:
        return section("Public knowledge used", "<p>None.</p>", kind="known")
    return section(
        "Public knowledge used",
        listed(map(text, known)),
        "<p>The model was made with these as well. They count as known to everyone, so the "
        "guarantee does not cover them.</p>",
        kind="known",
    )


def _warnings(certificate: Mapping[str, Any]) -> str:
    tuning = text(_TUNING.get(certificate["tuning"], certificate["tuning"]))
    told = [text(warning) for warning in certificate["warnings"]]
    lost = sum(block["lost"] for block in certificate["blocks"])
    if certificate["tuning"] == "undeclared":
        told.append(f"<strong>Tuning undeclared.</strong> {tuning}")
    if lost:
        told.append(
            f"{lost} reserved step{'s were' if lost > 1 else ' was'} lost when a run was "
            "interrupted; the price includes them, the model never saw them."
        )
    calm = "" if certificate["tuning"] == "undeclared" else f"<p>Tuning: {tuning}</p>"
    body = [listed(told) if told else "<p>No warning.</p>", calm]
    return section("What to watch", *body, kind="watch" if told else "")


def _small_print(certificate: Mapping[str, Any]) -> str:
    data = certificate["data_set"]
    versions = ", ".join(f"{text(k)} {text(v)}" for k, v in certificate["versions"].items())
    return (
        "<footer><p>Check this page: <code>stillroom verify</code> and the folder's name. Without "
        "a key that finds accidents; with the releaser's public key it finds forgery too.</p>"
        f"<p>Certificate <code>{text(certificate['digest'])}</code>. Ledger "
        f"<code>{text(data['ledger'])}</code> with head "
        f"<code>{text(data['head'])}</code>. {versions}.</p></footer>"
    )
