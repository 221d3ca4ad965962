"""Switches of the ``torch`` module that change how fast or how reproducibly PyTorch computes.

This engine computes in one way only, and always reproducibly; the switches keep what they are told.
"""

from __future__ import annotations

import os
from typing import Any


class Settings:
    """What was asked for."""

    threads = os.cpu_count() or 1
    interop_threads = os.cpu_count() or 1
    deterministic = False
    warn_only = False
    matmul_precision = "highest"
    warn_always = False


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
    """Ask for reproducible results, which this engine gives anyway."""
    Settings.deterministic, Settings.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Whether reproducible results were asked for."""
    return Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether only warnings were asked for where PyTorch has no reproducible kernel."""
    return Settings.warn_only


def set_float32_matmul_precision(precision: str) -> None:
    """Ask for ``highest``, ``high`` or ``medium`` precision of matrix products; here they are always exact float32."""
    Settings.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """The precision that was asked for."""
    return Settings.matmul_precision


def set_warn_always(b: bool, /) -> None:
    """Ask for warnings at every occasion."""
    Settings.warn_always = b


def is_warn_always_enabled() -> bool:
    """Whether warnings at every occasion were asked for."""
    return Settings.warn_always


def compiled_with_cxx11_abi() -> bool:
    """True, as in PyTorch's own builds."""
    return True


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        get_num_threads, set_num_threads, get_num_interop_threads, set_num_interop_threads,
        use_deterministic_algorithms, are_deterministic_algorithms_enabled,
        is_deterministic_algorithms_warn_only_enabled, set_float32_matmul_precision, get_float32_matmul_precision,
        set_warn_always, is_warn_always_enabled, compiled_with_cxx11_abi,
    )
}  # fmt: skip
