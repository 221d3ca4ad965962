"""``torch.__config__``: how this PyTorch was built, as text for people."""

from __future__ import annotations

import os

from stridescope.engine.torch._settings import get_num_threads
from stridescope.engine.torch.version import __version__


def show() -> str:
    """What computes here, line by line."""
    return f"PyTorch {__version__} as Stridescope's engine has it:\n  - NumPy and SciPy on the CPU\n"


def parallel_info() -> str:
    """How many threads work."""
    counts = {"at::get_num_threads()": get_num_threads(), "std::thread::hardware_concurrency()": os.cpu_count()}
    return "ATen/Parallel:\n" + "".join(f"\t{what} : {count}\n" for what, count in counts.items())
