"""Use the model of a bundle, by ONNX Runtime alone."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data.picture_form import PictureForm
from stillroom.data.schema import Schema
from stillroom.errors import BadInput
from stillroom.extras import needed
from stillroom.release.artefacts import (
    columns_of,
    form_of,
    main_file,
    schema_of,
    shape_and_classes,
)
from stillroom.release.files import CERTIFICATE, ONNX, RECIPE
from stillroom.release.manifest import does_not, parsed, read_files
from stillroom.release.sections.base import classifier_in
from stillroom.release.strangers_model import TOGETHER, Labels, Logits, StrangersModel


def predict(folder: Path, x: npt.NDArray[Any]) -> tuple[Labels, Logits]:
    """The labels and logits a bundle's model gives to records.

    Guarantee: the model is the one the manifest lists; prices are left to `verify_bundle`. It is
    run in a process of its own, with a limit on its time and its memory.

    Args:
        folder: the bundle.
        x: records of the model's shape.

    Raises:
        BadInput: there is no bundle, or the records have another shape, or have no finite scores.
        DoesNotVerify: a file of the bundle was changed, or its model is none that is run here.
    """
    parts = (x[start : start + TOGETHER] for start in range(0, max(1, len(x)), TOGETHER))
    answers = list(answered(folder, parts))
    labels, logits = (np.concatenate(some) for some in zip(*answers, strict=True))
    return labels, logits


def answered(folder: Path, parts: Iterable[npt.NDArray[Any]]) -> Iterator[tuple[Labels, Logits]]:
    """Labels and logits of some records after the other; all else as `predict`.

    Args:
        folder: the bundle.
        parts: some records of the model's shape at a time, at most `TOGETHER`.
    """
    described, content = model_of(folder)
    with StrangersModel(content, folder / described.file, len(described.classes)) as model:
        for x in parts:
            refuse_other_shape(x, described)
            if not len(x):
                raise no_records("there is no record", "give at least one record")
            logits, labels = model.run(_finite(x))
            yield labels, logits


def probabilities(logits: Logits) -> npt.NDArray[np.float64]:
    """Of the classes, as the model has them: it may well be more sure than it should be.

    >>> probabilities(np.array([[0.0, 0.0]], dtype=np.float32)).tolist()
    [[0.5, 0.5]]
    """
    raised = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    shares: npt.NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True)
class Described:
    """What a bundle's certificate says of its model.

    Args:
        shape: of one record.
        classes: their names.
        columns: the names of a record's features, where it was trained on columns with names.
        file: its ONNX file.
        id_column: the column of record ids that its recipe names.
        form: what pictures are brought to before it sees them.
        schema: of the table it was trained on, if it was.
    """

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    columns: tuple[str, ...] | None
    file: str = ONNX
    id_column: str | None = None
    form: PictureForm | None = None
    schema: Schema | None = None


def model_of(folder: Path) -> tuple[Described, bytes]:
    """The description of a bundle's model, and its ONNX file.

    Raises:
        BadInput: there is no such folder.
        DoesNotVerify: a file of the bundle was changed, or it does not describe its model.
    """
    _, contents = read_files(folder)
    place = folder / CERTIFICATE
    certificate = parsed(contents[CERTIFICATE], place)
    try:
        # Versions 3 and 4 call it `model`.
        said = certificate.get("model") or classifier_in(certificate["artefacts"])
        file = main_file({"name": "model", "kind": "classifier", **said})
        ids = _id_column(contents[RECIPE])
        about = (*shape_and_classes(said), columns_of(said), file, ids)
        return Described(*about, form_of(said), schema_of(said)), contents[file]
    except (LookupError, TypeError, ValueError) as error:
        raise does_not(place, f"certificate.json does not describe its model: {error}") from None


def _id_column(recipe: bytes) -> str | None:
    """What the bundle's recipe calls the column of ids; a stranger's recipe may be anything."""
    try:
        found = tomllib.loads(recipe.decode())["data"]["id_column"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def _finite(x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        records = np.ascontiguousarray(x, dtype=np.float32)
    if not np.isfinite(records).all():
        raise no_records(
            "a record holds a value that is not a finite number", "give records of finite numbers"
        )
    return records


def refuse_other_shape(x: npt.NDArray[Any], described: Described, where: str = "input") -> None:
    """Refuse records that are not of the model's shape.

    Raises:
        BadInput: they are not.
    """
    if x.shape[1:] != described.shape:
        raise BadInput(
            f"the records have shape {x.shape[1:]}, the model takes {described.shape}",
            where=where,
            why="other records would get labels that mean nothing",
            remedy="bring the records into the shape the model was trained on",
        )


def no_records(what: str, remedy: str, where: str = "input") -> BadInput:
    """The refusal of what is no record."""
    return BadInput(what, where=where, why="a label would mean nothing", remedy=remedy)


def run_onnx(content: bytes, x: npt.NDArray[np.float32]) -> tuple[Logits, Labels]:
    """Logits and labels of one's own model, by ONNX Runtime, on one thread.

    Raises:
        BadInput: ONNX Runtime is not installed, or cannot be loaded.
    """
    session = session_of(content)
    answers = [
        session.run(["logits", "label"], {"x": x[start : start + TOGETHER]})
        for start in range(0, len(x), TOGETHER)
    ]
    logits, labels = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    return logits, labels


def session_of(content: bytes) -> Any:
    """An ONNX file, ready to run on one thread.

    Raises:
        BadInput: ONNX Runtime is not installed, or cannot be loaded.
    """
    with needed("onnxruntime", where="predict", why="ONNX Runtime runs the bundle's model"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
