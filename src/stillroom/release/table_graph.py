"""Features of tables as nodes of an ONNX graph; they mirror features/table.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stillroom.features.table import TableFeatures

if TYPE_CHECKING:
    from stillroom.release.linear_graph import Graph


def table_rows(graph: Graph, features: TableFeatures) -> str:
    """Add the nodes; the constant feature is left to the intercept."""
    from onnx import TensorProto

    how, count = features.layout, len(features.schema.numbers)

    def floats(truth: str) -> str:
        return graph("Cast", truth, to=TensorProto.FLOAT)

    def at(value: str, places: npt.ArrayLike) -> str:
        return graph("Gather", value, graph.constant(places, np.int64), axis=1)

    found = []
    if count:
        numbers = at("x", np.arange(count))
        low, high = graph.constant(how.low), graph.constant(how.high)
        clamped = graph("Min", graph("Max", numbers, low), high)
        away = graph("Sub", clamped, graph.constant(how.middle))
        scaled = graph("Mul", away, graph.constant(how.per_half))
        scaled = graph("Clip", scaled, graph.constant(-1.0), graph.constant(1.0))
        may_be_absent = np.isin(np.arange(count), how.absent)
        missing = graph("And", graph("Less", numbers, low), graph.constant(may_be_absent, np.bool_))
        there = graph("Not", missing)
        found.append(graph("Mul", scaled, floats(there)))
        if len(how.absent):
            found.append(at(floats(missing), how.absent))
        if len(how.binned):
            own = at(clamped, how.binned)
            above = graph("GreaterOrEqual", own, graph.constant(how.lower))
            below = graph("Less", own, graph.constant(how.upper))
            within = graph("And", graph("And", above, below), at(there, how.binned))
            found.append(floats(within))
    if len(how.codes):
        listed = floats(graph("Equal", at("x", how.columns), graph.constant(how.codes)))
        counted = graph("CumSum", listed, graph.constant(1, np.int64))
        before = graph("Sub", at(counted, how.first), at(listed, how.first))
        own_ones = graph("Sub", at(counted, how.last), before)
        found += [listed, graph("Sub", graph.constant(1.0), own_ones)]
    single = found[0] if len(found) == 1 else graph("Concat", *found, axis=1)
    rows = single
    if len(how.left):
        products = graph("Mul", at(single, how.left), at(single, how.right))
        rows = graph("Concat", single, products, axis=1)
    return graph("Mul", rows, graph.constant(how.scale))
