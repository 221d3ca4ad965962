"""``torch.testing``: assert_close says what PyTorch 2.13 says (``assert_close.json`` holds its words), make_tensor."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import stridescope.engine.torch as torch

SAID: list[tuple[str, str | None]] = json.loads(pathlib.Path(__file__).with_name("assert_close.json").read_text())
NAMES = {"torch": torch, "T": torch.tensor, "A": torch.testing.assert_close, "nan": np.nan, "inf": np.inf}


@pytest.mark.parametrize(("call", "said"), SAID, ids=[call for call, _ in SAID])
def test_assert_close_says_what_pytorch_says(call: str, said: str | None) -> None:
    try:
        eval(call, {**NAMES, "nan": float("nan"), "inf": float("inf")})
    except Exception as error:
        assert f"{type(error).__name__}: {error}" == said
    else:
        assert said is None


def test_arrays_are_compared_as_tensors() -> None:
    torch.testing.assert_close(np.arange(3.0), np.arange(3.0))
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 3"):
        torch.testing.assert_close(np.arange(3.0), np.array([0.0, 1.0, 9.0]))


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"dtype": torch.float32}, [-0.0674, 4.8280, -7.4074]),
        ({"dtype": torch.int8}, [6, -5, -9]),
        ({"dtype": torch.bool}, [False, True, True]),
        ({"dtype": torch.uint8, "high": 300}, [172, 47, 117]),
        ({"dtype": torch.complex64}, [-0.0674 + 4.8280j, -7.4074 - 6.6235j, -3.4664 + 2.4134j]),
    ],
)
def test_make_tensor_draws_pytorchs_values(options: dict[str, Any], values: list[Any]) -> None:
    torch.manual_seed(0)
    made = torch.testing.make_tensor(3, device="cpu", **options)
    assert made.dtype is options["dtype"]
    assert made.tolist() == pytest.approx(values, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": torch.int64, "low": 5, "high": 2}, "`low` must be less than `high`, but got 5 >= 2"),
        ({"dtype": torch.float32, "low": float("nan")}, "`low` and `high` cannot be NaN, but got low=nan and high=9"),
        ({"dtype": torch.int64, "requires_grad": True}, "is not supported for boolean and integral dtypes"),
    ],
)
def test_make_tensor_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        torch.testing.make_tensor(3, device="cpu", **options)


def test_make_tensor_with_gaps_and_without_zeros() -> None:
    torch.manual_seed(0)
    assert torch.testing.make_tensor((4, 4), dtype=torch.float32, device="cpu", noncontiguous=True).stride() == (8, 2)
    drawn = torch.testing.make_tensor(200, dtype=torch.int64, device="cpu", low=-1, high=2, exclude_zero=True)
    assert set(drawn.tolist()) == {-1, 1}
