# ruff: noqa: E501
"""Masks of several dims among other keys, and the strides of what index tensors gather, as in PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable

import pytest

# fmt: off
PRINTED: list[tuple[str, str]] = [
    ('torch.arange(24).reshape(2, 3, 4)[b, [0, 1, 3]]',
     'tensor([ 0,  9, 23])'),
    ('torch.arange(24).reshape(2, 3, 4)[b, 2:]',
     'tensor([[ 2,  3],\n        [10, 11],\n        [22, 23]])'),
    ('torch.arange(24).reshape(2, 3, 4)[b, None, torch.tensor([3])]',
     'tensor([[ 3],\n        [11],\n        [23]])'),
    ('torch.arange(24).reshape(2, 3, 4)[b, ..., [1, 2, 3]]',
     'tensor([ 1, 10, 23])'),
    ('torch.arange(24).reshape(2, 3, 4)[b, [True, False, False, False]]',
     'tensor([ 0,  8, 20])'),
    ('torch.arange(24).reshape(2, 3, 4)[:, b.T[:, :1].expand(3, 4), ...]',
     'tensor([[ 0,  1,  2,  3,  8,  9, 10, 11],\n        [12, 13, 14, 15, 20, 21, 22, 23]])'),
    ('torch.arange(24).reshape(2, 3, 4)[b, 1]',
     'tensor([ 1,  9, 21])'),
    ('torch.arange(24).reshape(2, 3, 4)[b, True]',
     'tensor([[ 0,  1,  2,  3],\n        [ 8,  9, 10, 11],\n        [20, 21, 22, 23]])'),
    ('torch.arange(24).reshape(2, 3, 4)[b.tolist(), [0, 0, 1]]',
     'tensor([ 0,  8, 21])'),
    ('torch.arange(24).reshape(2, 3, 4)[b, [0, 1]]',
     'IndexError: shape mismatch: indexing tensors could not be broadcast together with shapes [3], [3], [2]'),
    ('torch.arange(24).reshape(2, 3, 4)[b, 0, 0]',
     'IndexError: too many indices for tensor of dimension 3'),
    ('torch.arange(24).reshape(2, 3, 4).index_put((b, torch.tensor(0)), torch.tensor(-1))',
     'tensor([[[-1,  1,  2,  3],\n         [ 4,  5,  6,  7],\n         [-1,  9, 10, 11]],\n\n        [[12, 13, 14, 15],\n         [16, 17, 18, 19],\n         [-1, 21, 22, 23]]])'),
    ('i[torch.tensor([0, 1], dtype=torch.int32).expand(3, 2)].stride()',
     '(6, 3, 1)'),
    ('i[torch.tensor([[0], [1]], dtype=torch.int32), torch.tensor([1, 2], dtype=torch.int32)].stride()',
     '(2, 1)'),
    ('f[torch.tensor([0, 1]).expand(3, 2), :0].stride()',
     '(2, 1, 1)'),
    ('f[:0, torch.tensor([0, 1]).expand(3, 2)].stride()',
     '(6, 2, 1)'),
    ('torch.arange(3)[torch.tensor([[0, -9, 7], [5, 1, 0]]).t()]',
     'IndexError: index -9 is out of bounds for dimension 0 with size 3'),
    ('torch.arange(3)[torch.tensor([[0, -9, 7], [5, 1, 0]])]',
     'IndexError: index -9 is out of bounds for dimension 0 with size 3'),
    ('torch.arange(24).reshape(2, 3, 4)[torch.tensor([0, 1]), torch.tensor([9, 0])]',
     'IndexError: index 9 is out of bounds for dimension 1 with size 3'),
    ('torch.arange(24).reshape(2, 3, 4)[torch.tensor([0, 7]), torch.tensor([9, 0])]',
     'IndexError: index 9 is out of bounds for dimension 1 with size 3'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "printed"), PRINTED, ids=[expression for expression, _ in PRINTED])
def test_prints_what_pytorch_prints(expression: str, printed: str, printed_by_us: Callable[[str], str]) -> None:
    assert printed_by_us(expression) == printed
