"""Random programs do on our engine what they do on real PyTorch: values, strides, versions, nodes and errors."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

PROGRAMS = pathlib.Path(__file__).with_name("run_programs.py")
BATCH = 50


def observed(python: str, module: str, first: int) -> list[Any]:
    command = [python, "-W", "ignore", str(PROGRAMS), module, str(first), str(BATCH)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def compare() -> Any:
    spec = importlib.util.spec_from_file_location("programs", PROGRAMS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.compare


@pytest.mark.parametrize("batch", range(int(os.environ.get("STRIDESCOPE_PROGRAM_BATCHES", "6"))))
def test_random_programs_agree(batch: int, torch_python: str, compare: Any) -> None:
    first = int(os.environ.get("STRIDESCOPE_PROGRAM_SEED", "0")) + batch * BATCH
    ours = observed(sys.executable, "stridescope.engine.torch", first)
    theirs = observed(torch_python, "torch", first)
    found = {first + i: compare(a, b) for i, (a, b) in enumerate(zip(ours, theirs, strict=True))}
    assert {seed: said for seed, said in found.items() if said} == {}
