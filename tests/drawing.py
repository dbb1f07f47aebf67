"""Draw the next answer, for tests that do not care what was asked."""

from __future__ import annotations

from itertools import count
from weakref import WeakKeyDictionary

from stillroom.gate import Passage
from stillroom.vocabulary import Bounded, Integers, Sanitised

_NEXT: WeakKeyDictionary[Passage, int] = WeakKeyDictionary()


def drawn(passage: Passage, bounded: Bounded) -> Sanitised[Integers]:
    """A new answer of the passage: its questions are numbered, and known ones are passed over."""
    for number in count(_NEXT.get(passage, 1)):
        question = b"question %d" % number
        known = passage.knows(question)
        answer = passage.answer(question, lambda: bounded)
        _NEXT[passage] = number + 1
        if not known:
            return answer
    raise AssertionError
