"""Generators: any shape, the class heard, samples apart from their company, one's own by import."""

from __future__ import annotations

import sys

import pytest
import torch

from stillroom.errors import BadInput
from stillroom.public.generators import GENERATORS, build_generator, latents

PICTURES = [(1, 28, 28), (3, 32, 32), (1, 16, 16), (1, 8, 8), (3, 5, 9), (1, 1, 1), (1, 70, 66)]


def made(model="conv", shape=(1, 8, 8), classes=4, **other):
    settings = {"latent": 6, "width": 16, "conditional": False, "seed": 1, **other}
    return build_generator(model, shape, classes, **settings)


def drawn(generator, count=4, seed=7):
    z = latents(seed, "test", count=count, size=generator.latent)
    labels = torch.arange(count) % generator.classes if generator.conditional else None
    return generator(z, labels)


@pytest.mark.parametrize("shape", PICTURES)
@pytest.mark.parametrize("conditional", [False, True])
def test_pictures_of_any_shape(shape, conditional):
    pictures = drawn(made(shape=shape, conditional=conditional))
    assert pictures.shape == (4, *shape)
    assert 0 <= pictures.min() < pictures.max() <= 1


@pytest.mark.parametrize("shape", [(5,), (1,), (1, 8, 8)])
def test_rows_of_features(shape):
    rows = drawn(made("mlp", shape))
    assert rows.shape == (4, *shape)
    assert rows.std() > 0


@pytest.mark.parametrize("model", GENERATORS)
@pytest.mark.parametrize("width", [4, 6, 16])
def test_every_latent_number_counts_and_every_weight_learns(model, width):
    generator = made(model, (1, 4, 4), width=width)
    z = latents(7, "test", count=3, size=generator.latent).requires_grad_()
    generator(z).square().sum().backward()
    assert (z.grad != 0).all()
    assert all((weight.grad != 0).any() for weight in generator.parameters())


@pytest.mark.parametrize("model", GENERATORS)
def test_the_class_is_heard(model):
    generator = made(model, conditional=True)
    z = latents(7, "test", count=1, size=generator.latent)
    one, other = generator(z, torch.tensor([0])), generator(z, torch.tensor([3]))
    assert not torch.allclose(one, other)
    assert torch.equal(one, generator.of_rows(torch.cat([z, torch.eye(4)[:1]], dim=1)))


@pytest.mark.parametrize("model", GENERATORS)
def test_a_sample_does_not_depend_on_its_company_nor_on_the_mode(model):
    generator = made(model)
    z = latents(7, "test", count=9, size=generator.latent)
    among = generator.train()(z)
    alone = torch.cat([generator.eval()(one) for one in z.split(1)])
    assert torch.allclose(among, alone, atol=1e-6)


def test_the_seed_decides():
    one, same, other = (drawn(made(seed=seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert not torch.equal(drawn(made()), drawn(made(), seed=8))


@pytest.mark.parametrize(("conditional", "labels"), [(True, None), (False, torch.tensor([0]))])
def test_labels_where_they_belong(conditional, labels):
    with pytest.raises(BadInput, match="conditional generator needs"):
        made(conditional=conditional)(torch.zeros(1, 6), labels)


OWN = """
from torch import nn
class Wild(nn.Sequential):
    def __init__(self, shape, inputs):
        super().__init__(nn.Linear(inputs, 64), nn.BatchNorm1d(64), nn.Unflatten(1, shape))
        nn.init.constant_(self[0].weight, 9.0)
def flat(shape, inputs):
    return nn.Linear(inputs, 64)
def narrow(shape, inputs):
    return nn.Linear(inputs + 1, 64)
def endless(shape, inputs):
    made = Wild(shape, inputs)
    nn.init.constant_(made[1].bias, float("inf"))
    return made
def broken(shape, inputs):
    raise ValueError("no such width")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "stillroom_own_generator.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "stillroom_own_generator"
    sys.modules.pop("stillroom_own_generator", None)


def test_one_of_ones_own_is_kept_in_range(own):
    generator = made(f"{own}:Wild", conditional=True)
    assert generator.training
    pictures = drawn(generator.eval())
    assert pictures.shape == (4, 1, 8, 8)
    assert pictures.max() <= 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("flat", "records of shape"),
        ("narrow", "cannot read 6 numbers"),
        ("endless", "not finite"),
        ("broken", "could not be made: ValueError: no such width"),
        ("absent", "has no callable"),
    ],
)
def test_one_that_does_not_fit_is_refused(own, name, said):
    with pytest.raises(BadInput, match=said):
        made(f"{own}:{name}")


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "gan"},
        {"model": "conv", "shape": (64,)},
        {"latent": 0},
        {"width": 0},
        {"shape": (1, 0, 8)},
    ],
)
def test_what_cannot_be_made(settings):
    with pytest.raises(BadInput):
        made(**settings)
