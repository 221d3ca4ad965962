# ruff: noqa: E501
"""Where kernels take short cuts they come to what PyTorch 2.13 prints: windows, steps in place, joins, losses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

# fmt: off
PRINTED: list[tuple[str, str]] = [
    ("torch.nn.functional.max_pool1d(torch.tensor([[[1., float('nan'), 3., float('nan')], [2., float('nan'), 0., 5.]]]), 4, return_indices=True)",
     '(tensor([[[nan],\n         [nan]]]), tensor([[[3],\n         [1]]]))'),
    ("torch.nn.functional.max_pool2d(torch.full((1, 1, 4, 4), float('-inf')), 3, 2, 1, 2, return_indices=True)",
     '(tensor([[[[-inf]]]]), tensor([[[[5]]]]))'),
    ('torch.nn.functional.max_pool1d(torch.tensor([[[-0., 0., -0., 1.]]]), 2, 1, return_indices=True)',
     '(tensor([[[-0., 0., 1.]]]), tensor([[[0, 1, 3]]]))'),
    ('torch.nn.functional.max_pool2d(torch.arange(16).view(1, 1, 4, 4) % 5, 2, return_indices=True)',
     '(tensor([[[[4, 3],\n          [4, 4]]]]), tensor([[[[ 4,  3],\n          [ 9, 14]]]]))'),
    ('f.clone().t().add_(torch.ones(3, 2).t().t(), alpha=0.5)',
     'tensor([[-1.5000,  1.5000],\n        [-0.5000,  2.5000],\n        [ 0.5000,  3.5000]])'),
    ('f.clone().addcmul_(torch.arange(3.), torch.ones(2, 1) * 3, value=0.5)',
     'tensor([[-2.0000,  0.5000,  3.0000],\n        [ 1.0000,  3.5000,  6.0000]])'),
    ('f.clone().lerp_(f + 10, 0.7)',
     'tensor([[ 5.,  6.,  7.],\n        [ 8.,  9., 10.]])'),
    ('f.clone().lerp_(f + 10, 0.2)',
     'tensor([[2.9802e-08, 1.0000e+00, 2.0000e+00],\n        [3.0000e+00, 4.0000e+00, 5.0000e+00]])'),
    ('f.clone().view(2, 3).mul_(torch.arange(3.))',
     'tensor([[-0., -1.,  0.],\n        [ 0.,  2.,  6.]])'),
    ('f.clone().add_(torch.arange(2.))',
     'RuntimeError: The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1'),
    ('f.norm(dim=1)',
     'tensor([2.2361, 3.7417])'),
    ('torch.cat([f, f[:, :1]], 1)',
     'tensor([[-2., -1.,  0., -2.],\n        [ 1.,  2.,  3.,  1.]])'),
    ('torch.cat([f, f[:1, :2]])',
     'RuntimeError: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 in the list.'),
    ('torch.where(f > 0, f, -f)',
     'tensor([[2., 1., -0.],\n        [1., 2., 3.]])'),
    ('torch.nn.functional.layer_norm(f, (3,), torch.arange(3.), torch.ones(3))',
     'tensor([[1.0000, 1.0000, 3.4495],\n        [1.0000, 1.0000, 3.4495]])'),
    ('torch.nn.functional.cross_entropy(f, torch.tensor([2, -100]))',
     'tensor(0.4076)'),
    ('torch.nn.functional.cross_entropy(f, torch.tensor([2, 3]))',
     'IndexError: Target 3 is out of bounds.'),
    ('torch.nn.functional.cross_entropy(f, torch.tensor([2, -1]))',
     'IndexError: Target -1 is out of bounds.'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "printed"), PRINTED, ids=[expression for expression, _ in PRINTED])
def test_prints_what_pytorch_prints(expression: str, printed: str, printed_by_us: Callable[[str], str]) -> None:
    assert printed_by_us(expression) == printed
