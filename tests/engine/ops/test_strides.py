"""Strides of elementwise results: where a number is an operand, PyTorch's short cuts for like layouts do not apply."""

from __future__ import annotations

import json
import pathlib
import runpy
from typing import Any

import pytest

from stridescope.engine import torch

TABLES = pathlib.Path(__file__).with_name("tables")
RECORDED: dict[str, Any] = json.loads((TABLES / "strides.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    seen: dict[str, Any] = runpy.run_path(str(TABLES / "strides.py"))["observe"](torch)
    return seen


@pytest.mark.parametrize("expression", RECORDED)
def test_strides_of_dims_of_size_one(expression: str, ours: dict[str, Any]) -> None:
    assert ours[expression] == RECORDED[expression]
