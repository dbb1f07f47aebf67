"""Use the model of a bundle, by ONNX Runtime alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.extras import needed
from stillroom.release.artefacts import columns_of, main_file, shape_and_classes
from stillroom.release.files import CERTIFICATE, ONNX
from stillroom.release.manifest import does_not, parsed, read_files
from stillroom.release.sections.base import classifier_in
from stillroom.release.strangers_model import TOGETHER, Labels, Logits, StrangersModel

LARGEST_INPUT = 1 << 29
"""Bytes of a .npy file, which is read as a whole."""


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
    described, content = model_of(folder)
    if x.shape[1:] != described.shape:
        raise BadInput(
            f"the records have shape {x.shape[1:]}, the model takes {described.shape}",
            where="input",
            why="other records would get labels that mean nothing",
            remedy="bring the records into the shape the model was trained on",
        )
    if not len(x):
        raise _no_records("there is no record", "give at least one record")
    with StrangersModel(content, folder / described.file, len(described.classes)) as model:
        answers = [
            model.run(_finite(x[start : start + TOGETHER])) for start in range(0, len(x), TOGETHER)
        ]
    logits, labels = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    return labels, logits


@dataclass(frozen=True)
class Described:
    """What a bundle's certificate says of its model.

    Args:
        shape: of one record.
        classes: their names.
        columns: the names of a record's features, where it was trained on columns with names.
        file: its ONNX file.
    """

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    columns: tuple[str, ...] | None
    file: str = ONNX


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
        return Described(*shape_and_classes(said), columns_of(said), file), contents[file]
    except (LookupError, TypeError, ValueError) as error:
        raise does_not(place, f"certificate.json does not describe its model: {error}") from None


def read_records(name_or_path: str, model: Described) -> npt.NDArray[Any]:
    """Records of a data set by name, of a file or of a folder; a .npy file has no labels.

    Args:
        name_or_path: the data set, file or folder.
        model: what they are for; what a file or folder says of its own classes is read as its.

    Raises:
        BadInput: nothing is found, it cannot be read, or its columns are others, or in another
            order, than those the model was trained on.
    """
    from stillroom.data.catalogue import KNOWN
    from stillroom.data.store import home, imported, load_parts

    path = Path(name_or_path)
    if path.suffix == ".npy" and path.is_file():
        return _read_npy(path)
    # A data set by name knows its classes; only how many there are must agree.
    own = path.exists() and name_or_path not in (*KNOWN, *imported(home()))
    parts = load_parts(name_or_path, model.classes if own else None)
    for part in parts.values():
        if None not in (part.columns, model.columns) and part.columns != model.columns:
            raise BadInput(
                "the columns are others, or stand in another order, than those the model was "
                "trained on",
                where=name_or_path,
                why="every number would be taken for another feature, and the labels mean nothing",
                remedy="order the columns as `columns` in the bundle's certificate.json",
            )
    return np.concatenate([part.x for part in parts.values()])


def _read_npy(path: Path) -> npt.NDArray[Any]:
    try:
        # Mapped before it is read: a header may promise more than any memory holds.
        mapped = np.lib.format.open_memmap(path, mode="r")
        proper = mapped.ndim >= 2 and mapped.dtype.kind in "biuf" and mapped.nbytes <= LARGEST_INPUT
        x = np.array(mapped) if proper else None
    except Exception:
        # On a damaged header numpy fails in a dozen ways, from EOFError to RecursionError.
        x = None
    if x is None:
        raise _no_records(
            f"the file holds no array of numbers with one record per row, below "
            f"{LARGEST_INPUT >> 20} MiB",
            "save the records with numpy.save, in several files if there are many",
            str(path),
        )
    return x


def _finite(x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        records = np.ascontiguousarray(x, dtype=np.float32)
    if not np.isfinite(records).all():
        raise _no_records(
            "a record holds a value that is not a finite number", "give records of finite numbers"
        )
    return records


def _no_records(what: str, remedy: str, where: str = "input") -> BadInput:
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
