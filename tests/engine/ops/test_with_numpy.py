"""NumPy's functions on tensors: tensors come back, with the warning that PyTorch's users see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stridescope.engine.torch as torch


@pytest.mark.parametrize(
    ("call", "dtype", "values"),
    [
        (lambda t: np.sqrt(t), torch.float32, [1.0, 2.0]),
        (lambda t: np.add(t, 1), torch.float32, [2.0, 5.0]),
        (lambda t: np.multiply(np.array([1.0, 2.0]), t), torch.float64, [1.0, 8.0]),
        (lambda t: np.greater(t, 2), torch.uint8, [0, 1]),
    ],
)
def test_numpy_functions_give_tensors(call: Any, dtype: torch.dtype, values: list[float]) -> None:
    with pytest.warns(DeprecationWarning, match="__array_wrap__ must accept context and return_scalar"):
        made = call(torch.tensor([1.0, 4.0]))
    assert isinstance(made, torch.Tensor) and made.dtype is dtype and made.tolist() == values
