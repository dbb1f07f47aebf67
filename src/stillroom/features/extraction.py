"""Features by a network that is fixed beforehand: a scattering transform, or a public backbone.

The network becomes an ONNX graph that is run on one record at a time. In a batch, the last bits of
a record's features depend on its place (where its numbers lie in memory decides how sums are
vectorised), so one record more or less would move others; alone, it cannot. Some records are
computed twice, and a difference is an error.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stillroom.engine import CORES, Engine, WorkItem, run_all
from stillroom.errors import BadInput, NumericalDoubt
from stillroom.features.projection import GRID_BITS, Grid
from stillroom.features.scattering import Scattering
from stillroom.models import AsPictures

CHUNK = 2048
"""Records per unit of the engine: what is finished when the work is cut off."""
_CHECKED = 64
BLANK = {"scattering": 1.0}
"""Features shorter than this are rounding and must not be blown up; those of a picture with any
contrast have norm 60. A backbone's are never blank."""
_SMALLEST = 1e-6


class _Table(nn.Module):
    """Records as they are stored to feature tables: (N, rows, columns)."""

    def __init__(self, pictures: AsPictures, inner: nn.Module, size: int | None) -> None:
        super().__init__()
        self.pictures, self.inner, self._size = pictures, inner, size

    def forward(self, x: Tensor) -> Tensor:
        seen = self.pictures(x)
        if self._size is not None:
            seen = seen.expand(-1, 3, -1, -1) if seen.shape[1] == 1 else seen
            seen = F.interpolate(
                seen, size=(self._size, self._size), mode="bicubic", align_corners=False
            )
        table: Tensor = self.inner(seen)
        return table.flatten(2) if self._size is None and table.ndim > 2 else table[:, :, None]


