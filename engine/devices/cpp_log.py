"""Lines that PyTorch's C++ part logs to stderr, in its form; ``TORCH_CPP_LOG_LEVEL`` silences them."""

from __future__ import annotations

import os
import sys
import time

_LEVELS = {"INFO": 0, "WARNING": 1, "ERROR": 2, "FATAL": 3}
WARNING = _LEVELS["WARNING"]


def _level() -> int:
    """The least level that is logged; PyTorch logs warnings where the variable says nothing it knows."""
    text = os.environ.get("TORCH_CPP_LOG_LEVEL", "WARNING")
    return _LEVELS.get(text.upper(), int(text) if text.isdigit() else WARNING)


def log_warning(text: str, place: str) -> None:
    """Log a warning; ``place`` is the file and line in PyTorch's source."""
    if _level() <= WARNING and sys.stderr is not None:
        now = time.time_ns()
        date = time.localtime(now // 1_000_000_000)
        clock = time.strftime("%H:%M:%S", date)
        print(
            f"[W{date.tm_mon}{date.tm_mday:02} {clock}.{now % 1_000_000_000:09} {place}] {text}",
            file=sys.stderr,
            flush=True,
        )
