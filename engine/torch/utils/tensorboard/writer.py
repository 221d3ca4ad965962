"""The writer of event files, one for a run."""

from __future__ import annotations

import datetime
import importlib
import io
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import refusal
from stridescope.engine.torch._pillow import pillow
from stridescope.engine.torch.utils.tensorboard import messages
from stridescope.engine.torch.utils.tensorboard.records import EventFile

SMALLEST, LARGEST, GROWTH = 1e-12, 1e20, 1.1  # of the "tensorflow" bins, each this much wider than the one before
NOT_YET = (
    "add_hparams", "add_graph", "add_onnx_graph", "add_embedding", "add_pr_curve", "add_pr_curve_raw", "add_video",
    "add_audio", "add_mesh", "add_custom_scalars", "add_custom_scalars_multilinechart",
    "add_custom_scalars_marginchart", "add_image_with_boxes", "add_tensor",
)  # fmt: skip


class SummaryWriter:
    """Writes what a script adds into an event file in ``log_dir``.

    Without ``log_dir`` it is ``runs/<date>_<host><comment>``. After ``max_queue`` events or ``flush_secs`` seconds what
    was added is on the disk.
    """

    def __init__(
        self, log_dir: str | os.PathLike[str] | None = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            began = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{began}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = os.fspath(log_dir), purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self._files: dict[str, EventFile] = {}
        self._file()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> NoReturn:
        if name in NOT_YET:
            raise refusal("torch.utils.tensorboard.SummaryWriter", name)
        raise AttributeError(f"'SummaryWriter' object has no attribute '{name}'")

    def _file(self, folder: str | None = None) -> EventFile:
        folder = self.log_dir if folder is None else folder
        if folder not in self._files:
            self._files[folder] = EventFile(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        return self._files[folder]

    def get_logdir(self) -> str:
        """Where the event file is."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Add a number: of Python, of NumPy, or a tensor with one element. Raises AssertionError for more of them."""
        number = _number(scalar_value)
        shown = messages.tensor_scalar(tag, number, double_precision) if new_style else messages.scalar(tag, number)
        self._file().add(shown, _step(global_step), walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add several numbers that one chart shows; each has an event file of its own."""
        for tag, number in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._file(folder).add(messages.scalar(main_tag, _number(number)), _step(global_step), walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a text; TensorBoard shows it as Markdown."""
        self._file().add(messages.text(tag, text_string), _step(global_step), walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: str | Sequence[float] = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Add a distribution of values. ``bins`` are ends of bins, "tensorflow", or one of ``numpy.histogram``'s names.

        Raises ValueError where there are no values.
        """
        found = _histogram(_array(values).reshape(-1), _growing() if bins == "tensorflow" else bins, max_bins)
        self._file().add(messages.histogram(tag, *found), _step(global_step), walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float,
        bucket_limits: Sequence[float], bucket_counts: Sequence[float], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a distribution that was counted already. Raises ValueError unless there is a count for each limit."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        facts = (min, max, num, sum, sum_squares)
        counted = messages.histogram(tag, facts, list(map(float, bucket_limits)), list(map(float, bucket_counts)))
        self._file().add(counted, _step(global_step), walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Add a picture: uint8 from 0 to 255, or floats from 0 to 1; ``dataformats`` names the dims."""
        self._file().add(_picture(tag, _array(img_tensor), dataformats), _step(global_step), walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Add several pictures as one grid."""
        pictures = np.stack([_array(item) for item in img_tensor]) if isinstance(img_tensor, list) else img_tensor
        self._file().add(_picture(tag, _array(pictures), dataformats), _step(global_step), walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Add a figure of Matplotlib, or several; with ``close`` they are closed afterwards."""
        drawn = [_drawn(one, close) for one in (figure if isinstance(figure, list) else [figure])]
        self.add_images(tag, np.stack(drawn), global_step, walltime, dataformats="NHWC")

    def flush(self) -> None:
        """Put everything on the disk."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Put everything on the disk; adding more opens new event files."""
        for file in self._files.values():
            file.close()
        self._files.clear()


def _step(step: Any) -> int | None:
    return None if step is None else int(step)


def _array(values: Any) -> np.ndarray[Any, Any]:
    """Values as an array; raises NotImplementedError for what is neither a number nor an array nor a tensor."""
    if isinstance(values, np.ndarray):
        return values
    if np.isscalar(values):
        return np.array([values])
    if isinstance(values, Tensor):
        detached = values.detach().cpu()
        return np.asarray((detached.half() if detached.dtype.name == "bfloat16" else detached).numpy())
    raise NotImplementedError(f"Got {type(values)}, but numpy array or torch tensor are expected.")


def _number(value: Any) -> float:
    array = _array(value).squeeze()
    if array.ndim:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). "
            f"            Was given size: {array.size} and {array.ndim} dimensions."
        )
    return float(array)


def _growing() -> list[float]:
    limits, limit = [], SMALLEST
    while limit < LARGEST:
        limits.append(limit)
        limit *= GROWTH
    return [*(-limit for limit in reversed(limits)), 0.0, *limits]


def _histogram(values: Any, bins: Any, most: int | None) -> tuple[list[float], list[float], list[float]]:
    """Moments, right ends of the bins and their counts, without the empty bins at both ends but the one on the left."""
    if not values.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=bins)
    if most is not None and len(counts) > most:
        merged = len(counts) // most
        starts = np.arange(0, len(counts), merged)
        counts, limits = np.add.reduceat(counts, starts), np.append(limits[:-1:merged], limits[-1])
    filled = np.flatnonzero(counts)
    first, last = (int(filled[0]), int(filled[-1])) if filled.size else (0, len(counts) - 1)
    shown = counts[first : last + 1].astype(float).tolist()
    left = float(counts[first - 1]) if first else 0.0
    values = values.astype(np.float64)
    moments = [float(m) for m in (values.min(), values.max(), values.size, values.sum(), values.dot(values))]
    return moments, limits[first : last + 2].astype(float).tolist(), [left, *shown]


def _picture(tag: str, array: Any, dims: str) -> bytes:
    array = _height_width_channels(array, dims.upper())
    whole = array if array.dtype == np.uint8 else (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    packed = io.BytesIO()
    pillow().fromarray(np.ascontiguousarray(whole)).save(packed, format="PNG")
    height, width, channels = whole.shape
    return messages.image(tag, height, width, channels, packed.getvalue())


def _height_width_channels(array: Any, dims: str) -> Any:
    """A picture (or a batch of them, side by side) with its dims in this order, and at least three channels."""
    if len(set(dims)) != len(dims):
        raise AssertionError(f"You can not use the same dimension shorthand twice.             input_format: {dims}")
    if array.ndim != len(dims):
        raise AssertionError(
            f"size of input tensor and input format are different.         tensor shape: {array.shape}, "
            f"input_format: {dims}"
        )
    if len(dims) == 4:
        return _grid(array.transpose([dims.index(d) for d in "NHWC"]))
    if len(dims) == 2:
        return np.repeat(array.transpose([dims.index(d) for d in "HW"])[..., None], 3, axis=2)
    picture = array.transpose([dims.index(d) for d in "HWC"])
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture


def _grid(pictures: Any, across: int = 8) -> Any:
    """Pictures in rows of at most eight; places without one are black."""
    if pictures.shape[3] == 1:
        pictures = np.repeat(pictures, 3, axis=3)
    count, height, width, channels = pictures.shape
    columns = min(count, across)
    rows = -(-count // columns)
    grid = np.zeros((rows * columns, height, width, channels), pictures.dtype)
    grid[:count] = pictures
    return grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(rows * height, -1, channels)


def _drawn(figure: Any, close: bool) -> Any:
    # The script has Matplotlib, for it has a figure; nothing here needs it.
    pyplot, agg = (importlib.import_module(f"matplotlib.{name}") for name in ("pyplot", "backends.backend_agg"))
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    if close:
        pyplot.close(figure)
    return pixels


SummaryWriter.__module__ = "torch.utils.tensorboard.writer"
