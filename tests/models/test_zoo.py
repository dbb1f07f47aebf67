"""The networks have the sizes they promise, and no record in them sees another."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from stillroom.data import digits
from stillroom.errors import BadInput
from stillroom.features.scattering import morlet_bank
from stillroom.models import ZOO, AsPictures, build, check_fits, parameter_count
from stillroom.parameters.sizes import SIZES
from stillroom.randomness import normals

GREY, COLOUR = (1, 28, 28), (3, 32, 32)
COUNTS = {
    "linear": (7_850, 30_730),
    "mlp": (269_322, 855_050),
    "conv-large": (3_121_546, 3_123_850),
    "conv-middle": (1_407_946, 1_409_674),
    "conv-small": (152_394, 152_970),
    "student-10k": (9_322, 11_146),
    "student-50k": (50_770, 55_682),
    "mobile-10k": (9_266, 11_090),
    "mobile-50k": (50_626, 55_538),
    "deep-10k": (9_730, 10_994),
    "wavelet-70k": (70_834, 82_786),
    "resnet-small": (174_970, 175_258),
    "tanh-cnn": (26_010, 37_274),
    "mnist-net": (1_199_882, 1_626_442),
    "cifar-net": (889_834, 1_250_858),
    "svhn-net": (223_994, 314_394),
}


OVER_BATCH = ("mobile-10k", "mobile-50k", "deep-10k", "wavelet-70k")
"""Students of public pictures alone: their norms are over the batch."""
DROPPING = ("mnist-net", "cifar-net", "svhn-net")
"""For publishers of parameters: their dropout draws in the order of the records."""


def test_every_network_is_counted():
    assert COUNTS.keys() == ZOO.keys()


@pytest.mark.parametrize("name", ZOO)
def test_sizes_and_scores(name):
    for shape, count in zip((GREY, COLOUR), COUNTS[name], strict=True):
        model = build(name, shape, 10, seed=0)
        assert parameter_count(model) == count
        check_fits(model, shape, 10, private_training=name not in (*OVER_BATCH, *DROPPING))
        assert model(torch.zeros(3, *shape)).shape == (3, 10)


@pytest.mark.parametrize("name", OVER_BATCH)
def test_norms_over_the_batch_are_refused_for_private_training(name):
    model = build(name, GREY, 10, seed=0)
    check_fits(model, GREY, 10, private_training=False)
    with pytest.raises(BadInput):
        check_fits(model, GREY, 10, private_training=True)
    # What they mix in training they no longer mix when they are released.
    x = torch.from_numpy(normals(2, "x", size=(4, *GREY))).float()
    with torch.no_grad():
        together, alone = (model.eval()(x)[:1], model(x[:1]))
        assert torch.allclose(together, alone, atol=1e-6)
        assert not torch.allclose(model.train()(x)[:1], alone, atol=1e-3)


@pytest.mark.parametrize("name", DROPPING)
def test_dropout_is_refused_for_private_training(name):
    with pytest.raises(BadInput, match="draw"):
        check_fits(build(name, GREY, 10, seed=0), GREY, 10, private_training=True)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("shape", [GREY, COLOUR, (1, 17, 30), (2, 13, 12)])
@pytest.mark.parametrize("classes", [2, 10])
def test_sizes_are_told_without_building(name, shape, classes):
    told = SIZES[name](shape, classes)
    assert told == parameter_count(build(name, shape, classes, seed=0))


@pytest.mark.parametrize(
    ("name", "millions"), [("conv-large", 3.12), ("conv-middle", 1.41), ("conv-small", 0.15)]
)
def test_ronas_table_2(name, millions):
    """SVHN and CIFAR-10 have three channels; the table rounds to two digits."""
    assert round(parameter_count(build(name, COLOUR, 10, seed=0)) / 1e6, 2) == millions


def test_ronas_layers_are_numbers():
    with torch.no_grad():
        teacher = build("conv-middle", COLOUR, 10, seed=0)
        hint = teacher[:4](torch.zeros(1, *COLOUR))
        guided = build("conv-small", COLOUR, 10, seed=0)[:7](torch.zeros(1, *COLOUR))
    assert hint.shape == (1, 96, 16, 16)
    assert guided.shape == (1, 64, 16, 16)


@pytest.mark.parametrize("name", ZOO)
def test_every_block_has_a_number_and_a_name(name):
    model = build(name, GREY, 10, seed=0)
    assert isinstance(model, nn.Sequential)
    assert list(dict(model.named_children()))[-1] == "classes"
    x = torch.from_numpy(normals(1, "x", size=(2, *GREY))).float()
    middle = len(model) // 2
    model.eval()
    with torch.no_grad():
        assert torch.equal(model(x), model[middle:](model[:middle](x)))


@pytest.mark.parametrize("name", ["conv-small", "student-10k", "student-50k", "resnet-small"])
def test_the_built_in_digits_are_large_enough(name):
    pictures = AsPictures(digits().shape, 16)
    check_fits(build(name, pictures.given, 10, seed=0), pictures.given, 10, private_training=True)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("conv-small", 4),
        ("student-10k", 8),
        ("resnet-small", 4),
        ("tanh-cnn", 14),
        ("wavelet-70k", 4),
    ],
)
def test_the_smallest_pictures(name, least):
    for shape in ((1, least, least), (1, least, least + 3), (2, least + 1, least)):
        check_fits(build(name, shape, 3, seed=0), shape, 3, private_training=False)
    for small in ((1, least - 1, 40), (1, 40, least - 1), (64,)):
        with pytest.raises(BadInput, match=f"at least {least}x{least}"):
            build(name, small, 3, seed=0)


@pytest.mark.parametrize("shape", [GREY, COLOUR])
def test_the_wavelet_student_begins_with_the_public_bank(shape):
    first = build("wavelet-70k", shape, 10, seed=3)[0][0].weight.detach()
    for phase, waves in enumerate(morlet_bank()):
        kept = waves[..., 1:-1, 1:-1].flatten(1)
        for channel in first[phase::3].unbind(1):
            assert torch.cosine_similarity(channel.flatten(1), kept).min() > 0.999
    others = build("wavelet-70k", shape, 10, seed=4)[0][0].weight.detach()
    assert not torch.allclose(first[2::3], others[2::3]), "a third of its filters are random"
    assert first[:, 0].flatten(1).norm(dim=1).max() <= 1 + 1e-5


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_rows_of_features(name):
    check_fits(build(name, (54,), 7, seed=0), (54,), 7, private_training=True)


def test_a_student_learns():
    """Nothing dead on the way: a few steps lower the loss on the built-in digits."""
    data = digits()
    pictures = AsPictures(data.shape, 16)
    x = pictures(torch.tensor(data.x[:256]))
    y = torch.tensor(data.y[:256])
    for name in ("conv-small", "student-10k", "resnet-small"):
        model = build(name, pictures.given, 10, seed=0)
        weights, losses = list(model.parameters()), []
        for _ in range(8):
            loss = nn.functional.cross_entropy(model(x), y)
            losses.append(loss.item())
            slopes = torch.autograd.grad(loss, weights)
            assert all(slope.abs().sum() > 0 for slope in slopes)
            for weight, slope in zip(weights, slopes, strict=True):
                weight.data -= 0.1 * slope
        assert losses[-1] < 0.97 * losses[0]
