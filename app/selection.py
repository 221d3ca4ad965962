"""What is selected, as one value that all panels share.

Whatever is clicked (row, cell, node, block, variable), the others must find their part of it: :func:`linked` fills in
the missing faces from the state. Nothing here knows Qt.
"""

from __future__ import annotations

import dataclasses

from stridescope.app.index import index_of
from stridescope.engine.recording.model import State, TensorState


@dataclasses.dataclass(frozen=True)
class Selection:
    """A tensor, its storage, its node; ``cell`` is an index into the tensor, ``element`` one into the storage."""

    tensor: int = 0
    storage: int = 0
    node: int = 0
    cell: tuple[int, ...] | None = None
    element: int = -1

    def __bool__(self) -> bool:
        return bool(self.tensor or self.storage or self.node)


NOTHING = Selection()


def linked(state: State, selection: Selection) -> Selection:
    """Return ``selection`` with every face that ``state`` knows; faces that are gone are dropped."""
    tensor = selection.tensor if selection.tensor in state.tensors else 0
    node = selection.node if selection.node in state.nodes else 0
    storage = selection.storage if selection.storage in state.storages else 0
    if not tensor:
        tensor = _tensor_of_node(state, node) or _tensor_of_storage(state, storage)
    if tensor:
        found = state.tensors[tensor]
        storage, node = storage or found.storage, node or node_of(state, found)
    return dataclasses.replace(selection, tensor=tensor, storage=storage, node=node)


def follow(state: State) -> Selection:
    """Return what to show while nothing is pinned: the gradient on its way, what the last op gave, a named tensor."""
    backward = state.backward
    candidates = (
        [s.gradient for s in backward.sent[-1:] if s.gradient in state.tensors] if backward and backward.running else []
    )
    if not candidates and state.op is not None:
        candidates = [t for t in state.op.outputs or state.op.inputs[:1] if t in state.tensors]
    if not candidates:
        candidates = [t.id for t in state.tensors.values() if t.names] or list(state.tensors)
        candidates = [t for t in candidates if state.tensors[t].sizes] or candidates  # a scalar has little to show
    return linked(state, Selection(tensor=max(candidates))) if candidates else NOTHING


def node_of(state: State, tensor: TensorState) -> int:
    """Return the tensor's grad_fn, or the AccumulateGrad node of a leaf, or 0."""
    if tensor.node in state.nodes:
        return tensor.node
    return index_of(state).accumulators.get(tensor.id, 0)


def _tensor_of_node(state: State, node: int) -> int:
    if not node:
        return 0
    variable = state.nodes[node].variable
    if variable in state.tensors:
        return variable
    outputs = index_of(state).outputs.of(node)
    return outputs[0].id if outputs else 0


def _tensor_of_storage(state: State, storage: int) -> int:
    views = views_of(state, storage)
    return next((t.id for t in views if t.names), views[0].id if views else 0)


def views_of(state: State, storage: int) -> list[TensorState]:
    """Return the tensors that look into ``storage``, oldest first."""
    return index_of(state).views.of(storage) if storage else []


def home_of(state: State, tensor: TensorState) -> TensorState | None:
    """Return the tensor that people know the storage by: the named base, else the oldest named view; not itself."""
    base = state.tensors.get(tensor.base)
    if base is not None and base.names and base.id != tensor.id:
        return base
    oldest = next((view for view in views_of(state, tensor.storage) if view.names), None)
    return oldest if oldest is not None and oldest.id < tensor.id else None


def tensor_name(state: State, tensor: int) -> str:
    """Return what people call the tensor: its variable, whose .grad it is, or its number."""
    found = state.tensors.get(tensor)
    if found is None:
        return f"#{tensor}"
    if found.names:
        return found.names[0]
    owner = index_of(state).grad_owners.get(tensor)
    return f"{owner}.grad" if owner else f"#{tensor}"


def is_gradient(state: State, tensor: int) -> bool:
    """Return whether the tensor went along an edge of the graph in this backward pass."""
    return tensor in index_of(state).gradients


def module_words(state: State, number: int) -> str:
    """Return ``net.body.0 (Conv2d)``; empty where there is no such module."""
    module = state.modules.get(number)
    return "" if module is None else f"{module.path} ({module.kind})" if module.path else module.kind
