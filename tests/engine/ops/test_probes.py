"""Results, strides, versions and error texts of single calls are PyTorch 2.13's, wrong calls above all."""

from __future__ import annotations

import json
import pathlib
import runpy
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch

TABLES = pathlib.Path(__file__).with_name("tables")
RECORDED: dict[str, str] = json.loads((TABLES / "probes.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def answer() -> Callable[[Any, str], str]:
    asked: Callable[[Any, str], str] = runpy.run_path(str(TABLES / "probes.py"))["answer"]
    return asked


@pytest.mark.parametrize("line", RECORDED)
def test_answers_of_single_calls(line: str, answer: Callable[[Any, str], str]) -> None:
    assert answer(torch, line) == RECORDED[line]
