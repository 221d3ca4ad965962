"""What autocast is set to in this thread, and the interceptor that carries it out."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dtype import bfloat16, dtype, float16, float32, float64
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.amp.policies import POLICIES


class Autocast(threading.local):
    """The switches of this thread."""

    def __init__(self) -> None:
        self.enabled = {"cpu": False, "cuda": False}
        self.dtypes = {"cpu": bfloat16, "cuda": float16}
        self.cache_enabled = True
        self.nesting = 0
        self.inside = False  # an op is being run whose arguments were cast already
        self.cache: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}


autocast_state = Autocast()


def is_autocast_available(device_type: str) -> bool:
    """Whether there is an autocast for a device type."""
    return device_type in POLICIES


def _checked(device_type: str, function: str) -> str:
    if device_type not in POLICIES:
        raise RuntimeError(f"unsupported autocast device_type '{device_type}' in {function}")
    return device_type


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether ops on a device type are cast; without one, whether those on ``cuda`` are."""
    return autocast_state.enabled[_checked(device_type or "cuda", "is_autocast_enabled")]


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast on or off for a device type (``cuda`` when only a bool is given)."""
    if isinstance(device_type, bool):
        device_type, enabled = "cuda", device_type
    state = autocast_state
    before = any(state.enabled.values())
    state.enabled[_checked(device_type, "set_autocast_enabled")] = bool(enabled)
    now = any(state.enabled.values())
    if now and not before:
        Interceptors.before.append(cast_arguments)
        journal.require_full(+1)
    elif before and not now:
        Interceptors.before.remove(cast_arguments)
        journal.require_full(-1)


def get_autocast_dtype(device_type: str) -> dtype:
    """The fast dtype of a device type."""
    return autocast_state.dtypes[_checked(device_type, "get_autocast_dtype")]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Choose the fast dtype of a device type."""
    autocast_state.dtypes[_checked(device_type, "set_autocast_dtype")] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether a parameter that was cast is kept for the next op."""
    return autocast_state.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep what was cast, or don't."""
    autocast_state.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget what was cast."""
    autocast_state.cache.clear()


def autocast_increment_nesting() -> int:
    """Count an autocast block that begins."""
    autocast_state.nesting += 1
    return autocast_state.nesting


def autocast_decrement_nesting() -> int:
    """Count an autocast block that ends."""
    autocast_state.nesting -= 1
    return autocast_state.nesting


def is_autocast_cpu_enabled() -> bool:
    """Whether ops on the CPU are cast."""
    return autocast_state.enabled["cpu"]


def get_autocast_gpu_dtype() -> dtype:
    """The fast dtype of ``cuda``."""
    return autocast_state.dtypes["cuda"]


def get_autocast_cpu_dtype() -> dtype:
    """The fast dtype of the CPU."""
    return autocast_state.dtypes["cpu"]


def cast_arguments(op: Op, call: Callable[..., Any], *args: Any) -> Any:
    """Run an op with its arguments in the dtype that the lists say."""
    state = autocast_state
    kind = None if state.inside or Interceptors.writing else _device_of(args)
    if kind is None or not state.enabled[kind]:
        return call(*args)
    policy, name = POLICIES[kind], op.schema.name
    if name in policy.refused:
        raise RuntimeError(policy.refused[name])
    if name in policy.lower:
        return _within(call, _cast_all(args, kind, state.dtypes[kind]))
    if name in policy.float32:
        return _within(call, _cast_all(args, kind, float32))
    if name in policy.accumulating:
        return _within(call, _with_dtype(op, args, kind))
    if name in policy.widest:
        return _within(call, _cast_all(args, kind, _widest(args, kind, state.dtypes[kind])))
    return call(*args)


def _within(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What the op does inside is not cast again."""
    autocast_state.inside = True
    try:
        return call(*args)
    finally:
        autocast_state.inside = False


def _tensors(args: Any) -> list[Tensor]:
    found = []
    for value in args:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _device_of(args: tuple[Any, ...]) -> str | None:
    """The kind of device whose lists count: cuda when any argument lies there."""
    kinds = {tensor.device.type for tensor in _tensors(args)}
    return "cuda" if "cuda" in kinds else "cpu" if "cpu" in kinds else None


def _eligible(tensor: Tensor, kind: str) -> bool:
    return tensor.device.type == kind and tensor.dtype.is_floating_point and tensor.dtype is not float64


def _cast_all(args: Any, kind: str, to: dtype) -> tuple[Any, ...]:
    return tuple(_cast_one(value, kind, to) for value in args)


def _cast_one(value: Any, kind: str, to: dtype) -> Any:
    if isinstance(value, Tensor):
        return _cached(value, kind, to) if _eligible(value, kind) and value.dtype is not to else value
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return type(value)(_cast_one(item, kind, to) for item in value)
    return value


def _cached(tensor: Tensor, kind: str, to: dtype) -> Tensor:
    """The tensor in another dtype; leaves that require grad, mostly weights, are cast once in a block."""
    state = autocast_state
    keep = (
        state.cache_enabled and to is state.dtypes[kind] and tensor.dtype is float32 and tensor.requires_grad
        and tensor.is_leaf and tensor._base_tensor is None
    )  # fmt: skip
    if not keep:
        return _converted(tensor, to)
    found = state.cache.get(id(tensor))
    if found is None or found[0]() is not tensor:
        found = state.cache[id(tensor)] = (weakref.ref(tensor), _converted(tensor, to))
    return found[1]


def _converted(tensor: Tensor, to: dtype) -> Tensor:
    converted: Tensor = tensor.to(to)
    return converted


def _widest(args: tuple[Any, ...], kind: str, fast: dtype) -> dtype:
    """float32 from the first argument on that has it, the fast dtype before; another low one there is refused."""
    widest = fast
    for tensor in _tensors(args):
        if not _eligible(tensor, kind) or tensor.dtype is float64:
            continue
        if tensor.dtype is float32 or widest is float32:
            widest = float32
        elif tensor.dtype is not fast:
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return widest


def _with_dtype(op: Op, args: tuple[Any, ...], kind: str) -> tuple[Any, ...]:
    """The arguments with ``dtype=float32``, when the first is low and no dtype was named."""
    names = [argument.name for argument in op.schema.arguments]
    place = names.index("dtype") if "dtype" in names else -1
    if place >= 0 and args[place] is None and _eligible(args[0], kind):
        return (*args[:place], float32, *args[place + 1 :])
    return args


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache, get_autocast_cpu_dtype,
        get_autocast_dtype, get_autocast_gpu_dtype, is_autocast_cache_enabled, is_autocast_cpu_enabled,
        is_autocast_enabled, set_autocast_cache_enabled, set_autocast_dtype, set_autocast_enabled,
    )
}  # fmt: skip
