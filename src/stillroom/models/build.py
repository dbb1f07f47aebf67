"""A model by name, from the zoo or from one's own module, with weights that cannot run code."""

from __future__ import annotations

import importlib
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.models.zoo import ZOO
from stillroom.randomness import seeded_torch


def build(
    spec: str, shape: tuple[int, ...], classes: int, *, seed: int, weights: Path | None = None
) -> nn.Module:
    """A new model, the same for the same seed, or one with given weights.

    Assumes: a module of one's own is trusted like any other installed code; importing it runs it.

    Args:
        spec: a name in the zoo, or "package.module:callable"; it is called with shape and classes.
        shape: of one record as the model is given it, such as (channels, height, width).
        classes: how many classes there are.
        seed: for the initial weights.
        weights: a .safetensors file, or a state dict saved by torch.

    Raises:
        BadInput: there is no such model, it cannot be made, or the weights are not its own.

    >>> build("linear", (1, 8, 8), 10, seed=0)[1]
    Linear(in_features=64, out_features=10, bias=True)
    """
    wanted = "the shape of a record and the number of classes"
    model = made(spec, ZOO, tuple(shape), classes, seed=seed, wanted=wanted)
    if weights is not None:
        _load(model, weights)
    return model


def made(
    spec: str, zoo: Mapping[str, Callable[..., Any]], *arguments: Any, seed: int, wanted: str
) -> nn.Module:
    """A new module, the same for the same seed.

    Args:
        spec: a name in the zoo, or "package.module:callable".
        zoo: what can be named.
        arguments: what the callable is called with.
        seed: for the initial weights.
        wanted: the arguments in words.

    Raises:
        BadInput: there is no such module, or it cannot be made.
    """
    make = _own(spec) if ":" in spec else _from_zoo(spec, zoo)
    try:
        with seeded_torch(seed, "model", spec):
            model = make(*arguments)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(
            f"the model could not be made: {_said(error)}",
            where=spec,
            why="a recipe must fix its network",
            remedy=f"make it callable with {wanted}",
        ) from error
    if not isinstance(model, nn.Module):
        raise BadInput(
            f"what was made is no torch module but a {type(model).__name__}",
            where=spec,
            why="only a torch module can be trained and written down",
            remedy="let the callable return a torch.nn.Module",
        )
    return model


def _from_zoo(name: str, zoo: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if name not in zoo:
        raise BadInput(
            f"there is no model {name!r}",
            where="model",
            why="a recipe must fix its network",
            remedy=f"use one of: {', '.join(zoo)}; or your own as package.module:callable",
        )
    return zoo[name]


def _own(spec: str) -> Callable[..., Any]:
    module_name, _, name = spec.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise BadInput(
            f"the module {module_name!r} cannot be imported: {_said(error)}",
            where=spec,
            why="a recipe must fix its network",
            remedy="install it, or put its folder on PYTHONPATH",
        ) from error
    made: Any = module
    for part in name.split("."):
        made = getattr(made, part, None)
    if not callable(made):
        raise BadInput(
            f"the module {module_name!r} has no callable {name!r}",
            where=spec,
            why="a recipe must fix its network",
            remedy="name a class or function of it, as package.module:callable",
        )
    return made  # type: ignore[no-any-return]


def _load(model: nn.Module, path: Path) -> None:
    """Put weights into the model: all of them, and nothing else."""
    given = _read(path)
    wanted = model.state_dict()
    flaws = {
        "missing": sorted(wanted.keys() - given.keys()),
        "unexpected": sorted(given.keys() - wanted.keys()),
        "of another shape": [
            f"{name} {tuple(given[name].shape)} instead of {tuple(tensor.shape)}"
            for name, tensor in wanted.items()
            if name in given and given[name].shape != tensor.shape
        ],
        "not finite": [
            name
            for name, tensor in given.items()
            if tensor.is_floating_point() and not torch.isfinite(tensor).all()
        ],
    }
    told = [f"{flaw}: {_listed(names)}" for flaw, names in flaws.items() if names]
    if told:
        raise BadInput(
            f"the weights are not those of this model; {'; '.join(told)}",
            where=str(path),
            why="a model with some weights missing or left over is not the one that was saved",
            remedy="name the model the weights were saved from",
        )
    model.load_state_dict(given)


def _read(path: Path) -> dict[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            given: Any = load_file(path)
        else:
            with warnings.catch_warnings():
                # Only remarks on foreign pickles; what is wrong with them, torch raises.
                warnings.simplefilter("ignore")
                given = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BadInput(
            "the file holds more than weights, or is damaged; nothing in it was run",
            where=str(path),
            why="a pickle can carry code that runs as soon as it is read",
            remedy="save model.state_dict(), best as .safetensors",
        ) from error
    except Exception as error:
        raise BadInput(
            f"the weights cannot be read: {_said(error)}",
            where=str(path),
            why="training would start from other weights than the recipe says",
            remedy="give a .safetensors file, or a state dict saved by torch",
        ) from error
    if not isinstance(given, dict) or not all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in given.items()
    ):
        raise BadInput(
            "the file holds no plain state dict",
            where=str(path),
            why="only tensors by name can be put into a model",
            remedy="save model.state_dict() itself, not a checkpoint around it",
        )
    return dict(given)


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")


def _said(error: Exception) -> str:
    """The first line of an error, for another error's sentence."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
