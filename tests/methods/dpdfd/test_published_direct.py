"""DPDFD's direct training: a leak for records, a price for labels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from dp_accounting import get_epsilon_gaussian
from torch import nn

from methods.dpdfd.published_worlds import Told, plan_of
from stillroom.data import Dataset
from stillroom.errors import BadInput, BudgetExhausted, NotSanitised
from stillroom.gate import Budget, Gate, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.ledger import draws, verify
from stillroom.methods.dpdfd.published import Taught
from stillroom.methods.dpdfd.published_direct import train_directly
from stillroom.methods.dpdfd.published_plan import GRADIENTS, STEPS
from stillroom.methods.registry import parse
from stillroom.models.flat_weights import flatten
from stillroom.private.label_gradients import LabelledRecords
from stillroom.private.output_gradients import TermBound
from stillroom.randomness import normals, seeded_torch
from stillroom.vocabulary import CHANGED_LABEL, RECORD, Sealed, Unit

CLASSES = 3
DIRECT = plan_of(direct=True, reading="per-sample", bound=1.0, gamma=1.0, batch=4, sigma=1)
RECIPE = """method = "dpdfd"
mode = "{mode}"
source = "plain"
[data]
source = "digits"
unit = "{unit}"
declared_size = 1400
[published]
direct = {direct}
[privacy]
epsilon = 1
"""


def data(size=12, *, flip=None, named=True):
    y = np.arange(size) % CLASSES
    x = normals(3, "records", size=(size, 5)) + 3 * np.eye(5)[y]
    if flip is not None:
        y[flip] = (y[flip] + 1) % CLASSES
    ids = [f"record {i}" for i in range(size)] if named else ()
    return Dataset(x, y, CLASSES, ids=ids)


def labelled(records=None):
    return LabelledRecords(Sealed(records or data()), nn.Identity(), Unit.LABEL)


def linear():
    with seeded_torch(1, "linear"):
        return nn.Linear(5, CLASSES, dtype=torch.float64)


def passages(folder, plan, name="ledger"):
    ledger = Ledger.create(
        folder / f"{name}.sqlite", Sealed(data()), purpose="benchmark", unit="label"
    )
    ledger.set_budget(Budget(90.0, 1e-5, CHANGED_LABEL), reason="a test")
    (request,) = plan.requests((5,), CLASSES, Unit.LABEL)
    wish = {request.name: (request.at(Fraction(1)), request.count)}
    gate = Gate.of(ledger, Sealed(data()))
    return ledger, gate.reserve_all(wish, recipe="run", accept_infinite=True)


# -- a leak for records ----------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1, 100])
def test_an_update_is_a_multiple_of_the_record(tmp_path, sigma):
    """One record, noise of 100 C: the update's rows point along the record, exactly."""
    plan = plan_of(
        direct=True, reading="per-sample", bound=1.0, gamma=1.0, batch=1, iterations=1,
        sigma=sigma, optimiser="sgd", student_rate=1.0,
    )  # fmt: skip
    network, records = linear(), labelled()
    before = network.weight.detach().clone()
    _, paid = passages(tmp_path, plan)
    train_directly(network, records, plan, paid)
    update = (network.weight.detach() - before).numpy()
    cosines = [
        np.abs(update @ x) / np.linalg.norm(update, axis=1) / np.linalg.norm(x)
        for x in records.inputs.numpy()
    ]
    assert min(np.abs(np.array(cosines) - 1).max(axis=1)) < 1e-9
    assert np.linalg.norm(update) > 0


@pytest.mark.parametrize("mode", ["certified", "as-published"])
@pytest.mark.parametrize("unit", ["record", "person"])
def test_it_is_refused_for_records(mode, unit):
    with pytest.raises(BadInput) as refused:
        parse(RECIPE.format(mode=mode, unit=unit, direct="true"))
    for words in ("cosine of 1.0", "Jacobian", "source trained", 'data.unit = "label"'):
        assert words in str(refused.value)


def test_labels_alone_are_for_direct_training_alone():
    parse(RECIPE.format(mode="certified", unit="label", direct="true"))
    with pytest.raises(BadInput, match=r"data\.unit: label"):
        parse(RECIPE.format(mode="certified", unit="label", direct="false"))
    text = '[data]\nsource = "digits"\nunit = "label"\ndeclared_size = 9\n[privacy]\nepsilon = 1'
    with pytest.raises(BadInput, match=r"data\.unit"):
        parse(text)


