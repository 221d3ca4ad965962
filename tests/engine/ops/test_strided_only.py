"""Methods that expect another layout, and Python functions run on elements: PyTorch 2.13's answers."""

from __future__ import annotations

from typing import Any

import pytest

import stridescope.engine.torch as torch


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("coalesce", RuntimeError, "coalesce expected sparse coordinate tensor layout but got Strided"),
        ("values", RuntimeError, "values expected sparse tensor layout but got Strided"),
        ("row_indices", RuntimeError, "row_indices expected sparse column compressed tensor layout but got Strided"),
        ("to_sparse", NotImplementedError, "torch.Tensor.to_sparse is not in Stridescope yet"),
        ("q_scale", NotImplementedError, "torch.Tensor.q_scale is not in Stridescope yet"),
    ],
)
def test_other_layouts_are_refused(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        getattr(torch.ones(2, 2), name)()


def test_a_dense_tensor_is_dense() -> None:
    x = torch.ones(2, 2)
    assert (x.dense_dim(), x.sparse_dim(), x.to_dense() is x) == (2, 0, True)
    assert x.to_dense(torch.float64).dtype is torch.float64


def test_functions_on_elements_write_in_place_and_count_no_write() -> None:
    x = torch.ones(2, 2).t()
    assert x.apply_(lambda v: v + 1) is x and x.tolist() == [[2, 2], [2, 2]] and x._version == 0
    assert torch.ones(2, 2).map_(torch.tensor([1.0, 2.0]), lambda a, b: a + b).tolist() == [[2, 3], [2, 3]]
    assert torch.ones(2).map2_(
        torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), lambda a, b, c: a + b * c
    ).tolist() == [4, 9]
    assert torch.ones(2, dtype=torch.bool).apply_(lambda v: not v).tolist() == [False, False]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.ones(2, requires_grad=True).apply_(abs), RuntimeError, "Can't call apply_"),
        (lambda: torch.ones(2).apply_(lambda v: "a"), TypeError, "must be real number, not str"),
        (
            lambda: torch.ones(2).map_(torch.tensor([1, 2]), lambda a, b: a),
            TypeError,
            r"map_: expected torch.FloatTensor for 'other' \(got torch.LongTensor\)",
        ),
    ],
)
def test_functions_on_elements_refuse(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        (lambda: torch.vander(torch.tensor([1, 2, 3], dtype=torch.int8)), [[1, 1, 1], [4, 2, 1], [9, 3, 1]]),
        (lambda: torch.vander(torch.tensor([2.0, 3.0]), 3, increasing=True), [[1, 2, 4], [1, 3, 9]]),
        (lambda: torch.vander(torch.tensor([2, 3]), 1), [[1], [1]]),
        (lambda: torch.vander(torch.tensor([2.0, 3.0]), 0), [[], []]),
    ],
)
def test_vander(call: Any, rows: list[list[float]]) -> None:
    assert call().tolist() == rows


@pytest.mark.parametrize("call", ["ones(2", "eye(2", "arange(3", "zeros_like(torch.ones(2)"])
def test_other_layouts_say_that_they_are_not_here(call: str) -> None:
    with pytest.raises(NotImplementedError, match=r"layout torch\.sparse_coo is not in Stridescope yet"):
        eval(f"torch.{call}, layout=torch.sparse_coo)", {"torch": torch})
    assert torch.ones(2).layout != torch.sparse_csr
