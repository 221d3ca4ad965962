"""``torch.cuda``'s face of the CUDA runtime and driver: what scripts call of them, on the simulated device.

Nothing watches a simulated GPU from outside, so what PyTorch asks of NVML (utilisation, temperature, power, clocks)
ends as it does where NVML's Python package is not installed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NoReturn

from stridescope.engine.devices.registry import current_device
from stridescope.engine.torch.cuda.device_index import gpu


class CudaError(RuntimeError):
    """A call of the CUDA runtime that failed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{cudart().cudaGetErrorString(code)} ({code})")


class DeferredCudaCallError(Exception):
    """A call that was put off until CUDA was initialised, and then failed."""


class cudaStatus:
    """The results of runtime calls that scripts compare with."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class Result(enum.IntEnum):
    """The runtime's own results."""

    success = 0


class Cudart:
    """The runtime's functions that PyTorch shows; those that prepare something for real hardware succeed."""

    cudaError = Result

    @staticmethod
    def cudaGetErrorString(code: int) -> str:
        """The words for a result."""
        return "no error" if code == 0 else "unknown error"

    @staticmethod
    def cudaMemGetInfo(device: int) -> tuple[int, int]:
        """Free and total bytes of a device."""
        return gpu(device).memory_info()

    @staticmethod
    def cudaProfilerStart() -> Result:
        """Let a profiler begin: none listens to a simulated GPU."""
        return Result.success

    @staticmethod
    def cudaProfilerStop() -> Result:
        """Let a profiler end."""
        return Result.success

    @staticmethod
    def cudaHostRegister(address: int, size: int, flags: int) -> Result:
        """Pin host memory in place."""
        return Result.success

    @staticmethod
    def cudaHostUnregister(address: int) -> Result:
        """Unpin it."""
        return Result.success


def cudart() -> Cudart:
    """The CUDA runtime."""
    current_device()
    return Cudart()


def check_error(res: int) -> None:
    """Raise CudaError unless the result of a runtime call is success."""
    if res != Result.success:
        raise CudaError(res)


_SYNC_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Warn of ops that let the host wait for the device (1 or "warn"), or refuse them (2 or "error")."""
    found = current_device()
    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_DEBUG_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_DEBUG_MODES[debug_mode]
    if debug_mode not in _SYNC_DEBUG_MODES.values():
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    found.sync_debug_mode = debug_mode


def get_sync_debug_mode() -> int:
    """0, 1 or 2: what happens when the host waits for the device."""
    return current_device().sync_debug_mode


def _asks_nvml(name: str, what: str) -> Callable[..., NoReturn]:
    def ask(device: Any = None) -> NoReturn:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.")

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"{what}, as NVML tells it of real hardware."
    return ask


utilization = _asks_nvml("utilization", "How much of the time the device computed")
memory_usage = _asks_nvml("memory_usage", "How much of the time its memory was read or written")
temperature = _asks_nvml("temperature", "Its temperature")
power_draw = _asks_nvml("power_draw", "Its power")
clock_rate = _asks_nvml("clock_rate", "Its clock")
device_memory_used = _asks_nvml("device_memory_used", "The memory in use by all processes")
