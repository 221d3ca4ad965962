# ruff: noqa: E501
"""Order, choice among equals, search, as PyTorch 2.13 prints them, and its refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

# fmt: off
PRINTED: list[tuple[str, str]] = [
    ('f.sort(descending=True)',
     'torch.return_types.sort(\nvalues=tensor([[ 0., -1., -2.],\n        [ 3.,  2.,  1.]]),\nindices=tensor([[2, 1, 0],\n        [2, 1, 0]]))'),
    ('i.sort()',
     'torch.return_types.sort(\nvalues=tensor([[-1,  3,  4],\n        [-5,  1,  9]]),\nindices=tensor([[1, 0, 2],\n        [1, 0, 2]]))'),
    ('i.sort(0)',
     'torch.return_types.sort(\nvalues=tensor([[ 1, -5,  4],\n        [ 3, -1,  9]]),\nindices=tensor([[1, 1, 0],\n        [0, 0, 1]]))'),
    ('n.sort()',
     'torch.return_types.sort(\nvalues=tensor([-2.,  1., inf, nan]),\nindices=tensor([2, 0, 3, 1]))'),
    ('n.sort(descending=True)',
     'torch.return_types.sort(\nvalues=tensor([nan, inf,  1., -2.]),\nindices=tensor([1, 3, 0, 2]))'),
    ('i.argsort(1)',
     'tensor([[1, 0, 2],\n        [1, 0, 2]])'),
    ('i.topk(2)',
     'torch.return_types.topk(\nvalues=tensor([[4, 3],\n        [9, 1]]),\nindices=tensor([[2, 0],\n        [2, 0]]))'),
    ('i.topk(2, largest=False)',
     'torch.return_types.topk(\nvalues=tensor([[-1,  3],\n        [-5,  1]]),\nindices=tensor([[1, 0],\n        [1, 0]]))'),
    ('i.topk(1, 0)',
     'torch.return_types.topk(\nvalues=tensor([[ 3, -1,  9]]),\nindices=tensor([[0, 0, 1]]))'),
    ('i.kthvalue(2)',
     'torch.return_types.kthvalue(\nvalues=tensor([3, 1]),\nindices=tensor([0, 0]))'),
    ('f.msort()',
     'tensor([[-2., -1.,  0.],\n        [ 1.,  2.,  3.]])'),
    ('torch.unique(torch.tensor([3, 1, 3, 2]))',
     'tensor([1, 2, 3])'),
    ('torch.unique(torch.tensor([3, 1, 3]), return_inverse=True, return_counts=True)',
     '(tensor([1, 3]), tensor([1, 0, 1]), tensor([1, 2]))'),
    ('torch.unique(torch.tensor([[1, 2], [1, 2], [0, 1]]), dim=0)',
     'tensor([[0, 1],\n        [1, 2]])'),
    ('torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_counts=True)',
     '(tensor([1, 2, 1]), tensor([2, 1, 1]))'),
    ('torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6, 0]))',
     'tensor([1, 3, 0])'),
    ('torch.searchsorted(torch.tensor([1, 3, 5]), 3, right=True)',
     'tensor(2)'),
    ('torch.bucketize(f, torch.tensor([-1.0, 0.5]))',
     'tensor([[0, 0, 1],\n        [2, 2, 2]])'),
    ('torch.isin(i, torch.tensor([3, 9]))',
     'tensor([[ True, False, False],\n        [False, False,  True]])'),
    ('torch.isin(i, 4, invert=True)',
     'tensor([[ True,  True, False],\n        [ True,  True,  True]])'),
    ('b.sort()',
     'torch.return_types.sort(\nvalues=tensor([[False,  True,  True],\n        [False, False,  True]]),\nindices=tensor([[1, 0, 2],\n        [0, 1, 2]]))'),
    ('torch.tensor([2, 2, 1, 2, 1]).topk(3)',
     'torch.return_types.topk(\nvalues=tensor([2, 2, 2]),\nindices=tensor([0, 3, 1]))'),
    ('torch.tensor([2, 2, 1, 2, 1]).kthvalue(4)',
     'torch.return_types.kthvalue(\nvalues=tensor(2),\nindices=tensor(1))'),
    ('torch.tensor([5, 5, 3, 3, 5]).mode()',
     'torch.return_types.mode(\nvalues=tensor(5),\nindices=tensor(4))'),
    ('torch.ones(20).topk(3)',
     'torch.return_types.topk(\nvalues=tensor([1., 1., 1.]),\nindices=tensor([12, 14, 13]))'),
    ('torch.tensor([1.0, 1.0, 0.0] * 9).topk(5)',
     'torch.return_types.topk(\nvalues=tensor([1., 1., 1., 1., 1.]),\nindices=tensor([15, 18, 16, 19, 13]))'),
    ('torch.tensor([1, 0, 1] * 7).median(0)',
     'torch.return_types.median(\nvalues=tensor(1),\nindices=tensor(5))'),
    ('f.sort(2)',
     'IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('f.topk(9)',
     'RuntimeError: selected index k out of range'),
    ('c.sort()',
     'RuntimeError:  Sort does not support complex dtypes on CPU'),
    ('torch.unique(c)',
     'NotImplementedError: "unique" not implemented for \'ComplexFloat\''),
    ('torch.searchsorted(f, f[0])',
     'RuntimeError: torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor [2, 3] and input value tensor [3]'),
    ('torch.searchsorted(f[0], f, side="foo")',
     "RuntimeError: torch.searchsorted(): side can only be 'left' or 'right' but got foo"),
    ('torch.bucketize(f, f)',
     'RuntimeError: boundaries tensor must be 1 dimension, but got dim(2)'),
    ('torch.isin(c, c)',
     'RuntimeError: Unsupported input type encountered for isin(): ComplexFloat'),
    ('i.sort(stable=True)',
     'torch.return_types.sort(\nvalues=tensor([[-1,  3,  4],\n        [-5,  1,  9]]),\nindices=tensor([[1, 0, 2],\n        [1, 0, 2]]))'),
    ('g.sort()',
     'torch.return_types.sort(\nvalues=tensor([0.5000, 1.5000, 2.5000], grad_fn=<SortBackward0>),\nindices=tensor([0, 1, 2]))'),
    ('g.topk(2)',
     'torch.return_types.topk(\nvalues=tensor([2.5000, 1.5000], grad_fn=<TopkBackward0>),\nindices=tensor([2, 1]))'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "printed"), PRINTED, ids=[expression for expression, _ in PRINTED])
def test_prints_what_pytorch_prints(expression: str, printed: str, printed_by_us: Callable[[str], str]) -> None:
    assert printed_by_us(expression) == printed
