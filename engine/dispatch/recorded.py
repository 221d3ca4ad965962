"""The full path of an op call: what stands before the engine, and what the recording is told of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stridescope.engine.autograd.history import mark_inference
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.device import device
from stridescope.engine.events import KeysChosen, OpBegan, OpEnded, OpFailed, journal
from stridescope.engine.tensor import Tensor, tensor_id

if TYPE_CHECKING:
    from stridescope.engine.dispatch.op import Op

_BEGAN, _KEYS, _ENDED, _FAILED = OpBegan.code, KeysChosen.code, OpEnded.code, OpFailed.code
_SIMPLE = frozenset({bool, int, float, str, type(None)})
LONGEST_LIST = 64  # items of a list argument that events keep


class Interceptors:
    """What stands before the engine while a mode is active: autocast, function modes, inference mode.

    Each is called as ``interceptor(op, call, *args)`` and calls ``call(*args)`` or does something else instead. The
    first in the list is outermost. Whoever adds one calls ``journal.require_full(+1)``, and ``(-1)`` when it goes.
    """

    before: list[Callable[..., Any]] = []


def full(op: Op, core: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run a call with everything announced."""
    if Interceptors.before:
        for interceptor in reversed(Interceptors.before):
            core = functools.partial(interceptor, op, core)
    return recorded(op, core, args)


def recorded(op: Op, core: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run a call between OpBegan and OpEnded (or OpFailed)."""
    emit = journal.emit
    if emit is None:
        return _run_core(op, core, args)
    name = op.schema.name
    inputs: list[Tensor] = []
    plain = tuple([value if value.__class__ in _SIMPLE else _plain(value, inputs) for value in args])
    emit((_BEGAN, name, tuple([t._id for t in inputs]), plain, *journal.where()))
    if op.composite is None:
        emit((_KEYS, keys(inputs) if inputs else _chosen_by(args)))
    try:
        out = _run_core(op, core, args)
    except Exception as error:
        emit((_FAILED, name, str(error)))
        raise
    emit((_ENDED, name, (out._id or tensor_id(out),) if isinstance(out, Tensor) else _ids(out)))
    return out


def _run_core(op: Op, core: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run the op; in inference mode what it makes are inference tensors."""
    out = core(*args)
    if grad_mode.inference and op.run is not None and not op.schema.writes:
        for made in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(made, Tensor) and made._base_tensor is None:
                mark_inference(made)
    return out


def _ids(out: Any) -> tuple[int, ...]:
    if isinstance(out, (tuple, list)):
        return tuple([tensor_id(t) for t in out if isinstance(t, Tensor)])
    return ()


def _plain(value: Any, inputs: list[Tensor]) -> Any:
    """An argument as events keep it: tensors as ``%id``, numbers and words as they are, the rest as text."""
    if isinstance(value, Tensor):
        inputs.append(value)
        return f"%{value._id or tensor_id(value)}"
    if value.__class__ in _SIMPLE:
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_plain(item, inputs) for item in value[:LONGEST_LIST]])
    return str(value)


# What a call can pass through: by (on cuda, tracked by autograd).
_PATHS = {
    (cuda, tracked): ((f"Autograd{backend}", "ADInplaceOrView", backend) if tracked else (backend,))
    for cuda, backend in ((False, "CPU"), (True, "CUDA"))
    for tracked in (False, True)
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
