"""The storage picture as data: logical grids, address formula, storage strip, lanes of views, other storages."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import math

import numpy as np

from stridescope.app.index import index_of
from stridescope.app.items.marked import Marked
from stridescope.app.moment import Moment
from stridescope.app.origins import expression_of
from stridescope.app.selection import home_of, is_gradient, tensor_name, views_of
from stridescope.app.text import tr
from stridescope.app.values import elements_of, list_text, numpy_dtype, shape_text
from stridescope.engine.recording.model import State, StorageState, TensorState

OTHER_STORAGES = 8
MOST_CELLS = 512  # rows and columns of a grid: more than pixels to draw them
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_INDEX_NAMES = "ijklmnop"


@dataclasses.dataclass(frozen=True)
class Grid:
    """One tensor as people think of it: rows and columns, each cell an element of the storage.

    More than two dims show one plane; ``lead`` are the indices of the dims before the last two. Of a plane that is
    larger than any screen, ``elements`` and ``lit`` hold every ``step``-th row and column.
    """

    tensor: int
    storage: int
    title: str
    facts: str
    shape: tuple[int, int]
    step: tuple[int, int]
    elements: np.ndarray
    lit: np.ndarray
    lead: tuple[int, ...]
    rank: int
    cell: tuple[int, int] | None

    def index(self, row: int, column: int) -> tuple[int, ...]:
        """Return the tensor's index of the cell at (row, column)."""
        return (*self.lead, row, column)[-self.rank :] if self.rank else ()


@dataclasses.dataclass(frozen=True)
class Strip:
    """A storage as it is: one element after the other, and which of them the selected tensor reads."""

    storage: int
    title: str
    facts: str
    count: int
    values: np.ndarray | None
    lit: Marked
    summary: str


@dataclasses.dataclass(frozen=True)
class Lane:
    """Which elements one view reads; ``repeated`` when it reads some more than once."""

    tensor: int
    name: str
    reads: Marked
    repeated: bool
    selected: bool


@dataclasses.dataclass(frozen=True)
class Address:
    """How an index becomes an element: ``c[1, 1]``, ``1 + 1·1 + 1·8 = 10``."""

    element: int
    text: str
    formula: str
    legend: str
    note: str
    warning: bool


@dataclasses.dataclass(frozen=True)
class Arc:
    """A stride as a jump along the strip."""

    start: int
    end: int
    label: str


@dataclasses.dataclass(frozen=True)
class StoragePicture:
    """Everything the storage panel draws."""

    grids: tuple[Grid, ...]
    address: Address | None
    strip: Strip
    arcs: tuple[Arc, ...]
    lanes: tuple[Lane, ...]
    others: tuple[Strip, ...]
    hidden: int

    def words(self) -> str:
        """Return the picture in words, for a screen reader."""
        parts = [f"{g.title} {g.facts}" for g in self.grids] + [f"{self.strip.title}: {self.strip.facts}"]
        if self.address:
            parts.append(f"{self.address.text}: {self.address.formula}; {self.address.note}")
        return ". ".join(parts)


def picture(moment: Moment) -> StoragePicture | None:
    """Return the picture of the selected tensor's storage, or None while no tensor is alive."""
    state, selection = moment.state, moment.selection
    if selection.tensor not in state.tensors:
        return None
    tensor = state.tensors[selection.tensor]
    storage = state.storages[tensor.storage]
    index = _cell(tensor, selection.cell, selection.element)
    strip = _strip(state, storage, tensor, _reads(tensor, _count(storage, tensor)))
    return StoragePicture(
        grids=_grids(moment, tensor, index),
        address=_address(state, tensor, index),
        strip=strip,
        arcs=_arcs(tensor, strip.count),
        lanes=_lanes(state, storage, tensor),
        others=tuple(_other(state, other) for other in _others(state, storage)),
        hidden=max(0, len(state.storages) - 1 - OTHER_STORAGES),
    )


def _others(state: State, storage: StorageState) -> list[StorageState]:
    """Return the first other storages: those that have names, then the rest, each by age."""
    named = index_of(state).named_storages
    found = heapq.nsmallest(OTHER_STORAGES, (id for id in named if id != storage.id and id in state.storages))
    nameless = (id for id in state.storages if id != storage.id and id not in named)
    return [state.storages[id] for id in found + heapq.nsmallest(OTHER_STORAGES - len(found), nameless)]


def changed(before: Strip, after: Strip) -> np.ndarray:
    """Return which elements hold other bytes in ``after``: what a step, forward or back, wrote."""
    old, new = before.values, after.values
    if before.storage != after.storage or old is None or new is None or old.dtype != new.dtype or len(old) != len(new):
        return np.zeros(0, np.int64)
    if not len(new):
        return np.zeros(0, np.int64)
    sides = (np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1) for values in (old, new))
    return np.flatnonzero((next(sides) != next(sides)).any(axis=1))


