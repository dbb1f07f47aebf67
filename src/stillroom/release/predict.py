"""Use the model of a bundle, by ONNX Runtime alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.extras import needed
from stillroom.release.files import CERTIFICATE, ONNX
from stillroom.release.manifest import parsed, read_files

Labels = npt.NDArray[np.int64]
Logits = npt.NDArray[np.float32]

TOGETHER = 256
"""Records run at once: a network's inner layers can be a thousand times as large as a record."""


def predict(folder: Path, x: npt.NDArray[Any]) -> tuple[Labels, Logits]:
    """The labels and logits a bundle's model gives to records.

    Guarantee: the model is the one the manifest lists; prices are left to `verify_bundle`.

    Args:
        folder: the bundle.
        x: records of the model's shape.

    Raises:
        BadInput: there is no bundle, or the records have another shape.
        DoesNotVerify: a file of the bundle was changed.
    """
    _, contents = read_files(folder)
    model = parsed(contents[CERTIFICATE], folder / CERTIFICATE).get("model", {})
    shape = tuple(model.get("shape", ()))
    if x.shape[1:] != shape:
        raise BadInput(
            f"the records have shape {x.shape[1:]}, the model takes {shape}",
            where="input",
            why="other records would get labels that mean nothing",
            remedy="bring the records into the shape the model was trained on",
        )
    if not len(x) or not np.isfinite(x).all():
        raise BadInput(
            "a record holds a value that is not a finite number"
            if len(x)
            else "there is no record",
            where="input",
            why="a label would mean nothing",
            remedy="give records of finite numbers",
        )
    logits, labels = run_onnx(contents[ONNX], x.astype(np.float32))
    return labels, logits


def classes_of(folder: Path) -> tuple[str, ...]:
    """The names of the classes of a bundle's model.

    Raises:
        DoesNotVerify: a file of the bundle was changed.
    """
    _, contents = read_files(folder)
    model = parsed(contents[CERTIFICATE], folder / CERTIFICATE).get("model", {})
    return tuple(str(name) for name in model.get("classes", ()))


def read_records(name_or_path: str, classes: tuple[str, ...]) -> npt.NDArray[Any]:
    """Records of a data set by name, of a file or of a folder; a .npy file has no labels.

    Args:
        name_or_path: the data set, file or folder.
        classes: those of the model; what a file or folder says of its own is read as these.

    Raises:
        BadInput: nothing is found, or it cannot be read.
    """
    from stillroom.data.arrays import read_npy
    from stillroom.data.catalogue import KNOWN
    from stillroom.data.store import home, imported, load_parts

    path = Path(name_or_path)
    if path.suffix == ".npy" and path.is_file():
        x = read_npy(path)
        if x.ndim < 2 or x.dtype.kind not in "biuf":
            raise BadInput(
                "the file holds no array of numbers with one record a row",
                where=str(path),
                why="the model needs records",
                remedy="save the records with numpy.save",
            )
        return x
    # A data set by name knows its classes; only how many there are must agree.
    own = path.exists() and name_or_path not in (*KNOWN, *imported(home()))
    parts = load_parts(name_or_path, classes if own else None)
    return np.concatenate([part.x for part in parts.values()])


def run_onnx(content: bytes, x: npt.NDArray[np.float32]) -> tuple[Logits, Labels]:
    """Logits and labels by ONNX Runtime, on one thread.

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
