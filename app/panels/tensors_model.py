"""The tensors table as data: one row per live tensor."""

from __future__ import annotations

import dataclasses

from stridescope.app.moment import Moment
from stridescope.app.selection import is_gradient, tensor_name
from stridescope.app.text import plural, tr
from stridescope.app.values import list_text, short_dtype
from stridescope.engine.recording.model import State, TensorState

COLUMNS = ("name", "shape", "stride", "offset", "dtype", "grad_fn", "ver")


@dataclasses.dataclass(frozen=True)
class Row:
    """A tensor's row; ``aliased`` when another row reads the same storage."""

    tensor: int
    storage: int
    cells: tuple[str, ...]
    named: bool
    aliased: bool


def rows(moment: Moment, needle: str = "") -> list[Row]:
    """Return the rows: named tensors by birth, then the nameless; ``needle`` keeps those that hold it."""
    state = moment.state
    counts: dict[int, int] = {}
    for tensor in state.tensors.values():
        counts[tensor.storage] = counts.get(tensor.storage, 0) + 1
    ordered = sorted(state.tensors.values(), key=lambda t: (not t.names, t.id))
    found = (_row(state, tensor, counts[tensor.storage] > 1) for tensor in ordered)
    return [row for row in found if not needle or needle.lower() in " ".join(row.cells).lower()]


def headline(moment: Moment) -> str:
    """Return ``5 alive · 3 storages``."""
    state = moment.state
    return f"{tr('{n} alive', n=len(state.tensors))} · " + plural(len(state.storages), "{n} storage", "{n} storages")


def _row(state: State, tensor: TensorState, aliased: bool) -> Row:
    name = ", ".join(tensor.names) or tensor_name(state, tensor.id)
    cells = (
        name,
        list_text(tensor.sizes),
        list_text(tensor.strides),
        str(tensor.offset),
        short_dtype(tensor.dtype),
        _origin(state, tensor),
        str(tensor.version),
    )
    return Row(tensor.id, tensor.storage, cells, bool(tensor.names), aliased)


def _origin(state: State, tensor: TensorState) -> str:
    """Return the grad_fn's name, ``gradient``, ``leaf`` or a dash."""
    if tensor.node in state.nodes:
        return state.nodes[tensor.node].name
    if is_gradient(state, tensor.id):
        return tr("gradient")
    return tr("leaf") if tensor.requires_grad else "—"


def tip(moment: Moment, key: int) -> str:
    """Return what a tensor's row says when the mouse rests on it."""
    state, tensor = moment.state, moment.state.tensors.get(key)
    if tensor is None:
        return ""
    name = tensor_name(state, key)
    base = tr("view of {name}", name=tensor_name(state, tensor.base)) if tensor.base else tr("owns its storage")
    step = tensor.born
    made = (
        tr("made by {op} at step {step}", op=tensor.op, step=step)
        if tensor.op
        else tr("made at step {step}", step=step)
    )
    return f"{name}: {base}, {tr('storage {id}', id=tensor.storage)}, {made}"