def element_grid(sizes: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    """Return, in the tensor's own shape, the storage element that each index reads."""
    result = np.full((), offset, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        result = np.add.outer(result, np.arange(size, dtype=np.int64) * stride)
    return result


def _reads(tensor: TensorState, count: int) -> Marked:
    return _marked(tensor.sizes, tensor.strides, tensor.offset, count)


def _reads_as(tensor: TensorState, storage: StorageState, itemsize: int) -> Marked:
    """Return what the tensor reads, in elements of another size: views of one storage may differ in dtype."""
    own = numpy_dtype(tensor.dtype).itemsize
    reads = _reads(tensor, _count(storage, tensor))
    if own == itemsize:
        return reads
    mask = np.zeros(storage.nbytes // itemsize * itemsize, bool)
    covered = np.repeat(reads.mask, own)[: len(mask)]
    mask[: len(covered)] = covered
    return Marked(mask.reshape(-1, itemsize).any(axis=1))


@functools.lru_cache(maxsize=24)
def _marked(sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, count: int) -> Marked:
    """Return the elements that a layout reads; remembered, for a million of them takes a while."""
    mask = np.zeros(count, bool)
    cells = element_grid(sizes, strides, offset).ravel()
    mask[cells[(cells >= 0) & (cells < count)]] = True
    return Marked(mask)


def contiguity(tensor: TensorState) -> tuple[str, bool]:
    """Return the sentence about contiguity, and whether it is a warning."""
    expected = 1
    verdict = ""
    for dim in reversed(range(len(tensor.sizes))):
        size, stride = tensor.sizes[dim], tensor.strides[dim]
        if size > 1 and stride == 0:
            return tr("expanded: stride({dim}) = 0 repeats the same bytes", dim=dim), True
        if size > 1 and stride != expected:
            verdict = tr(
                "not contiguous: stride({dim}) = {stride}, not {expected}", dim=dim, stride=stride, expected=expected
            )
        expected *= size
    return (verdict, True) if verdict else (tr("contiguous"), False)


def _count(storage: StorageState, tensor: TensorState) -> int:
    return storage.nbytes // numpy_dtype(tensor.dtype).itemsize


def _cell(tensor: TensorState, cell: tuple[int, ...] | None, element: int) -> tuple[int, ...] | None:
    """Return the index to explain: the selected one where it fits, else the second of every dim."""
    if 0 in tensor.sizes:
        return None
    if (
        cell is not None
        and len(cell) == len(tensor.sizes)
        and all(i < s for i, s in zip(cell, tensor.sizes, strict=True))
    ):
        return cell
    if element >= 0:
        found = np.argwhere(element_grid(tensor.sizes, tensor.strides, tensor.offset) == element)
        if len(found):
            return tuple(int(i) for i in found[0])
    return tuple(min(1, size - 1) for size in tensor.sizes)


def _grids(moment: Moment, tensor: TensorState, index: tuple[int, ...] | None) -> tuple[Grid, ...]:
    """Return the grid of the storage's first owner, lit where the tensor reads it, and the tensor's own."""
    home = home_of(moment.state, tensor)
    own = _grid(moment, tensor, tensor, index)
    return (_grid(moment, home, tensor, None), own) if home is not None else (own,)


def _grid(moment: Moment, shown: TensorState, selected: TensorState, index: tuple[int, ...] | None) -> Grid:
    lead = tuple(index[:-2]) if index else (0,) * max(0, len(shown.sizes) - 2)
    shape, step, plane = _plane(shown, lead)
    storage = moment.state.storages[shown.storage]
    if shown.storage == selected.storage:
        mask = _reads_as(selected, storage, numpy_dtype(shown.dtype).itemsize).mask
        lit = mask[plane.clip(0, max(0, len(mask) - 1))] if len(mask) else np.zeros(plane.shape, bool)
    else:
        lit = np.zeros(plane.shape, bool)
    cell = (0, 0, *index)[-2:] if index is not None else None
    title, facts = _grid_title(moment, shown, lead)
    return Grid(
        shown.id,
        shown.storage,
        title,
        facts,
        shape,
        step,
        plane,
        lit,
        lead,
        len(shown.sizes),
        (cell[0], cell[1]) if cell else None,
    )


def _plane(tensor: TensorState, lead: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int], np.ndarray]:
    """Return the shape of the last two dims at ``lead``, the steps between sampled cells, and their elements."""
    offset = tensor.offset + sum(i * s for i, s in zip(lead, tensor.strides, strict=False))
    rows, columns = (1, 1, *tensor.sizes)[-2:]
    strides = (0, 0, *tensor.strides)[-2:]
    step = (-(-rows // MOST_CELLS) or 1, -(-columns // MOST_CELLS) or 1)
    sampled = (-(-rows // step[0]), -(-columns // step[1]))
    return (rows, columns), step, element_grid(sampled, (strides[0] * step[0], strides[1] * step[1]), offset)


def _grid_title(moment: Moment, tensor: TensorState, lead: tuple[int, ...]) -> tuple[str, str]:
    name = tensor_name(moment.state, tensor.id)
    expression = expression_of(moment.recording, tensor.born) if home_of(moment.state, tensor) else ""
    title = f"{name} = {expression}" if expression and expression != name else name
    facts = f"{shape_text(tensor.sizes)} · " + tr("stride ({strides})", strides=list_text(tensor.strides).strip("()"))
    if tensor.offset:
        facts += " · " + tr("offset {offset}", offset=tensor.offset)
    if not tensor.names and is_gradient(moment.state, tensor.id):
        facts += " · " + tr("gradient")
    if lead:
        facts += " · " + tr("plane [{lead}, :, :]", lead=list_text(lead))
    return title, facts


def _address(state: State, tensor: TensorState, index: tuple[int, ...] | None) -> Address | None:
    if index is None:
        return None
    element = tensor.offset + sum(i * s for i, s in zip(index, tensor.strides, strict=True))
    terms = "".join(f" + {i}·{s}" for i, s in zip(index, tensor.strides, strict=True))
    legend = "".join(f" + {_INDEX_NAMES[d % 8]}·s{str(d).translate(_SUBSCRIPTS)}" for d in range(len(index)))
    note, warning = contiguity(tensor)
    text = tensor_name(state, tensor.id) + (f"[{list_text(index)}]" if index else "")
    if not index:
        return Address(
            element, text, tr("offset {offset}", offset=element), tr("a scalar is one element"), note, warning
        )
    return Address(element, text, f"{tensor.offset}{terms} = {element}", tr("offset") + legend, note, warning)


def _arcs(tensor: TensorState, count: int) -> tuple[Arc, ...]:
    """Return one jump per dim, from the tensor's first element."""
    jumps = {stride for size, stride in zip(tensor.sizes, tensor.strides, strict=True) if size > 1 and stride}
    start = tensor.offset
    return tuple(Arc(start, start + s, f"{s:+d}") for s in sorted(jumps) if 0 <= start + s < count)


def _strip(state: State, storage: StorageState, tensor: TensorState | None, lit: Marked) -> Strip:
    dtype = tensor.dtype if tensor else "uint8"
    values = elements_of(storage.values, dtype)
    title = tr("storage {id}", id=storage.id)
    return Strip(storage.id, title, _strip_facts(state, storage, dtype), lit.count, values, lit, _summary(storage))


def _strip_facts(state: State, storage: StorageState, dtype: str) -> str:
    views = views_of(state, storage.id)
    count = storage.nbytes // numpy_dtype(dtype).itemsize
    parts = [
        tr("{n} × {dtype} = {bytes} bytes", n=count, dtype=dtype.removeprefix("torch."), bytes=storage.nbytes),
        storage.device,
    ]
    if views:
        parts.append(tr("version {version}", version=views[0].version))
    names = [name for view in views for name in view.names]
    if len(names) > 1:
        parts.append(tr("shared by {names}", names=", ".join(names[:6]) + ("…" if len(names) > 6 else "")))
    return " · ".join(parts)


def _summary(storage: StorageState) -> str:
    """Return what is known of values that were not kept."""
    if storage.values is not None:
        return ""
    if not storage.summary:
        return tr("values not kept")
    known = storage.summary
    return tr(
        "values too many to keep: {minimum:.4g} … {maximum:.4g}, mean {mean:.4g}, NaN {nans}",
        minimum=known["minimum"], maximum=known["maximum"], mean=known["mean"], nans=known["nans"],
    )  # fmt: skip


def _other(state: State, storage: StorageState) -> Strip:
    views = views_of(state, storage.id)
    first = views[0] if views else None
    count = storage.nbytes // numpy_dtype(first.dtype if first else "uint8").itemsize
    strip = _strip(state, storage, first, _marked((count,), (1,), 0, count))
    return dataclasses.replace(strip, facts=_other_facts(state, strip, views))


def _other_facts(state: State, strip: Strip, views: list[TensorState]) -> str:
    name = next((tensor_name(state, v.id) for v in views if v.names), tensor_name(state, views[0].id) if views else "")
    parts = [name, strip.facts] if name else [strip.facts]
    if any(v.requires_grad and not v.node for v in views):
        parts.append(tr("leaf, requires_grad"))
    return " · ".join(parts)


def _lanes(state: State, storage: StorageState, selected: TensorState) -> tuple[Lane, ...]:
    views = [v for v in views_of(state, storage.id) if v.names or v.id == selected.id]
    return tuple(_lane(state, storage, view, view.id == selected.id, selected.dtype) for view in views)


def _lane(state: State, storage: StorageState, view: TensorState, selected: bool, dtype: str) -> Lane:
    reads = _reads_as(view, storage, numpy_dtype(dtype).itemsize)
    repeated = _reads(view, _count(storage, view)).total < math.prod(view.sizes)
    return Lane(view.id, tensor_name(state, view.id), reads, repeated, selected)
