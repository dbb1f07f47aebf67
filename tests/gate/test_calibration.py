"""The search for the least noise asks for few prices, each of which takes a second."""

from __future__ import annotations

import math

import pytest

from stillroom.gate.calibration import _narrowed


@pytest.mark.parametrize("first", [601, 700, 763, 999, 1000])
def test_where_less_noise_has_no_figure_the_rest_is_halved(first: int) -> None:
    asked = set()

    def figure(step: int) -> float:
        asked.add(step)
        return 40 * 1000 / step if step >= first else math.inf

    assert _narrowed(figure, 900.0, 600, 1000) == first
    assert len(asked) <= 2 + math.ceil(math.log2(400))
