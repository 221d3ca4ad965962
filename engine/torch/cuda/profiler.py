"""``torch.cuda.profiler``: marks for a profiler from outside; none listens to a simulated GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from stridescope.engine.torch.cuda.runtime import check_error, cudart


def start() -> None:
    """Let a profiler begin."""
    check_error(cudart().cudaProfilerStart())


def stop() -> None:
    """Let it end."""
    check_error(cudart().cudaProfilerStop())


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Profile a block."""
    try:
        start()
        yield
    finally:
        stop()
