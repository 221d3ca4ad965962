"""What a recording keeps of a storage that is too large to keep whole: range, mean, NaN count and histogram."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stridescope.engine.events import StorageSummarised
from stridescope.engine.recording.reader import Recording


@pytest.fixture
def summary_of(python: Any, script: Any, tmp_path: pathlib.Path) -> Callable[[str], dict[str, Any]]:
    """Record a script that makes the tensor, and give what the recording says of its storage."""

    def summary(expression: str) -> dict[str, Any]:
        path, made_at = script(f"import torch\nx = {expression}\nprint()\n"), tmp_path / "made.stride"
        done = python("-P", "-m", "stridescope.app.cli", "record", path, "-o", made_at, "--values", "summary")
        assert done == (0, "\n", "")
        with Recording.open(made_at) as recording:
            made = [e for e in recording.events(0, recording.steps - 1) if isinstance(e, StorageSummarised)]
        assert made, "no storage was summarised"
        return dataclasses.asdict(made[-1])

    return summary


def test_range_mean_and_histogram(summary_of: Any) -> None:
    told = summary_of("torch.arange(3200, dtype=torch.float32)")
    assert (told["minimum"], told["maximum"], told["nans"]) == (0.0, 3199.0, 0)
    assert told["mean"] == pytest.approx(1599.5)
    counts = told["histogram"]
    assert len(counts) == 16 and max(counts) - min(counts) <= 2


@pytest.mark.parametrize(
    ("expression", "minimum", "maximum", "nans"),
    [
        (
            "torch.cat([torch.full((500,), float('nan')), torch.tensor([float('inf'), 2.0, -1.0] * 200)])",
            -1.0,
            2.0,
            500,
        ),
        ("torch.tensor([3e38, -3e38] * 400)", float(np.float32(-3e38)), float(np.float32(3e38)), 0),
        ("torch.tensor([1e308, -1e308] * 400, dtype=torch.float64)", -1e308, 1e308, 0),
        ("torch.tensor([2**62, -5] * 400)", -5.0, float(2**62), 0),
        ("torch.tensor([True, False] * 2000)", 0.0, 1.0, 0),
        ("torch.full((2000,), 7.5, dtype=torch.bfloat16)", 7.5, 7.5, 0),
        ("torch.full((900,), float('nan'))", 0.0, 0.0, 900),
        ("torch.full((900,), 3 + 4j)", 5.0, 5.0, 0),
    ],
)
def test_summaries_of_hard_values(summary_of: Any, expression: str, minimum: float, maximum: float, nans: int) -> None:
    told = summary_of(expression)
    assert (told["minimum"], told["maximum"], told["nans"]) == (minimum, maximum, nans)
    assert not math.isnan(told["mean"])
