"""Clamping in place by a number that the dtype cannot hold: PyTorch 2.13's words, with C++'s names of dtypes."""

from __future__ import annotations

from typing import Any

import pytest

import stridescope.engine.torch as torch


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(torch.int64, "long int"), (torch.int32, "int"), (torch.uint8, "unsigned char"), (torch.bool, "bool")],
)
@pytest.mark.parametrize(
    "write",
    [lambda t: t.clamp_(max=2.5), lambda t: t.clamp_(0, 2.5), lambda t: t.clamp_min_(2.5), lambda t: t.clip_(2.5)],
)
def test_a_fraction_does_not_fit_whole_numbers(write: Any, dtype: torch.dtype, name: str) -> None:
    target = torch.ones(3, dtype=dtype)
    with pytest.raises(RuntimeError, match=f"^result type Float can't be cast to the desired output type {name}$"):
        write(target)
    assert target.tolist() == [1, 1, 1] and target._version == 0


def test_a_tensor_that_does_not_fit_is_named_as_elsewhere() -> None:
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long$"):
        torch.arange(3).clamp_(max=torch.tensor(2.5))
