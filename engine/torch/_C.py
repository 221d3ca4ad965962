"""``torch._C``: the few names of PyTorch's C++ part that scripts call by themselves."""

from __future__ import annotations

from types import SimpleNamespace

from stridescope.engine.autograd.modes import switch_grad
from stridescope.engine.devices.registry import allocator_settings
from stridescope.engine.devices.registry import current_device as _current_device
from stridescope.engine.devices.streams import current_stream as _current_stream
from stridescope.engine.dispatch.torch_function import Overrides, disabled, torch_dispatch, without
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.ops.generator import Generator
from stridescope.engine.torch._not_yet import attribute_of


def _accelerator_setAllocatorSettings(env: str) -> None:
    """Apply options of the caching allocator; raises PyTorch's errors for bad ones."""
    allocator_settings().parse(env)


def _accelerator_getAllocatorSettings() -> str:
    """The text of the options that was applied last, good or not."""
    return allocator_settings().text


def _cuda_getCurrentRawStream(device: int) -> int:
    """The handle of the stream that this thread's ops on a device join."""
    return _current_stream(device)


def _cuda_getDevice() -> int:
    """The index of this thread's current device."""
    return _current_device().index


def _cuda_isCurrentStreamCapturing() -> bool:
    """Whether a graph is being captured."""
    return _current_device().allocator.captures_underway > 0


class DisableTorchFunctionSubclass:
    """A block in which no subclass is asked for its ``__torch_function__``; modes are."""

    _classes_only = True

    def __enter__(self) -> None:
        self._block = without(self._classes_only)
        self._block.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._block.__exit__(None, None, None)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither subclasses nor modes are asked."""

    _classes_only = False


class _DisableTorchDispatch:
    """A block in which no subclass is asked for its ``__torch_dispatch__``."""

    def __enter__(self) -> None:
        Overrides.without_dispatch += 1

    def __exit__(self, *exc: object) -> None:
        Overrides.without_dispatch -= 1


_disabled_torch_function_impl = disabled
_disabled_torch_dispatch_impl = torch_dispatch


def _functions(namespace: str, prefix: str = "") -> SimpleNamespace:
    """Functions by the names that PyTorch's C++ part has for them, as the code of a graph calls them."""
    return SimpleNamespace(**{prefix + name: function for name, function in FUNCTIONS[namespace].items()})


_set_grad_enabled = switch_grad
_nn = _functions("torch._C._nn")
_nn.one_hot = FUNCTIONS["torch.nn.functional"]["one_hot"]
_linalg, _fft = _functions("torch.linalg", "linalg_"), _functions("torch.fft", "fft_")
_special = _functions("torch.special", "special_")
__getattr__ = attribute_of("torch._C")
__all__ = ["Generator"]
