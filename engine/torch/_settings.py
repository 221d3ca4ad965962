"""Switches of the ``torch`` module that change how fast or how reproducibly PyTorch computes.

This engine computes in one way only, and always reproducibly; the switches keep what they are told.
"""

from __future__ import annotations

import os
from typing import Any

from stridescope.engine import warn
from stridescope.engine.ops.determinism import Determinism


class Settings:
    """What was asked for."""

    threads = os.cpu_count() or 1
    interop_threads = os.cpu_count() or 1
    matmul_precision = "highest"


def get_num_threads() -> int:
    """How many threads PyTorch would compute with."""
    return Settings.threads


def set_num_threads(threads: int) -> None:
    """Ask for a number of threads."""
    if threads < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    Settings.threads = threads


def get_num_interop_threads() -> int:
    """How many threads PyTorch would run ops side by side with."""
    return Settings.interop_threads


def set_num_interop_threads(threads: int) -> None:
    """Ask for a number of threads between ops."""
    Settings.interop_threads = threads


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for reproducible results, which this engine gives anyway; PyTorch's refusals come with it."""
    Determinism.enabled, Determinism.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Whether reproducible results were asked for."""
    return Determinism.enabled


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether only warnings were asked for where PyTorch has no reproducible kernel."""
    return Determinism.warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """:func:`use_deterministic_algorithms` by one word: ``default`` (0), ``warn`` (1) or ``error`` (2)."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            names = ", ".join(f"`{name}`" for name in _DEBUG_MODES)
            raise RuntimeError(f"invalid value of debug_mode, expected one of {names}, but got {debug_mode}")
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in range(len(_DEBUG_MODES)):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as :func:`set_deterministic_debug_mode` takes it."""
    return (1 if Determinism.warn_only else 2) if Determinism.enabled else 0


def set_flush_denormal(mode: bool, /) -> bool:
    """Ask for denormal numbers to count as zero; True, as on every x86 CPU, but here they stay what they are."""
    return True


def is_vulkan_available() -> bool:
    """Always False."""
    return False


def set_float32_matmul_precision(precision: str) -> None:
    """Ask for ``highest``, ``high`` or ``medium`` precision of matrix products; here they are always exact float32."""
    Settings.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """The precision that was asked for."""
    return Settings.matmul_precision


def set_warn_always(b: bool, /) -> None:
    """Ask for warnings at every occasion."""
    warn.Said.always = b


def is_warn_always_enabled() -> bool:
    """Whether warnings at every occasion were asked for."""
    return warn.Said.always


def compiled_with_cxx11_abi() -> bool:
    """True, as in PyTorch's own builds."""
    return True


def is_distributed(input: Any) -> bool:
    """Always False: every tensor lies in one process."""
    return False


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        get_num_threads, set_num_threads, get_num_interop_threads, set_num_interop_threads,
        use_deterministic_algorithms, are_deterministic_algorithms_enabled,
        is_deterministic_algorithms_warn_only_enabled, set_float32_matmul_precision, get_float32_matmul_precision,
        set_warn_always, is_warn_always_enabled, compiled_with_cxx11_abi, set_deterministic_debug_mode,
        get_deterministic_debug_mode, set_flush_denormal, is_vulkan_available, is_distributed,
    )
}  # fmt: skip
