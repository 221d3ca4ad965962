"""``torch.autocast``: inside it, each op runs in the dtype that suits it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from stridescope.engine.device import device
from stridescope.engine.devices.registry import cuda_devices
from stridescope.engine.dtype import bfloat16, dtype, float16, float64
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.amp import state
from stridescope.engine.torch.amp.state import is_autocast_available

FAST = (bfloat16, float16)


class autocast:
    """A context manager and decorator. Raises RuntimeError for a device type that has no autocast."""

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        device(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = state.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._possible()

    def _possible(self) -> bool:
        """Whether it can be enabled; a warning says why not."""
        if self.device == "cuda":
            if not cuda_devices():
                warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3)
            return bool(cuda_devices())
        if self.fast_dtype not in FAST:
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast only "
                f"supports dtypes of {', '.join(map(str, FAST))} currently.",
                stacklevel=3,
            )
        return self.fast_dtype in FAST

    def __enter__(self) -> autocast:
        self.prev_cache_enabled = state.is_autocast_cache_enabled()
        self.prev = state.is_autocast_enabled(self.device)
        self.prev_fastdtype = state.get_autocast_dtype(self.device)
        state.set_autocast_enabled(self.device, self._enabled)
        state.set_autocast_dtype(self.device, self.fast_dtype)
        state.autocast_increment_nesting()
        state.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *failure: object) -> None:
        if state.autocast_decrement_nesting() == 0:
            state.clear_autocast_cache()
        state.set_autocast_enabled(self.device, self.prev)
        state.set_autocast_dtype(self.device, self.prev_fastdtype)
        state.set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function: each call of it runs inside."""
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as "
                "a context manager? For example:\n    with torch.autocast(device_type=...):\n        output = "
                "model(input)"
            )

        @functools.wraps(func)
        def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return decorate_autocast


def _cast(value: Any, device_type: str, to: dtype) -> Any:
    """A value with all its tensors on that device in another dtype."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not float64
        return value.to(to) if eligible else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(key, device_type, to): _cast(item, device_type, to) for key, item in value.items()}
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, to) for item in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorates the forward of an autograd.Function for use under autocast."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        context, active = args[0], state.is_autocast_enabled(device_type)
        context._dtype = state.get_autocast_dtype(device_type)
        context._fwd_used_autocast = active and cast_inputs is None
        if cast_inputs is None or not active:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates the backward of an autograd.Function: it runs as its forward did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type=device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd


autocast.__module__ = "torch.amp.autocast_mode"
