"""Models by name: the same for the same seed, one's own by import, weights without code."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from stillroom.errors import BadInput
from stillroom.models import ZOO, build

SHAPE = (1, 14, 14)


def same(one, other):
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


@pytest.mark.parametrize("name", [name for name in ZOO if name != "conv-large"])
def test_the_seed_decides(name):
    first = build(name, SHAPE, 10, seed=1)
    state = torch.get_rng_state()
    assert same(first, build(name, SHAPE, 10, seed=1))
    assert not same(first, build(name, SHAPE, 10, seed=2))
    assert torch.equal(torch.get_rng_state(), state)


OWN = '''
"""A module of one's own."""
from torch import nn
class Tiny(nn.Sequential):
    def __init__(self, shape, classes):
        super().__init__(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], classes))
class Box:
    tiny = Tiny
def broken(shape, classes):
    raise ValueError("no such width\\nmore")
def nothing(shape, classes):
    return None
number = 3
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "stillroom_own_model.py").write_text(OWN)
    (tmp_path / "stillroom_own_broken.py").write_text("import not_there_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    yield "stillroom_own_model"
    sys.modules.pop("stillroom_own_model", None)


@pytest.mark.parametrize("name", ["Tiny", "Box.tiny"])
def test_a_model_of_ones_own(own, name):
    first = build(f"{own}:{name}", SHAPE, 4, seed=1)
    assert first(torch.zeros(2, *SHAPE)).shape == (2, 4)
    assert same(first, build(f"{own}:{name}", SHAPE, 4, seed=1))
    assert not same(first, build(f"{own}:{name}", SHAPE, 4, seed=2))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("resnet-huge", "there is no model"),
        ("stillroom_own_model:broken", "ValueError: no such width"),
        ("stillroom_own_model:nothing", "no torch module but a NoneType"),
        ("stillroom_own_model:number", "has no callable 'number'"),
        ("stillroom_own_model:absent", "has no callable 'absent'"),
        ("stillroom_own_model:", "has no callable ''"),
        ("stillroom_own_model.py:Tiny", "cannot be imported: ModuleNotFoundError"),
        ("stillroom_own_broken:Tiny", "No module named 'not_there_at_all'"),
        (":Tiny", "cannot be imported"),
    ],
)
def test_what_cannot_be_built_is_named(own, spec, said):
    with pytest.raises(BadInput) as caught:
        build(spec, SHAPE, 4, seed=0)
    assert said in caught.value.what
    assert "more" not in caught.value.what
    assert caught.value.remedy
    assert caught.value.exit_code == 2


def saved(model, path):
    if path.suffix == ".safetensors":
        save_file(model.state_dict(), path)
    else:
        torch.save(model.state_dict(), path)
    return path


@pytest.mark.parametrize("file", ["w.safetensors", "w.pt"])
def test_weights_come_back(file, tmp_path):
    first = build("student-10k", SHAPE, 10, seed=1)
    path = saved(first, tmp_path / file)
    assert same(first, build("student-10k", SHAPE, 10, seed=2, weights=path))


@pytest.mark.parametrize("file", ["w.safetensors", "w.pt"])
def test_weights_of_another_model_are_named(file, tmp_path):
    path = saved(build("student-50k", SHAPE, 10, seed=1), tmp_path / file)
    with pytest.raises(BadInput) as caught:
        build("student-10k", SHAPE, 10, seed=2, weights=path)
    assert "of another shape: conv1.0.weight (24, 1, 3, 3) instead of (8, 1, 3, 3)" in str(
        caught.value
    )
    with pytest.raises(BadInput) as caught:
        build("linear", SHAPE, 10, seed=2, weights=path)
    assert "unexpected: conv1.0.bias, conv1.0.weight" in caught.value.what
    assert "more" in caught.value.what
    with pytest.raises(BadInput, match=r"missing: hidden1\.0\.bias"):
        build("mlp", SHAPE, 10, seed=2, weights=path)


def test_weights_that_are_no_numbers(tmp_path):
    model = build("linear", SHAPE, 10, seed=1)
    with torch.no_grad():
        model[1].bias[3] = float("nan")
    with pytest.raises(BadInput, match=r"not finite: classes\.bias"):
        build("linear", SHAPE, 10, seed=1, weights=saved(model, tmp_path / "w.pt"))


class Malice:
    """A pickle that writes a file when it is read."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.write_text, (Path(self.target), "run")


@pytest.mark.parametrize("how", [torch.save, lambda x, path: path.write_bytes(pickle.dumps(x))])
def test_code_in_weights_is_refused_and_not_run(how, tmp_path):
    path, target = tmp_path / "w.pt", tmp_path / "traces"
    how({"classes.weight": Malice(target)}, path)
    with pytest.raises(BadInput, match="nothing in it was run") as caught:
        build("linear", SHAPE, 10, seed=0, weights=path)
    assert "code" in caught.value.why
    assert not target.exists()
    pickle.loads(pickle.dumps(Malice(target)))
    assert target.exists(), "the trap works"


def test_a_whole_module_is_refused(tmp_path):
    torch.save(nn.Linear(2, 2), tmp_path / "w.pt")
    with pytest.raises(BadInput, match="nothing in it was run"):
        build("linear", SHAPE, 10, seed=0, weights=tmp_path / "w.pt")


@pytest.mark.parametrize("file", ["w.safetensors", "w.pt"])
@pytest.mark.parametrize("content", [None, b"", b"hello", b"PK\x03\x04 no archive"])
def test_files_that_are_no_weights(file, content, tmp_path):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(BadInput) as caught:
        build("linear", SHAPE, 10, seed=0, weights=tmp_path / file)
    assert str(tmp_path / file) in caught.value.where


@pytest.mark.parametrize("content", [{"state_dict": {}, "epoch": 3}, [torch.zeros(2)]])
def test_a_checkpoint_around_the_weights_is_refused(content, tmp_path):
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(BadInput, match="no plain state dict"):
        build("linear", SHAPE, 10, seed=0, weights=tmp_path / "w.pt")
