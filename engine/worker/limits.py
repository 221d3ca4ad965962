"""A limit to the worker's memory: passing it ends the script, and the recording stays whole."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable

LOOK_EVERY = 0.05  # seconds
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def memory_used() -> int:
    """Return the bytes of memory that this process holds, 0 where that cannot be known."""
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def limit_memory(limit: int, passed: Callable[[], None]) -> None:
    """Call ``passed`` once, in a thread of its own, when the process holds more than ``limit`` bytes.

    One huge request is refused by the system with MemoryError: the script sees it as it would on a small machine.
    """
    if sys.platform != "win32":
        import resource

        # Address space is more than memory: what is mapped already, the limit itself, and room for libraries.
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        with contextlib.suppress(ValueError, OSError):  # macOS has the name and not the limit
            resource.setrlimit(resource.RLIMIT_AS, (_mapped() + 2 * limit, hard))
    threading.Thread(target=_look, args=(limit, passed), name="stridescope-memory", daemon=True).start()


def _mapped() -> int:
    if sys.platform != "linux":
        return 8 << 30
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * PAGE


def _look(limit: int, passed: Callable[[], None]) -> None:
    while memory_used() <= limit:
        time.sleep(LOOK_EVERY)
    passed()
