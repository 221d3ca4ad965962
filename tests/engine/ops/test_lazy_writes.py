# ruff: noqa: E501
"""Writing into tensors that are read conjugated or negated, as PyTorch 2.13 does: what it refuses, and what not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

# fmt: off
PRINTED: list[tuple[str, str]] = [
    ('c.expand(2, 3).conj().fill_(2)',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.expand(2, 3).conj().zero_()',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.imag.expand(2, 3).zero_()',
     'tensor([[0., 0., 0.],\n        [0., 0., 0.]])'),
    ('c.conj().imag.expand(2, 3).zero_()',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().imag.expand(2, 3).fill_(1)',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().expand(2, 3).masked_fill_(b, 1)',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().expand(2, 3).index_fill_(0, torch.tensor([0]), 1)',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().expand(2, 3).conj_physical_()',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.expand(2, 3).conj_physical_()',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().imag.expand(2, 3).conj_physical_()',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().expand(2, 3).add_(1)',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().expand(2, 3).bernoulli_(0.5)',
     'NotImplementedError: "bernoulli_scalar_cpu_" not implemented for \'ComplexFloat\''),
    ('c.conj().imag.expand(2, 3).sub_(1j)',
     "RuntimeError: result type ComplexFloat can't be cast to the desired output type Float"),
    ('c.conj().imag.expand(2, 3).bernoulli_(1.0)',
     'RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c.conj().imag.bernoulli_(1.0)',
     'tensor([1., 1., 1.])'),
    ('c.conj().imag.bernoulli_(torch.tensor([0.0, 1.0, 1.0]))',
     'tensor([0., 1., 1.])'),
    ('c.conj().fill_(1 + 2j)',
     'tensor([1.+2.j, 1.+2.j, 1.+2.j])'),
    ('c.conj().masked_fill_(b[0], 1 + 2j)',
     'tensor([ 1.+2.0000j, -3.-0.5000j,  1.+2.0000j])'),
    ('c.conj().index_fill_(0, torch.tensor([1]), 1 + 2j)',
     'tensor([1.-2.j, 1.+2.j, 0.-0.j])'),
    ('c.conj().imag.masked_fill_(b[0], 7)',
     'tensor([ 7.0000, -0.5000,  7.0000])'),
    ('c.conj().imag.index_fill_(0, torch.tensor([1]), 7)',
     'tensor([-2.,  7., -0.])'),
    ('c[:2].conj().add_(c[1:])',
     'tensor([-2.-1.5000j, -3.-0.5000j])'),
    ('c[:2].add_(c[1:].conj())',
     'tensor([-2.+1.5000j, -3.+0.5000j])'),
    ('c[:2].add_(c[1:])',
     'RuntimeError: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.'),
    ('c[:2].imag.mul_(c[1:].conj().imag)',
     'tensor([-1., -0.])'),
    ('c[:2].index_copy_(0, torch.tensor([1, 0]), c[:2].conj())',
     'tensor([-3.-0.5000j,  1.-2.0000j])'),
    ('torch.add(c[:2], 1, out=c[1:].conj())',
     'tensor([ 2.+2.0000j, -2.+0.5000j])'),
    ('torch.gather(c.conj(), 0, torch.tensor([2, 0, 1]), out=c)',
     'tensor([ 0.-0.0000j,  1.-2.0000j, -3.-0.5000j])'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "printed"), PRINTED, ids=[expression for expression, _ in PRINTED])
def test_prints_what_pytorch_prints(expression: str, printed: str, printed_by_us: Callable[[str], str]) -> None:
    assert printed_by_us(expression) == printed
