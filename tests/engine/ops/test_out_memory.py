"""What an expanded ``out`` of another shape makes of an op, asked of PyTorch 2.13: some refuse it, others resize it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import stridescope.engine.torch as torch

Y, FIRST, PLACES = torch.rand(3, 6), torch.tensor([0, 1]), torch.zeros(3, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.index_select(Y, 0, FIRST, out=out),
        lambda out: torch.take(Y, FIRST, out=out),
        lambda out: torch.nonzero(Y, out=torch.zeros(1, dtype=torch.int64).expand(5)),
        lambda out: torch.masked_select(Y, Y > 0, out=out),
        lambda out: torch.where(Y > 0, Y, Y, out=out),
        lambda out: torch.scatter(Y, 0, PLACES, 1.0, out=out),
        lambda out: torch.scatter_add(Y, 0, PLACES, Y, out=out),
        lambda out: torch.scatter_reduce(Y, 0, PLACES, Y, "sum", out=out),
        lambda out: torch.lerp(Y, Y, 0.5, out=out),
        lambda out: torch.outer(Y[0], Y[0], out=out),
        lambda out: torch.abs(Y, out=out),
        lambda out: torch.square(Y, out=out),
        lambda out: torch.round(Y, decimals=1, out=out),
        lambda out: torch.true_divide(Y, Y, out=out),
        lambda out: torch.diff(Y, out=out),
        lambda out: torch.special.gammainc(Y, Y, out=out),
        lambda out: torch.special.polygamma(1, Y, out=out),
    ],
)
def test_some_ops_refuse_an_expanded_out_before_they_would_resize_it(call: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"^unsupported operation: more than one element of the written-to tensor"):
        call(torch.rand(1).expand(5))


@pytest.mark.parametrize(
    ("call", "size"),
    [
        (lambda out: torch.gather(Y, 1, PLACES, out=out), (3, 2)),
        (lambda out: torch.cat([Y, Y], out=out), (6, 6)),
        (lambda out: torch.sum(Y, 1, out=out), (3,)),
        (lambda out: torch.mm(Y, Y.t(), out=out), (3, 3)),
        (lambda out: torch.cumsum(Y, 0, out=out), (3, 6)),
        (lambda out: torch.tril(Y, out=out), (3, 6)),
        (lambda out: torch.index_add(Y, 0, FIRST, Y[:2], out=out), (3, 6)),
    ],
)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_others_resize_it_and_have_memory_enough(call: Callable[[Any], Any], size: tuple[int, ...]) -> None:
    assert call(torch.rand(1).expand(5)).shape == size
