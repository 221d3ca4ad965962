"""Windows: the known values at the ends and the middle, symmetric and periodic."""

from __future__ import annotations

import pytest

from stridescope.engine import torch


@pytest.mark.parametrize(
    ("name", "middle", "end"),
    [
        ("hann", 1.0, 0.0),
        ("hamming", 1.0, 0.08),
        ("blackman", 1.0, 0.0),
        ("bartlett", 1.0, 0.0),
        ("nuttall", 1.0, 0.0003628),
    ],
)
def test_symmetric_windows_peak_in_the_middle(name: str, middle: float, end: float) -> None:
    values = getattr(torch.signal.windows, name)(5)
    assert values[2].item() == pytest.approx(middle, abs=1e-6)
    assert values[0].item() == pytest.approx(end, abs=1e-6)
    assert torch.allclose(values, values.flip(0), atol=1e-6)


@pytest.mark.parametrize(
    "name", ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]
)
def test_a_periodic_window_is_a_symmetric_one_without_its_last_point(name: str) -> None:
    function = getattr(torch, name)
    assert torch.allclose(function(8), function(9, periodic=False)[:8], atol=1e-6)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="requires non-negative window length, got M=-1"):
        torch.signal.windows.gaussian(-1)
    with pytest.raises(ValueError, match="Standard deviation must be positive, got: 0 instead"):
        torch.signal.windows.gaussian(3, std=0)