@dataclass(frozen=True)
class Extractor:
    """A fixed network's features of pictures.

    Guarantee: a record's features depend on that record and public constants alone; checked.

    Args:
        name: "scattering", or a public backbone as "package.module:callable". It is called without
            arguments and returns a module from (N, 3, size, size) in [0, 1] to (N, features).
        shape: of one record as stored.
        full_scale: the largest value a feature of a record can have.
        size: the side a backbone's pictures are brought to.
        own: with the name "auxiliary": a network trained on public records, from pictures to
            features.

    Raises:
        BadInput: the backbone cannot be imported, or does not fit the records.
    """

    name: str
    shape: tuple[int, ...]
    full_scale: float = 255.0
    size: int | None = None
    own: nn.Module | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.own is not None:
            return
        fits = len(self.shape) in (2, 3) and min(self.shape[:2]) >= 12
        if not fits or (len(self.shape) == 3 and self.shape[2] not in (1, 3)):
            raise BadInput(
                f"{self.name} needs pictures of at least 12x12, got records of {self.shape}",
                where="features.name",
                why="other records have no such features",
                remedy='write name = "pixels" under [features]',
            )
        if self.name != "scattering" and ":" not in self.name:
            raise BadInput(
                f"there are no features {self.name!r} by a network",
                where="features.name",
                why="features must be fixed before anything is drawn",
                remedy="use scattering, or a public backbone as package.module:callable",
            )
        if (":" in self.name) != (self.size is not None):
            raise BadInput(
                "a backbone needs a size, and scattering has none",
                where="features.size",
                why="it is the side of the pictures the backbone was trained on",
                remedy="give size = 224, or whatever the backbone expects",
            )

    @cached_property
    def network(self) -> nn.Module:
        """The module from raw records to feature tables."""
        pictures = AsPictures(self.shape, self.full_scale)
        inner = self.own
        if inner is None:
            inner = _backbone(self.name) if self.size is not None else Scattering(pictures.given[0])
        return _Table(pictures, inner, self.size).eval().requires_grad_(False)

    @cached_property
    def layout(self) -> tuple[int, int]:
        """Rows and columns of a record's feature table."""
        with torch.no_grad():
            try:
                table = self.network(torch.zeros(2, *self.shape))
            except BadInput:
                raise
            except Exception as error:
                raise BadInput(
                    f"the features cannot be computed ({type(error).__name__})",
                    where=self.name,
                    why="records of this shape need them before anything is drawn",
                    remedy="choose another size, or other features",
                ) from error
        if table.ndim != 3 or len(table) != 2:
            raise BadInput(
                "the backbone gives no row of features per picture",
                where=self.name,
                why="a linear layer needs one",
                remedy="let it return (N, features), pooled",
            )
        return int(table.shape[1]), int(table.shape[2])

    @property
    def shortest(self) -> float:
        """The norm below which features are left short."""
        return BLANK.get(self.name, _SMALLEST)

    @cached_property
    def graph(self) -> bytes:
        """The network as ONNX, for one record.

        Raises:
            BadInput: the backbone has a part that ONNX cannot say.
        """
        try:
            return _graph(self.network, self.shape)
        except BadInput:
            raise
        except Exception as error:
            raise BadInput(
                f"the features cannot be written as ONNX ({type(error).__name__})",
                where=self.name,
                why="they are computed, and handed over, without the backbone's own code",
                remedy="build the backbone of layers that torch.onnx.export knows",
            ) from error

    @cached_property
    def digest(self) -> str:
        """Of everything the features depend on but the records."""
        # The graph and not the weights alone: a backbone whose code was changed is another one.
        stamp = hashlib.sha256(f"{self.shortest!r} {version('onnxruntime')} ".encode())
        stamp.update(self.graph)
        return stamp.hexdigest()

    def grid(
        self,
        x: npt.NDArray[Any],
        *,
        engine: Engine = CORES,
        cache: Path | None = None,
        on_done: Callable[[int, int], None] = lambda done, total: None,
    ) -> Grid:
        """The features of records, each scaled to norm 2^13 and rounded to integers.

        Args:
            x: the records.
            engine: where to compute.
            cache: a folder that keeps what is finished; it holds features of sensitive records.
            on_done: told how many parts are done.

        Raises:
            NumericalDoubt: the same record has different features when computed again.
        """
        width = self.layout[0] * self.layout[1]
        if not len(x):
            return np.zeros((0, width), dtype=np.int16)
        graph = self.graph
        parts = [x[start : start + CHUNK] for start in range(0, len(x), CHUNK)]
        units = [
            WorkItem(f"part-{i:05d}", (graph, self.shortest, part)) for i, part in enumerate(parts)
        ]
        stamp = hashlib.sha256(self.digest.encode() + np.ascontiguousarray(x).tobytes())
        key = stamp.hexdigest()
        folder = None if cache is None else cache / key[:32]
        done = run_all(_extract, units, engine=engine, folder=folder, key=key, on_done=on_done)
        grid = np.concatenate([part["grid"] for part in done])
        some = np.arange(0, len(x), max(1, len(x) // _CHECKED))[::-1]
        if not np.array_equal(_extract((graph, self.shortest, x[some]))["grid"], grid[some]):
            raise NumericalDoubt(
                "a record's features differ when they are computed again",
                where=self.name,
                why="one record could then move the rows of others, which nobody paid for",
                remedy="report it, with the processor and the version of onnxruntime",
            )
        return grid


def _backbone(path: str) -> nn.Module:
    module_name, _, name = path.partition(":")
    try:
        made = getattr(importlib.import_module(module_name), name)()
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(
            f"the backbone cannot be made ({type(error).__name__}: {error})",
            where=path,
            why="the features come from it",
            remedy="install its package, or mend the path `package.module:callable`",
        ) from error
    if not isinstance(made, nn.Module):
        raise BadInput(
            f"the backbone is no torch module but a {type(made).__name__}",
            where=path,
            why="the features come from it",
            remedy="let the callable return a torch.nn.Module",
        )
    return made


def _graph(network: nn.Module, shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        # The exporter deprecates parts of itself.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (torch.zeros(1, *shape),),
            buffer,  # type: ignore[arg-type]
            input_names=["x"],
            output_names=["table"],
            opset_version=17,
            dynamo=False,
        )
    return buffer.getvalue()


@lru_cache(maxsize=2)
def _session(graph: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _extract(payload: tuple[bytes, float, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    graph, shortest, x = payload
    session = _session(graph)
    with np.errstate(all="ignore"):  # a record too large for single precision is blank, in silence
        parts = [
            _on_grid(session.run(None, {"x": own[None].astype(np.float32)})[0], shortest)
            for own in x
        ]
    return {"grid": np.concatenate(parts)}


def _on_grid(table: npt.NDArray[np.float32], shortest: float) -> Grid:
    """Norm 2^13 or less but for rounding; features that are no numbers are nothing."""
    features = table.reshape(1, -1).astype(np.float64)
    finite = features if np.isfinite(features).all() else np.zeros_like(features)
    length = np.sqrt((finite * finite).sum(axis=1, keepdims=True))
    scale = (1 << GRID_BITS) / np.maximum(length, shortest)
    grid: Grid = np.rint(finite * scale).astype(np.int16)
    return grid
