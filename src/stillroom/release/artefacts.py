"""What a bundle's artefacts say of themselves, read without any package that runs a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stillroom.data.picture_form import PictureForm
from stillroom.release.compact_parts import COMPACT, coded_parts
from stillroom.release.files import ARTEFACT, sha256
from stillroom.release.generator import NETWORK, SKETCH, check_sketch, states_of
from stillroom.release.tensor_file import Tensor, arrays_in, header

KINDS = ("classifier", "generator", "parameters")
"""What can be released."""
WEIGHTS, GRAPH = ".safetensors", ".onnx"
"""How the names of its files end."""


def metadata(**said: Any) -> str:
    """What a safetensors file says of the artefact beside its weights."""
    return json.dumps({name: value for name, value in said.items() if value is not None})


def artefacts_in(contents: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The certificate's `artefacts`: what each is, how large, and the hashes of its files.

    Raises:
        ValueError: a safetensors file does not say what it is, or not consistently; or a file
            belongs to no artefact.
    """
    files = {name for name in contents if ARTEFACT.fullmatch(name)}
    names = sorted(Path(file).stem for file in files if file.endswith(WEIGHTS))
    found = [_artefact(name, contents) for name in names]
    found.sort(key=lambda artefact: (artefact["kind"], artefact["name"]))
    if not found or {file for artefact in found for file in artefact["files"]} != files:
        raise ValueError("a file belongs to no artefact")
    return found


def main_file(artefact: Mapping[str, Any]) -> str:
    """The file that is used: the ONNX file where there is one."""
    return f"{artefact['name']}{_ends(artefact)[-1]}"


def _ends(said: Mapping[str, Any]) -> tuple[str, ...]:
    """How the names of an artefact's files end."""
    if said["kind"] not in KINDS:
        raise ValueError("an artefact of unknown kind")
    runs = said["kind"] == "classifier" or said.get("make") == NETWORK
    return (WEIGHTS, GRAPH) if runs else (WEIGHTS,)


def _artefact(name: str, contents: Mapping[str, bytes]) -> dict[str, Any]:
    content = contents[f"{name}{WEIGHTS}"]
    said, tensors = header(content)
    about, parameters = said["about"], said["parameters"]
    if not isinstance(about, str) or type(parameters) is not int:
        raise ValueError("a safetensors file does not say what it is")
    compact = said["kind"] == "parameters" and said.get("make") == COMPACT
    most = sum(tensor.numbers for tensor in tensors.values())
    if parameters < 1 or (parameters > most and not compact):
        raise ValueError("a safetensors file does not have the parameters it says")
    files = [f"{name}{end}" for end in _ends(said)]
    return {
        "name": name,
        "kind": said["kind"],
        "about": about,
        "parameters": parameters,
        "files": {
            file: {"sha256": sha256(contents[file]), "size": len(contents[file])} for file in files
        },
        **(_classifier(said) if said["kind"] == "classifier" else {}),
        **(_generator(said, content) if said["kind"] == "generator" else {}),
        **(_compact(said, tensors, contents) if compact else {}),
    }


def _classifier(said: Mapping[str, Any]) -> dict[str, Any]:
    shape, classes = shape_and_classes(said)
    columns = columns_of(said)
    return {
        "shape": list(shape),
        "classes": list(classes),
        **({} if columns is None else {"columns": list(columns)}),
        **({} if form_of(said) is None else {"pictures": said["pictures"]}),
    }


def _generator(said: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    shape, classes = shape_and_classes(said)
    states = states_of(said)
    if states["make"] == SKETCH:
        check_sketch(states, arrays_in(content), shape, classes)
    return {"shape": list(shape), "classes": list(classes), **states}


def _compact(
    said: Mapping[str, Any], tensors: Mapping[str, Tensor], contents: Mapping[str, bytes]
) -> dict[str, Any]:
    """Whose weights it holds. Its parameters are those of that model that are not pruned."""
    of, parts = str(said["of"]), coded_parts(said, tensors).values()
    model, _ = header(contents[f"{of}{WEIGHTS}"])
    pruned = sum(part.numbers - part.kept for part in parts)
    if model["kind"] != "classifier" or said["parameters"] != model["parameters"] - pruned:
        raise ValueError("a compact file is that of another model")
    return {"make": COMPACT, "of": of}


def shape_and_classes(said: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The shape of a record and the names of the classes, where a model is described.

    Raises:
        ValueError: they are missing or malformed.
    """
    shape: Any = said.get("shape")
    classes: Any = said.get("classes")
    sizes = isinstance(shape, list) and 1 <= len(shape) <= 8
    if not sizes or not all(type(size) is int and 0 < size < 2**31 for size in shape):
        raise ValueError("the shape of a record is missing")
    named = isinstance(classes, list) and len(classes) >= 2
    if not named or not all(isinstance(name, str) for name in classes):
        raise ValueError("the names of the classes are missing")
    return tuple(shape), tuple(classes)


def form_of(said: Mapping[str, Any]) -> PictureForm | None:
    """What pictures are brought to before the model sees them; None where they are not.

    Raises:
        ValueError: it is malformed, of rules that are not known here, or not of the model's shape.
    """
    if said.get("pictures") is None:
        return None
    form = PictureForm.from_json(said["pictures"])
    if not form.fits(shape_and_classes(said)[0]):
        raise ValueError("pictures are not brought to the shape of a record")
    return form


def columns_of(said: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of a record's features, where the model was trained on columns that have some.

    Raises:
        ValueError: they are malformed.
    """
    columns = said.get("columns")
    if columns is None:
        return None
    named = isinstance(columns, list) and said.get("shape") == [len(columns)]
    if not named or not all(isinstance(name, str) for name in columns):
        raise ValueError("the names of the columns are not one per feature")
    return tuple(columns)
