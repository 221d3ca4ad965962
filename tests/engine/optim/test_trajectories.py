"""Every optimizer and schedule goes the way that PyTorch's goes."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import stridescope.engine.torch as torch

_SPEC = importlib.util.spec_from_file_location("trajectories", Path(__file__).with_name("trajectories.py"))
assert _SPEC is not None and _SPEC.loader is not None
cases: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)
EXPECTED = json.loads(cases.FILE.read_text())


@pytest.mark.parametrize(("name", "options"), cases.OPTIMIZERS, ids=lambda value: str(value))
def test_optimizer_takes_pytorchs_steps(name: str, options: dict[str, Any]) -> None:
    path = cases.run(torch, name, options)
    for ours, theirs in zip(path, EXPECTED["optimizers"][cases.label(name, options)], strict=True):
        assert ours == pytest.approx(theirs, rel=2e-5, abs=2e-6)


@pytest.mark.parametrize("name", ["SGD"])
def test_without_a_square_root_the_bits_agree(name: str) -> None:
    for options in ({}, {"lr": 0.1, "momentum": 0.9, "nesterov": True}):
        assert cases.run(torch, name, options) == EXPECTED["optimizers"][cases.label(name, options)]


@pytest.mark.parametrize(("name", "options"), cases.SCHEDULES, ids=lambda value: str(value))
def test_schedule_sets_pytorchs_rates(name: str, options: dict[str, Any]) -> None:
    assert cases.rates(torch, name, options) == EXPECTED["schedules"][cases.label(name, options)]
