"""The full path of an op call: what stands before the engine, and what the recording is told of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stridescope.engine.announce import announce, announce_result, small, storage_facts, tensor_id
from stridescope.engine.autograd.history import mark_inference
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import UNTOLD, edge_ids, next_node_id
from stridescope.engine.autograd.saved import SavedTensor
from stridescope.engine.device import device
from stridescope.engine.events import GradFnSet, NodeMade, OpEnded, OpFailed, TensorSaved, journal
from stridescope.engine.events.bundles import (
    BUNDLES,
    MADE,
    MOST_SAVED,
    OPENED_ELSE,
    TRACKED,
    USUAL_KEYS,
)
from stridescope.engine.tensor import Tensor

if TYPE_CHECKING:
    from stridescope.engine.dispatch.op import Op

_ENDED, _FAILED = OpEnded.code, OpFailed.code
SIMPLE = frozenset({bool, int, float, str, type(None)})
SAVED_FACTS = len(TensorSaved.__annotations__) - 1  # what TensorSaved says behind the node
LONGEST_LIST = 64  # items of a list argument that events keep


def are_simple(items: tuple[Any, ...]) -> bool:
    """Whether events keep a tuple as it is."""
    return len(items) <= LONGEST_LIST and SIMPLE.issuperset(map(type, items))


class Interceptors:
    """What stands before the engine while a mode is active: autocast, function modes, inference mode.

    Each is called as ``interceptor(op, call, *args)`` and calls ``call(*args)`` or does something else instead. The
    first in the list is outermost. Whoever adds one calls ``journal.require_full(+1)``, and ``(-1)`` when it goes.
    """

    before: list[Callable[..., Any]] = []
    # The same for modes that take the kernel's place: they come after all others, and the last is outermost.
    below: list[Callable[..., Any]] = []
    writing = 0  # in this many calls with ``out=``: no autocast knows those


def full(op: Op, core: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run a call with everything announced."""
    for interceptor in (*Interceptors.below, *reversed(Interceptors.before)):
        core = functools.partial(interceptor, op, core)
    return _run_core(op, core, args) if journal.emit is None else recorded(op, core, args)


def recorded(op: Op, core: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run a call between OpBegan and OpEnded (or OpFailed). What a recorded op costs is decided here."""
    name = op.schema.name
    inputs: list[Tensor] = []
    written = tuple([value if value.__class__ in SIMPLE else _plain(value, inputs) for value in args])
    numbers = tuple([tensor._id for tensor in inputs])
    chosen = keys(inputs) if inputs else _chosen_by(args)
    opened = (OPENED_ELSE, name, numbers, written, chosen, journal.where())
    if op.composite is None:
        journal.bundle(opened)
    elif (emit := journal.emit) is not None:  # it passes no keys: the ops that it calls do
        emit(BUNDLES[OPENED_ELSE].open(opened)[0])
    try:
        out = core(*args)
        if grad_mode.inference:
            _mark(op, out)
    except Exception as error:
        refused(name, error)
        raise
    ended(out, name)
    return out


def refused(name: str, error: Exception) -> None:
    """Say that an op was refused."""
    if (emit := journal.emit) is not None:
        emit((_FAILED, name, str(error)))


def ended(out: Any, name: str) -> None:
    """Say what an op gave."""
    if isinstance(out, Tensor):
        node = out._node
        if node is None or node._id != UNTOLD:
            announce_result(out, name)
        else:
            _announce_joined(out, node, name)
    elif (emit := journal.emit) is not None:
        emit((_ENDED, name, _ids(out)))


def _run_core(op: Op, core: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run the op; in inference mode what it makes are inference tensors."""
    out = core(*args)
    if grad_mode.inference:
        _mark(op, out)
    return out


def _mark(op: Op, out: Any) -> None:
    """Make the results of an op that ran in inference mode inference tensors."""
    if op.run is not None and not op.schema.writes:
        for made in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(made, Tensor) and made._base_tensor is None:
                mark_inference(made)


def _announce_joined(out: Tensor, node: Any, name: str) -> None:
    """Announce a result with its new node and what that saved; the op ends with it."""
    if (emit := journal.emit) is None:
        node._id = 0
        return
    node._id = number = next_node_id()
    facts = (number, node.__class__.__name__, min(node._sequence, 1 << 62), *edge_ids(node._edges))
    made = small(out)
    if made is None:
        announce(out)
    count, saved = _saved_by(node, out)
    if made is not None and count <= MOST_SAVED:
        journal.bundle((TRACKED + count, *made, *facts, *saved, name))
        return
    if made is not None:
        journal.bundle((MADE, *made))
    emit((NodeMade.code, *facts, 0))
    for first in range(0, len(saved), SAVED_FACTS):
        emit((TensorSaved.code, number, *saved[first : first + SAVED_FACTS]))
    emit((GradFnSet.code, out._id, number, 0))
    emit((_ENDED, name, (out._id,)))


def _saved_by(node: Any, out: Tensor) -> tuple[int, list[Any]]:
    """How many tensors a node keeps, and what TensorSaved says of each behind the node, one after the other."""
    count = 0
    facts: list[Any] = []
    for field in node.plan.in_order:
        kept = node.saved[field]
        for one in kept if kept.__class__ is list else (kept,):
            if isinstance(one, Tensor):
                if not one._id:
                    announce(one)
                facts += (field, one._id, *storage_facts(one), 0, False)
            elif one.__class__ is SavedTensor:
                tensor: Any = out if one._is_output else one._tensor
                if not tensor._id:
                    announce(tensor)
                facts += (field, tensor._id, *storage_facts(tensor), one._version, one._is_output)
            else:
                continue
            count += 1
    return count, facts


def _ids(out: Any) -> tuple[int, ...]:
    if isinstance(out, (tuple, list)):
        return tuple([tensor_id(t) for t in out if isinstance(t, Tensor)])
    return ()


def _plain(value: Any, inputs: list[Tensor]) -> Any:
    """An argument as events keep it: tensors as ``%id``, numbers and words as they are, the rest as text."""
    if isinstance(value, Tensor):
        inputs.append(value)
        return f"%{value._id or tensor_id(value)}"
    if value.__class__ in SIMPLE:
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_plain(item, inputs) for item in value[:LONGEST_LIST]])
    return str(value)


# What a call can pass through: by (on cuda, tracked by autograd).
_PATHS = {
    (False, True): USUAL_KEYS,
    (False, False): ("CPU",),
    (True, True): ("AutogradCUDA", "ADInplaceOrView", "CUDA"),
    (True, False): ("CUDA",),
}


def _chosen_by(args: tuple[Any, ...]) -> tuple[str, ...]:
    """The keys of a call without tensors: the backend is that of the device that it names."""
    cuda = any(isinstance(value, device) and value.type == "cuda" for value in args)
    return ("BackendSelect", "CUDA" if cuda else "CPU")


def keys(inputs: list[Tensor]) -> tuple[str, ...]:
    """The dispatch keys that a call with these tensors passes, outermost first."""
    cuda = tracked = False
    for tensor in inputs:
        tracked = tracked or not tensor._inference
        cuda = cuda or (not tensor._plain and tensor._device.type == "cuda")
    return _PATHS[cuda, tracked and not grad_mode.inference]
