"""The training loop: each loss teaches what it says, and an epoch moves only what it should."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.models.training import LOWEST, NetworkTraining, by_logits, softened
from stillroom.randomness import normals, seeded_torch, uniforms

GUESS = torch.from_numpy(normals(1, "guess", size=(5, 4))).float()
SCORES = torch.from_numpy(normals(1, "scores", size=(5, 4))).float() * 3


def network():
    with seeded_torch(4, "network"):
        return nn.Sequential(
            nn.Linear(6, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 3)
        )


def stages(net, epochs=2, pictures=None, **named):
    pictures = nn.Identity() if pictures is None else pictures
    return NetworkTraining(net, pictures, epochs=epochs, learning_rate=0.01, seed=5, **named)


def records(size=40):
    return torch.from_numpy(normals(2, "x", size=(size, 6))).float()


def state(net):
    return copy.deepcopy(net.state_dict())


def moved(net, before):
    return {
        name for name, tensor in net.state_dict().items() if not torch.equal(tensor, before[name])
    }


def test_softened_is_the_papers_cross_entropy():
    p = np.exp(SCORES.numpy() / 3)
    p /= p.sum(1, keepdims=True)
    q = np.exp(GUESS.numpy() / 3)
    q /= q.sum(1, keepdims=True)
    assert float(softened(3.0)(GUESS, SCORES)) == pytest.approx(
        -(p * np.log(q)).sum(1).mean(), rel=1e-5
    )


def test_by_logits_is_a_divergence_and_a_distance():
    """Centred and divided by the temperature; zero at the teacher's own logits."""
    centred = [(t - t.mean(1, keepdim=True)) / 2 for t in (GUESS, SCORES)]
    p, q = (F.softmax(t, 1) for t in centred)
    divergence = float((q * (q / p).log()).sum(1).mean())
    distance = float(((centred[0] - centred[1]) ** 2).mean())
    assert float(by_logits(2.0)(GUESS, SCORES)) == pytest.approx(
        divergence + 0.1 * distance, rel=1e-4
    )
    assert float(by_logits(2.0, share=0.0)(GUESS, SCORES)) == pytest.approx(divergence, rel=1e-4)
    assert float(by_logits(2.0)(SCORES, SCORES)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("loss", [softened(2.0), by_logits(2.0)])
def test_an_offset_of_all_logits_tells_nothing(loss):
    offset = torch.arange(5.0)[:, None]
    assert torch.allclose(loss(GUESS + offset, SCORES - 7 * offset), loss(GUESS, SCORES), atol=1e-4)
    # A twin without centring is caught.
    assert abs(float(F.mse_loss(GUESS + offset, SCORES) - F.mse_loss(GUESS, SCORES))) > 0.1


def test_a_class_that_the_softmax_hides_is_learnt_from_logits():
    """No training record shows class 2; only its logits tell how it grows along the first axis."""
    teacher = torch.tensor([[0.0, 3, 0, 0], [0, -3, 0, 0], [4, 0, 0, 0]])
    bias = torch.tensor([0.0, 0.0, -14.0])
    x = torch.from_numpy(uniforms(3, "x", size=(600, 4)) * 2 - 1).float()
    far = x[:200] + torch.tensor([7.0, 0, 0, 0])
    scores = x @ teacher.T + bias
    assert F.softmax(scores, 1)[:, 2].max() < 1e-3
    assert ((far @ teacher.T + bias).argmax(1) == 2).all()
    found = {}
    for name, loss in (("logits", by_logits(2.0)), ("softened", softened(1.0))):
        with seeded_torch(1, "student"):
            student = nn.Linear(4, 3)
        learning = NetworkTraining(student, nn.Identity(), epochs=30, learning_rate=0.1, seed=1)
        for _ in range(30):
            learning.distil(x, scores, 60, loss)
        # Both agree with the teacher where it is sure.
        assert (student(x).argmax(1) == scores.argmax(1)).float().mean() > 0.9
        found[name] = float((student(far).argmax(1) == 2).float().mean())
    assert found["logits"] > 0.95
    assert found["softened"] < 0.5


def test_the_learning_rate_has_one_cycle():
    rates, learning = [], None

    class Noting(nn.Module):
        def forward(self, x):
            rates.append(learning._optimiser.param_groups[0]["lr"])
            return x

    learning = stages(network(), epochs=10, pictures=Noting())
    y = torch.zeros(40, dtype=torch.int64)
    for _ in range(10):
        learning.learn(records(), y, 8)
    top = int(np.argmax(rates))
    assert len(rates) == 50
    assert rates[0] == pytest.approx(0.01 * LOWEST)
    assert rates[top] == pytest.approx(0.01)
    assert top == 15
    assert (np.diff(rates[: top + 1]) >= 0).all()
    assert (np.diff(rates[top:]) <= 0).all()
    assert rates[-1] < 0.03 * rates[top]


def test_hints_move_the_guided_layers_and_the_adaptation_alone():
    net = network()
    with seeded_torch(4, "adaptation"):
        adaptation = nn.Linear(8, 5)
    learning = stages(net, epochs=12, adaptation=adaptation)
    x, y = records(), torch.arange(40) % 3
    targets = torch.from_numpy(normals(2, "hints", size=(40, 5))).float()

    def distance():
        with torch.no_grad():
            return float(F.mse_loss(adaptation(net[:2](x)), targets))

    # Momentum of an earlier stage must not move the rest either.
    learning.learn(x, y, 10)
    before, first, start = state(net), state(adaptation), distance()
    for _ in range(10):
        learning.hint(x, targets, 10, net[:2])
    assert moved(net, before) == {"0.weight", "0.bias", "1.1.weight", "1.1.bias"}
    assert moved(adaptation, first) == {"weight", "bias"}
    assert distance() < 0.95 * start
    first = state(adaptation)
    learning.learn(x, y, 10)
    assert moved(adaptation, first) == set()


def test_an_epoch_without_records_is_skipped():
    net = network()
    learning, before = stages(net), state(net)
    learning.learn(records(0), torch.zeros(0, dtype=torch.int64), 8)
    learning.distil(records(0), torch.zeros(0, 3), 8, softened(1.0))
    assert moved(net, before) == set()
    assert learning._done == 2
    assert not net.training


@pytest.mark.parametrize(("size", "batch", "steps"), [(20, 8, 2), (5, 8, 1), (16, 8, 2), (1, 8, 1)])
def test_the_rest_of_a_batch_is_left_out(size, batch, steps):
    sizes = []

    class Noting(nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            return x

    stages(network(), pictures=Noting()).learn(
        records(size), torch.zeros(size, dtype=torch.int64), batch
    )
    assert sizes == [min(size, batch)] * steps


def test_a_loss_that_is_no_number_is_named():
    x = records()
    x[7, 2] = torch.nan
    learning = stages(network())
    learning.learn(records(), torch.zeros(40, dtype=torch.int64), 8)
    with pytest.raises(BadInput, match="not a number") as caught:
        learning.learn(x, torch.zeros(40, dtype=torch.int64), 8)
    assert caught.value.where.startswith("epoch 2, step ")
    assert caught.value.remedy


def test_the_same_seed_gives_the_same_network():
    made = []
    for seed in (5, 5, 6):
        net = network()
        learning = NetworkTraining(net, nn.Identity(), epochs=2, learning_rate=0.01, seed=seed)
        learning.learn(records(), torch.arange(40) % 3, 8)
        made.append(state(net))
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
    assert not torch.equal(made[0]["0.weight"], made[2]["0.weight"])
