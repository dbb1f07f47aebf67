"""What an epsilon promises, as one sentence that a patient can read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stillroom.release.files import number

EVEN = 0.5
AT_MOST = "at most "
PRIORS = (0.01, 0.1, EVEN, 0.9)
"""How sure someone may have been before."""
MOST_DIGITS = 3
"""Behind the point; to be surer than that is to be as good as certain."""

_YOURS = {
    "record": "your record was used to make this model",
    "person": "you are among the persons whose records were used to make this model",
    "entity": "one model or participant, and not another, stands behind this model",
    "label": "your record has one class, and not another",
}
_ANYONES = {
    **_YOURS,
    "record": "a record was used to make this model",
    "person": "a person is among those whose records were used to make this model",
    "label": "a record has one class, and not another",
}


def surest(epsilon: float, delta: float, prior: float = EVEN) -> float:
    """How sure one can become of what one was sure of with `prior`: an upper bound.

    Guarantee: for a prior of one half no guess is right with a larger chance than this, over what
    the model might have been: (e^epsilon + delta) / (e^epsilon + 1) at most (Kairouz et al. 2015,
    Theorem 2.1). For another prior, what tells more than epsilon has about a chance of delta.

    >>> round(surest(2, 1e-5), 4), round(surest(2, 1e-5, 0.01), 4), surest(float("inf"), 1e-5)
    (0.8808, 0.0695, 1.0)
    """
    odds = (1 - prior) * math.exp(-epsilon)
    return min(1.0, prior / (prior + odds) + delta)


def per_cent(chance: float) -> str | None:
    """A chance rounded up, below 100, with as few digits as that takes; None where it is 1.

    >>> per_cent(0.8808), per_cent(0.99331), per_cent(0.999665), per_cent(0.999999)
    ('89', '99.4', '99.97', None)
    """
    for digits in range(MOST_DIGITS + 1):
        # A little more first: what was rounded on the way here must not make it smaller.
        up = math.ceil((chance + 1e-12) * 100 * 10**digits) / 10**digits
        if up < 100:
            return f"{up:.{digits}f}"
    return None


def promise(certificate: Mapping[str, Any], *, yours: bool = True) -> str:
    """The sentence that the card opens with.

    Args:
        certificate: at least its status and headline.
        yours: speak to someone whose record may be among them; else about one.

    >>> line = {"unit": "record", "epsilon": 2.0, "delta": 1e-5}
    >>> promise({"status": "valid", "headline": line}, yours=False)  # doctest: +ELLIPSIS
    'Someone who was 50 % sure that a record was used to make this model can be at most 89 % ...'
    """
    top = certificate["headline"]
    epsilon, what = number(top["epsilon"]), (_YOURS if yours else _ANYONES)[top["unit"]]
    if certificate["status"] != "valid":
        return (
            "Nothing is promised: someone who knows the seed of the noise can subtract it, and may "
            f"then be certain whether {what}."
        )
    if math.isinf(epsilon):
        known = "anyone who has this model may find out for certain"
        return f"Nothing is promised: {known} whether {what}."
    sure = per_cent(surest(epsilon, top["delta"]))
    if sure is None:
        known = "anyone who has this model may be as good as certain"
        return f"Next to nothing is promised: {known} whether {what}."
    return (
        f"Someone who was 50 % sure that {what} can be {AT_MOST}{sure} % sure once they have it, "
        "no matter what else they know."
    )


def in_three(sentence: str) -> tuple[str, str, str]:
    """A promise, parted so that a page can show its figure in bold."""
    before, at_most, rest = sentence.partition(AT_MOST)
    figure, sure, after = rest.partition(" sure")
    return (before, at_most + figure + sure, after) if at_most else ("", before, "")


def by_prior(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How sure one was before, and can be afterwards at most, in per cent."""
    top = certificate["headline"]
    found = []
    for prior in PRIORS:
        after = per_cent(surest(number(top["epsilon"]), top["delta"], prior))
        found.append((f"{100 * prior:.0f}", "100" if after is None else after))
    return found
