"""A teacher that came as a file: there are no records, and the unit is the model as a whole.

Claim: what leaves goes through the bounded answers of `PlainTeacher`, whose diameter holds for any
two teachers. So it holds for this model and any other with the same inputs and outputs, whatever
either was trained on. The ledger belongs to the weights: to their numbers, not to the file.

Before anything is paid for, a model that cannot be used is refused by name. Afterwards nothing
about it is raised (K10): where it gives no finite scores, it says zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.models import AsPictures, build
from stillroom.models.fit import COMPANY_TOLERANCE, made_up_records, not_finite
from stillroom.private.onnx_network import read_onnx, unfit
from stillroom.private.plain import PlainTeacher
from stillroom.randomness import normals
from stillroom.vocabulary import Sealed

SAFETENSORS, ONNX = ".safetensors", ".onnx"
WEIGHTS = "weights "
"""How the id of a model begins; no record's id made from content does."""
TRIED = 4
"""Made-up records that a model is tried on."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A network that came as a file, as the one unit of its ledger.

    Args:
        network: from pictures to scores; says zero where it has no finite ones.
        given: the shape of one picture.
        classes: how many scores it gives.
        ids: one, made of its weights.
    """

    network: nn.Module
    given: tuple[int, ...]
    classes: int
    ids: tuple[str, ...]
    persons: None = None
    ids_from_content: bool = False
    """Nothing is split or sharded by the id, so a changed model stays where it was."""


def read_model(path: Path, make: str | None, given: tuple[int, ...], classes: int) -> Sealed[Model]:
    """The model in a file, tried on made-up pictures, and sealed.

    Guarantee: nothing in the file is run as code; an ONNX file is run by ONNX Runtime.
    Assumes: a module that `make` names is trusted like any other installed code.

    Args:
        path: a .safetensors file with the weights of `make`, or an .onnx file.
        make: a name in the zoo, or package.module:callable; None for an .onnx file.
        given: the shape of one picture as networks are given it.
        classes: how many classes there are.

    Raises:
        BadInput: there is no such file, it is of another kind, or it holds no such model.
    """
    if not path.is_file():
        raise BadInput(
            "there is no such file",
            where=f"plain.file, {path}",
            why="without records the model is all there is",
            remedy="name the model's file, as it is called from beside the recipe",
        )
    network: nn.Module
    if path.suffix == SAFETENSORS and make is not None:
        network = build(make, given, classes, seed=0, weights=path).eval()
        weights = [tensor.float().numpy() for tensor in _trained(network.state_dict().values())]
    elif path.suffix == ONNX and make is None:
        network, weights = read_onnx(path, given)
    else:
        raise BadInput(
            "a model comes as .safetensors, with its make, or as .onnx, which holds it",
            where=f"plain.file, {path}",
            why="other files are mostly pickles, and reading a pickle can run code that it carries",
            remedy="save it: safetensors.torch.save_file(model.state_dict(), 'model.safetensors')",
        )
    _try(network, given, classes, path)
    return Sealed(Model(_Settled(network, classes), given, classes, (weights_id(weights),)))


def model_teacher(model: Sealed[Any], pictures: AsPictures, classes: int) -> PlainTeacher:
    """A sealed model as a teacher, to be asked through its passages.

    Guarantee: none by itself; see `PlainTeacher`.

    Args:
        model: what `read_model` gives.
        pictures: from records as they are stored to what it is given.
        classes: how many classes there are.

    Raises:
        BadInput: these are records, or the model is one for others.
    """
    held = model.open_sealed()
    fits = isinstance(held, Model) and (held.given, held.classes) == (pictures.given, classes)
    if not fits:
        raise BadInput(
            "the party holds no model, or one for other pictures or classes",
            where="plain.file, data.shape, data.classes",
            why="the teacher is the model that the recipe describes",
            remedy="give the party what `read_model` gives for this recipe",
        )
    return PlainTeacher(held.network, pictures)


def weights_id(weights: Iterable[npt.NDArray[Any]]) -> str:
    """The id of a model: a hash of its trained numbers, whatever their names, order and file.

    >>> import numpy as np
    >>> one, two = np.ones((2, 3)), np.arange(3.0)
    >>> weights_id([one, two]) == weights_id([two.astype("f4"), one.astype("f2")])
    True
    >>> weights_id([one, two]) == weights_id([one, two + 1])
    False
    """
    # One number format for all files; adding 0 turns the other zero, -0.0, into 0.0.
    digests = (
        hashlib.sha256(repr(array.shape).encode() + (array.astype("<f8") + 0.0).tobytes()).digest()
        for array in weights
    )
    return WEIGHTS + hashlib.sha256(b"".join(sorted(digests))).hexdigest()


class _Settled(nn.Module):
    """A network that says zero where it cannot say anything finite."""

    def __init__(self, network: nn.Module, classes: int) -> None:
        super().__init__()
        self._network, self._classes = network, classes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pictures, blank = x.detach().float(), torch.zeros(len(x), self._classes)
        try:
            said = self._network(pictures)
            return torch.where(torch.isfinite(said).all(dim=1, keepdim=True), said, blank).float()
        except Exception:
            # What a model cannot do with some picture is a property of the model (K10).
            return blank


def _trained(tensors: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Those that hold what was learnt: not how many batches were seen."""
    for tensor in tensors:
        if tensor.is_floating_point() or tensor.element_size() == 1:
            yield tensor


def _try(network: nn.Module, given: tuple[int, ...], classes: int, path: Path) -> None:
    """Refuse what does not give each picture its own scores, the same each time."""
    x, _ = made_up_records(given, classes, TRIED)
    others = torch.from_numpy(normals(0, "company", size=(TRIED, *given))).float()
    try:
        with torch.no_grad():
            first, again = network(x), network(x)
            together = network(torch.cat([3 * others + 1, x]))
    except Exception as error:
        raise unfit(
            path,
            f"the model cannot read pictures of shape {given} ({type(error).__name__})",
            "give data.shape as its records are: (height, width), (height, width, channels) or "
            "(features,)",
        ) from None
    shape = tuple(first.shape) if isinstance(first, torch.Tensor) else type(first).__name__
    if shape != (TRIED, classes):
        raise unfit(
            path,
            f"the model gives {shape} for {TRIED} pictures, not {(TRIED, classes)}",
            "say in data.classes how many it has; it must give one row of scores per picture",
        )
    if not torch.isfinite(first).all():
        raise not_finite("for made-up pictures of numbers between 0 and 1")
    if (first >= 0).all() and ((first.sum(dim=1) - 1).abs() < COMPANY_TOLERANCE).all():
        raise unfit(
            path,
            "the model gives probabilities",
            "leave out its last softmax: scores are asked for, and softened by the method",
        )
    if _differ(first, again):
        raise unfit(
            path,
            "the model says something else of the same picture each time, as dropout does",
            "save it as it is used, not as it is trained (model.eval() before an export)",
        )
    if _differ(first, together[TRIED:]):
        raise unfit(
            path,
            "what the model says of a picture changes with the pictures beside it, as under batch "
            "statistics",
            "save it as it is used, not as it is trained (model.eval() before an export)",
        )


def _differ(one: torch.Tensor, two: torch.Tensor) -> bool:
    norm = torch.linalg.vector_norm
    return bool(norm(one - two) > COMPANY_TOLERANCE * norm(one))