@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.PERSON, Unit.ENTITY])
def test_records_are_handed_out_for_labels_alone(unit):
    with pytest.raises(BadInput, match="handed out"):
        LabelledRecords(Sealed(data()), nn.Identity(), unit)


def test_a_price_for_records_does_not_let_labels_gradients_through(tmp_path):
    ledger = Ledger.create(tmp_path / "l.sqlite", Sealed(data()), purpose="benchmark")
    ledger.set_budget(Budget(90.0, 1e-5), reason="a test")
    (request,) = DIRECT.requests((5,), CLASSES, Unit.RECORD)
    wish = {request.name: (request.at(Fraction(1)), request.count)}
    paid = Gate.of(ledger, Sealed(data())).reserve_all(wish)
    with pytest.raises(NotSanitised):
        train_directly(linear(), labelled(), DIRECT, paid)


# -- a price for labels ------------------------------------------------------------------------


def test_one_label_moves_its_own_term():
    """D = 2 C, multiplier sigma / 2: what six answers cost, and that it is attained."""
    (request,) = DIRECT.requests((5,), CLASSES, Unit.LABEL)
    mechanism = request.at(Fraction(1))
    assert mechanism.squared_distance == 4 * STEPS**2
    assert list(mechanism.sensitivity.bounds) == [CHANGED_LABEL]
    lines = mechanism.lines(request.count)
    assert math.isinf(price(lines, RECORD).epsilon(1e-5))
    wanted = get_epsilon_gaussian(0.5 / math.sqrt(6), 1e-5)
    assert price(lines, CHANGED_LABEL).epsilon(1e-5) == pytest.approx(wanted, rel=1e-3)


def test_a_batch_names_no_record_twice():
    rule = TermBound(1.0, 100, together=False)
    with pytest.raises(BadInput, match="twice"):
        labelled().gradients(np.array([1, 1]), torch.zeros(2, CLASSES), rule)


def test_it_learns_and_goes_on(tmp_path):
    plan = plan_of(
        direct=True, reading="per-sample", bound=1.0, gamma=5.0, batch=1, iterations=60,
        sigma="1/2", student_rate=0.05,
    )  # fmt: skip
    ledger, paid = passages(tmp_path, plan)
    network, records = linear(), labelled()

    def cut(iteration):
        if iteration == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_directly(network, records, plan, paid, cut)
    again = Gate.of(Ledger.open(ledger.path), Sealed(data())).reopen("run")
    network = linear()
    assert train_directly(network, records, plan, again) == Taught(60, finished=True)
    right = network(records.inputs).argmax(1).numpy() == data().y
    assert right.mean() > 0.7
    verify(ledger)
    replay = linear()
    train_directly(replay, records, plan, Gate.of(ledger, Sealed(data())).reopen("run"))
    assert np.array_equal(flatten(replay), flatten(network))


def test_a_label_reaches_the_network_through_the_gate_alone(tmp_path):
    ledger, paid = passages(tmp_path, DIRECT)
    network = linear()
    train_directly(network, labelled(), DIRECT, paid)
    kept = draws.committed(ledger.store, paid[GRADIENTS].block, 0)
    said = [draws.answers(ledger.store, stored.draw) for stored in kept]
    for flip in range(12):
        other = linear()
        train_directly(other, labelled(data(flip=flip)), DIRECT, {GRADIENTS: Told(said)})
        assert np.array_equal(flatten(other), flatten(network))


def test_numbers_that_are_not_finite_end_the_training():
    records = labelled()
    records.inputs[:] = math.inf
    taught = train_directly(linear(), records, DIRECT, {GRADIENTS: Told()})
    assert taught == Taught(0, finished=False, broken_at=1)


def test_ids_made_from_content_are_made_from_labels():
    """A record with another label is another record: nothing can be promised for its label."""
    ledger = Ledger.in_memory(Sealed(data(named=False)), purpose="benchmark", unit="label")
    with pytest.raises(BadInput, match="made from content"):
        ledger.set_budget(Budget(1.0, 1e-5, CHANGED_LABEL), reason="a test")
    (request,) = DIRECT.requests((5,), CLASSES, Unit.LABEL)
    with pytest.raises((BadInput, BudgetExhausted)):
        Gate.of(ledger, Sealed(data(named=False))).reserve(request.at(Fraction(1)), 1)
