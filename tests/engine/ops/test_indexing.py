# ruff: noqa: E501
"""Indexing: sizes, strides, offset, node and base as PyTorch 2.13 gives them, and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch

# fmt: off
LAYOUTS: list[tuple[str, tuple[int, ...], tuple[int, ...], int, str | None, bool]] = [
    ('x[:]', (4, 5, 6), (30, 6, 1), 0, 'SliceBackward0', True),
    ('x[...]', (4, 5, 6), (30, 6, 1), 0, 'AliasBackward0', True),
    ('x[:,:]', (4, 5, 6), (30, 6, 1), 0, 'AliasBackward0', True),
    ('x[None]', (1, 4, 5, 6), (120, 30, 6, 1), 0, 'UnsqueezeBackward0', True),
    ('x[0]', (5, 6), (6, 1), 0, 'SelectBackward0', True),
    ('x[0,1]', (6,), (1,), 6, 'SelectBackward0', True),
    ('x[0:2]', (2, 5, 6), (30, 6, 1), 0, 'SliceBackward0', True),
    ('x[:,1]', (4, 6), (30, 1), 6, 'SelectBackward0', True),
    ('x[True]', (1, 4, 5, 6), (120, 30, 6, 1), 0, 'IndexBackward0', False),
    ('x[False]', (0, 4, 5, 6), (120, 30, 6, 1), 0, 'IndexBackward0', False),
    ('x[torch.tensor(1)]', (5, 6), (6, 1), 30, 'SelectBackward0', True),
    ('x[torch.tensor(True)]', (1, 4, 5, 6), (120, 30, 6, 1), 0, 'IndexBackward0', False),
    ('x[torch.tensor(1,dtype=torch.uint8)]', (1, 4, 5, 6), (120, 30, 6, 1), 0, 'IndexBackward0', False),
    ('x[[0,1]]', (2, 5, 6), (30, 6, 1), 0, 'IndexBackward0', False),
    ('x[[0,1],[1,2]]', (2, 6), (6, 1), 0, 'IndexBackward0', False),
    ('x[:,[0,1]]', (4, 2, 6), (12, 6, 1), 0, 'IndexBackward0', False),
    ('x[[0,1],:,[1,2]]', (2, 5), (5, 1), 0, 'IndexBackward0', False),
    ('x[[[0,1],[1,2]]]', (2, 6), (6, 1), 0, 'IndexBackward0', False),
    ('x[[0,slice(None)]]', (5, 6), (6, 1), 0, 'SelectBackward0', True),
    ('x[[0,None]]', (1, 5, 6), (30, 6, 1), 0, 'UnsqueezeBackward0', True),
    ('x[(0,)]', (5, 6), (6, 1), 0, 'SelectBackward0', True),
    ('x[...,...]', (4, 5, 6), (30, 6, 1), 0, 'AliasBackward0', True),
    ('x[torch.ones(4,dtype=torch.bool)]', (4, 5, 6), (30, 6, 1), 0, 'IndexBackward0', False),
    ('x[torch.ones(4,dtype=torch.uint8)]', (4, 5, 6), (30, 6, 1), 0, 'IndexBackward0', False),
    ('x[x>0]', (60,), (1,), 0, 'IndexBackward0', False),
    ('x[::2, 1:3, ...,0]', (2, 2), (60, 6), 6, 'SelectBackward0', True),
    ('x[0:0]', (0, 5, 6), (30, 6, 1), 0, 'SliceBackward0', True),
    ('x[5:2]', (0, 5, 6), (30, 6, 1), 120, 'SliceBackward0', True),
    ('x.permute(2,0,1)[[0,1]]', (2, 4, 5), (20, 5, 1), 0, 'IndexBackward0', False),
    ('x.permute(2,1,0)[[0,1],:,[1,2]]', (2, 5), (5, 1), 0, 'IndexBackward0', False),
    ('x[range(2)]', (2, 5, 6), (30, 6, 1), 0, 'IndexBackward0', False),
    ('x[0, [True,False,True,True,False]]', (3, 6), (6, 1), 0, 'IndexBackward0', False),
    ('x[[]]', (0, 5, 6), (30, 6, 1), 0, 'IndexBackward0', False),
    ('x[[],0]', (0, 6), (6, 1), 0, 'IndexBackward0', False),
    ("torch.meshgrid(x[0,0],x[0,1],indexing='ij')[0]", (6, 6), (1, 0), 0, 'ExpandBackward0', True),
    ('x.index_select(0,torch.tensor([0]))', (1, 5, 6), (30, 6, 1), 0, 'IndexSelectBackward0', False),
    ('x.index_put((torch.tensor([0]),),torch.zeros(5,6))', (4, 5, 6), (30, 6, 1), 0, 'IndexPutBackward0', False),
]
ERRORS: list[tuple[str, str, str]] = [
    ('x[1.5]', 'IndexError', 'only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)'),
    ('x["a"]', 'TypeError', "new(): invalid data type 'str'"),
    ('x[0,0,0,0]', 'IndexError', 'too many indices for tensor of dimension 3'),
    ('x[9]', 'IndexError', 'index 9 is out of bounds for dimension 0 with size 4'),
    ('x[torch.tensor([9])]', 'IndexError', 'index 9 is out of bounds for dimension 0 with size 4'),
    ('x[torch.tensor([0.5])]', 'IndexError', 'tensors used as indices must be long, int, byte or bool tensors'),
    ('x[[0,1],[0,1,2]]', 'IndexError', 'shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]'),
    ('x[torch.ones(3,dtype=torch.bool)]', 'IndexError', 'The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [4, 5, 6] at index 0'),
    ('x[::-1]', 'ValueError', 'step must be greater than zero'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "shape", "stride", "offset", "node", "is_view"), LAYOUTS)
def test_layout(
    expression: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    node: str | None,
    is_view: bool,
    layout_of: Callable[[str], Any],
) -> None:
    assert layout_of(expression) == (shape, stride, offset, node, is_view)


@pytest.mark.parametrize(("expression", "kind", "text"), ERRORS)
def test_error(expression: str, kind: str, text: str, refusal_of: Callable[[str], Any]) -> None:
    assert refusal_of(expression) == (kind, text)


def assigned(statement: str) -> list[object]:
    """The elements of a 3 by 4 tensor of zeros after a statement."""
    y = torch.zeros(3, 4)
    exec(statement, {"torch": torch, "y": y})
    return y.tolist()


# fmt: off
ASSIGNED: list[tuple[str, list[list[float]]]] = [
    ('y[0] = 5', [[5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
    ('y[:, 1] = torch.arange(3.)', [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]),
    ('y[1:, ::2] = torch.tensor([[1.], [2.]])', [[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [2.0, 0.0, 2.0, 0.0]]),
    ('y[[0, 2]] = torch.tensor([1., 2., 3., 4.])', [[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]]),
    ('y[[0, 2], [1, 3]] = 7', [[0.0, 7.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 7.0]]),
    ('y[torch.eye(3, 4, dtype=torch.bool)] = -1', [[-1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0]]),
    ('y[y == 0] = 2', [[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]),
    ('y[..., 0] = 3', [[3.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]]),
    ('y[None] = 4', [[4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0]]),
    ('y[True] = 5', [[5.0, 5.0, 5.0, 5.0], [5.0, 5.0, 5.0, 5.0], [5.0, 5.0, 5.0, 5.0]]),
    ('y[False] = 6', [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
    ('y[0, 1] = torch.tensor(9)', [[0.0, 9.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
    ('y[torch.tensor([[0, 1], [1, 2]]), 0] = torch.tensor([[1., 2.], [3., 4.]])', [[1.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0]]),
    ('y.index_put_((torch.tensor([0, 0]),), torch.ones(4), accumulate=True)', [[2.0, 2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
    ('y[-1] = 8', [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [8.0, 8.0, 8.0, 8.0]]),
    ('y[1][2] = 3', [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
    ('y[0:2][0, 1:3] = torch.tensor([5., 6.])', [[0.0, 5.0, 6.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]),
]
# fmt: on


@pytest.mark.parametrize(("statement", "values"), ASSIGNED)
def test_assignment(statement: str, values: list[list[float]]) -> None:
    assert assigned(statement) == values


def test_gradients_reach_through_reads_and_writes() -> None:
    x = torch.arange(6.0, requires_grad=True)
    y = x * 1
    y[[0, 0, 3]] = torch.tensor([10.0, 20.0, 30.0])
    (y[1:4] * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0, 0.0, 0.0, 0.0]


def test_equal_positions_add_up_in_the_gradient() -> None:
    x = torch.arange(3.0, requires_grad=True)
    x[[0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 1.0]
