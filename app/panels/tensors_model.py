"""The tensors table as data: one row per live tensor."""

from __future__ import annotations

import dataclasses
from operator import attrgetter

from stridescope.app.moment import Moment
from stridescope.app.selection import is_gradient, tensor_name, views_of
from stridescope.app.text import plural, tr
from stridescope.app.values import list_text, short_dtype
from stridescope.engine.recording.model import State, TensorState

COLUMNS = ("name", "shape", "stride", "offset", "dtype", "grad_fn", "ver")
LONGEST = 28  # characters of all names of a tensor


@dataclasses.dataclass(frozen=True)
class Row:
    """A tensor's row; ``aliased`` when another row reads the same storage."""

    tensor: int
    storage: int
    cells: tuple[str, ...]
    named: bool
    aliased: bool


def listed(moment: Moment, needle: str = "") -> list[int]:
    """Return the tensors with a row: named ones by birth, then the nameless; ``needle`` keeps rows that hold it."""
    tensors = sorted(moment.state.tensors.values(), key=attrgetter("id"))
    ids = [tensor.id for tensor in tensors if tensor.names] + [tensor.id for tensor in tensors if not tensor.names]
    if not needle:
        return ids
    words, state = needle.lower(), moment.state
    texts = (" ".join((*state.tensors[id].names, *_cells(state, state.tensors[id]))) for id in ids)
    return [id for id, text in zip(ids, texts, strict=True) if words in text.lower()]


def row(moment: Moment, id: int) -> Row:
    """Return a tensor's row."""
    state = moment.state
    tensor = state.tensors[id]
    aliased = len(views_of(state, tensor.storage)) > 1
    return Row(id, tensor.storage, _cells(state, tensor), bool(tensor.names), aliased)


def headline(moment: Moment) -> str:
    """Return ``5 alive · 3 storages``."""
    state = moment.state
    return f"{tr('{n} alive', n=len(state.tensors))} · " + plural(len(state.storages), "{n} storage", "{n} storages")


def _named(state: State, tensor: TensorState) -> str:
    """Return the tensor's names; of many long ones the first and how many more there are."""
    names = ", ".join(tensor.names) or tensor_name(state, tensor.id)
    return names if len(names) <= LONGEST or len(tensor.names) < 2 else f"{tensor.names[0]} +{len(tensor.names) - 1}"


def _cells(state: State, tensor: TensorState) -> tuple[str, ...]:
    return (
        _named(state, tensor),
        list_text(tensor.sizes),
        list_text(tensor.strides),
        str(tensor.offset),
        short_dtype(tensor.dtype),
        _origin(state, tensor),
        str(tensor.version),
    )


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
