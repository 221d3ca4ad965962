"""Two Pythons side by side: real PyTorch's, named by STRIDESCOPE_TORCH_PYTHON, and ours; never in one process."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

Runner = Callable[[pathlib.Path], str]


def printed_by(command: list[str], script: pathlib.Path) -> str:
    done = subprocess.run(
        [*command, str(script)],
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# The engine rounds as PyTorch's AVX2 kernels do: on a processor with more, PyTorch is asked to use no more either.
AVX2_ONLY = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}


@pytest.fixture(scope="session")
def torch_python() -> str:
    """The Python that has real PyTorch; what it runs sees the same instructions on every machine."""
    os.environ.update(AVX2_ONLY)
    python = os.environ.get("STRIDESCOPE_TORCH_PYTHON")
    if not python:
        pytest.skip("STRIDESCOPE_TORCH_PYTHON names no Python with a real PyTorch: use packaging/dev.py compare")
    return python


@pytest.fixture(scope="session")
def torch_prints(torch_python: str) -> Runner:
    """Run a script on real PyTorch and give what it prints."""
    return lambda script: printed_by([torch_python], script)


@pytest.fixture(scope="session")
def engine_prints() -> Runner:
    """Run a script on our engine and give what it prints."""
    return lambda script: printed_by([sys.executable, "-P", "-m", "stridescope.app.cli", "run"], script)
