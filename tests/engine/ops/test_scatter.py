# ruff: noqa: E501
"""Reading and writing by index, as PyTorch 2.13 prints them, and its refusals."""

from __future__ import annotations

import warnings

import pytest

from stridescope.engine import torch

SETUP = """
f = torch.arange(6.0).reshape(2, 3) - 2
i = torch.tensor([[3, -1, 4], [1, -5, 9]])
b = torch.tensor([[True, False, True], [False, False, True]])
c = torch.tensor([1 + 2j, -3 + 0.5j, 0j])
h = torch.tensor([0.1, 2.0, -3.3], dtype=torch.float16)
u = torch.tensor([250, 3, 7], dtype=torch.uint8)
n = torch.tensor([1.0, float("nan"), -2.0, float("inf")])
s = torch.tensor(2.0)
e = torch.zeros(0)
m = torch.tensor([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]])
g = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)
"""
# fmt: off
PRINTED: list[tuple[str, str]] = [
    ('f.gather(1, torch.tensor([[0], [2]]))',
     'tensor([[-2.],\n        [ 3.]])'),
    ('f.gather(0, torch.tensor([[1, 0, 1]]))',
     'tensor([[ 1., -1.,  3.]])'),
    ('f.scatter(1, torch.tensor([[0], [2]]), 9.0)',
     'tensor([[ 9., -1.,  0.],\n        [ 1.,  2.,  9.]])'),
    ('f.scatter(1, torch.tensor([[0, 1], [2, 0]]), -f)',
     'tensor([[ 2.,  1.,  0.],\n        [-2.,  2., -1.]])'),
    ('f.scatter_add(1, torch.tensor([[0, 0, 0], [2, 2, 2]]), f)',
     'tensor([[-5., -1.,  0.],\n        [ 1.,  2.,  9.]])'),
    ('f.scatter_reduce(1, torch.tensor([[0, 0, 0], [2, 2, 2]]), f, "amax")',
     'tensor([[ 0., -1.,  0.],\n        [ 1.,  2.,  3.]])'),
    ('f.scatter_reduce(1, torch.tensor([[0, 0, 0], [2, 2, 2]]), f, "mean", include_self=False)',
     'tensor([[-1., -1.,  0.],\n        [ 1.,  2.,  2.]])'),
    ('f.scatter_reduce(0, torch.tensor([[0, 0, 0]]), f, "prod")',
     'tensor([[4., 1., 0.],\n        [1., 2., 3.]])'),
    ('f.index_add(0, torch.tensor([1, 1]), f)',
     'tensor([[-2., -1.,  0.],\n        [ 0.,  3.,  6.]])'),
    ('f.index_add(1, torch.tensor([0]), f[:, :1], alpha=2)',
     'tensor([[-6., -1.,  0.],\n        [ 3.,  2.,  3.]])'),
    ('f.index_copy(0, torch.tensor([1]), f[:1])',
     'tensor([[-2., -1.,  0.],\n        [-2., -1.,  0.]])'),
    ('f.index_fill(1, torch.tensor([0, 2]), 7)',
     'tensor([[ 7., -1.,  7.],\n        [ 7.,  2.,  7.]])'),
    ('f.index_select(1, torch.tensor([2, 0]))',
     'tensor([[ 0., -2.],\n        [ 3.,  1.]])'),
    ('f.masked_fill(b, -1)',
     'tensor([[-1., -1., -1.],\n        [ 1.,  2., -1.]])'),
    ('f.masked_select(b)',
     'tensor([-2.,  0.,  3.])'),
    ('f.masked_scatter(b, torch.tensor([10.0, 20.0, 30.0]))',
     'tensor([[10., -1., 20.],\n        [ 1.,  2., 30.]])'),
    ('f.take(torch.tensor([0, 5, -1]))',
     'tensor([-2.,  3.,  3.])'),
    ('f.put(torch.tensor([0, -1]), torch.tensor([8.0, 9.0]))',
     'tensor([[ 8., -1.,  0.],\n        [ 1.,  2.,  9.]])'),
    ('f.put(torch.tensor([1, 1]), torch.tensor([1.0, 1.0]), accumulate=True)',
     'tensor([[-2.,  1.,  0.],\n        [ 1.,  2.,  3.]])'),
    ('torch.take_along_dim(f, f.argsort(1), 1)',
     'tensor([[-2., -1.,  0.],\n        [ 1.,  2.,  3.]])'),
    ('f.tril()',
     'tensor([[-2.,  0.,  0.],\n        [ 1.,  2.,  0.]])'),
    ('f.triu(1)',
     'tensor([[ 0., -1.,  0.],\n        [ 0.,  0.,  3.]])'),
    ('torch.kron(f[:1], i[:1])',
     'tensor([[-6.,  2., -8., -3.,  1., -4.,  0., -0.,  0.]])'),
    ('torch.outer(f[0], i[0])',
     'tensor([[-6.,  2., -8.],\n        [-3.,  1., -4.],\n        [ 0., -0.,  0.]])'),
    ('torch.unravel_index(torch.tensor([5, 2]), (2, 3))',
     '(tensor([1, 0]), tensor([2, 2]))'),
    ('torch.nn.functional.one_hot(torch.tensor([0, 2]))',
     'tensor([[1, 0, 0],\n        [0, 0, 1]])'),
    ('f.gather(1, torch.tensor([[5]]))',
     'RuntimeError: index 5 is out of bounds for dimension 1 with size 3'),
    ('f.gather(0, i[0])',
     'RuntimeError: Index tensor must have the same number of dimensions as input tensor'),
    ('f.gather(0, f)',
     'RuntimeError: gather(): Expected dtype int32/int64 for index'),
    ('f.scatter(0, torch.zeros(2, 3).long(), i)',
     'RuntimeError: scatter(): Expected self.dtype to be equal to src.dtype'),
    ('f.scatter(0, torch.zeros(3, 3).long(), f)',
     'RuntimeError: Expected index [3, 3] to be no larger than self [2, 3] apart from dimension 0 and to be no larger size than src [2, 3]'),
    ('f.scatter(0, torch.zeros(2, 3).long(), 1.0, reduce="foo")',
     'RuntimeError: reduce argument must be either add or multiply.'),
    ('f.scatter_reduce(0, torch.zeros(2, 3).long(), f, "foo")',
     'RuntimeError: reduce argument must be either sum, prod, mean, amax or amin, got foo'),
    ('f.index_select(0, torch.tensor([5]))',
     'IndexError: index out of range in self'),
    ('f.index_select(0, torch.tensor([0.0]))',
     'RuntimeError: index_select(): Expected dtype int32 or int64 for index'),
    ('f.index_add(0, torch.tensor([5]), f[:1])',
     'RuntimeError: index 5 is out of bounds for dimension 0 with size 2'),
    ('f.index_add(0, torch.tensor([0]), i[:1])',
     'RuntimeError: index_add_(): self (Float) and source (Long) must have the same scalar type'),
    ('f.index_copy(0, torch.tensor([0]), f)',
     'IndexError: index_copy_(): Number of indices (1) should be equal to source.size(dim) (2)'),
    ('f.index_fill(0, torch.tensor([5]), 1)',
     'IndexError: index 5 is out of bounds for dimension 0 with size 2'),
    ('f.masked_fill(i, 0)',
     'RuntimeError: masked_fill_ only supports boolean masks, but got mask with dtype long int'),
    ('f.masked_fill(b, 1j)',
     'RuntimeError: value cannot be converted to type float without overflow'),
    ('f.masked_select(f)',
     'RuntimeError: masked_select: expected BoolTensor for mask'),
    ('f.masked_scatter(b, f[0, :1])',
     'RuntimeError: Number of elements of source < number of ones in mask'),
    ('f.take(torch.tensor([9]))',
     'IndexError: out of range: tried to access index 9 on a tensor of 6 elements.'),
    ('f.put(torch.tensor([1]), f)',
     'IndexError: put_(): Expected source and index to have the same number of elements, but got source.numel() = 6, index.numel() = 1'),
    ('g.gather(0, torch.tensor([1]))',
     'tensor([1.5000], grad_fn=<GatherBackward0>)'),
    ('g.index_select(0, torch.tensor([0, 0]))',
     'tensor([0.5000, 0.5000], grad_fn=<IndexSelectBackward0>)'),
    ('f.tril_().sum()',
     'tensor(1.)'),
    ('s.tril()',
     'RuntimeError: tril: input tensor must have at least 2 dimensions'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "printed"), PRINTED, ids=[expression for expression, _ in PRINTED])
def test_prints_what_pytorch_prints(expression: str, printed: str) -> None:
    names = {"torch": torch}
    exec(SETUP, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = repr(eval(expression, names))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    assert found == printed
