"""Writes through the parts, conjugates and negatives of complex tensors: what the gradients become."""

import torch


def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)


def written(view):
    v, c = torch.ones(2, requires_grad=True), torch.zeros(2, 2, dtype=torch.complex64) * 1
    view(c).copy_(v)
    c.abs().sum().backward()
    return v.grad, c.grad_fn.name(), [node and node.name() for node, _ in c.grad_fn.next_functions]


for view in (
    lambda c: c.real[0], lambda c: c.imag[1], lambda c: torch.view_as_real(c)[0, :, 1], lambda c: c[0].real,
    lambda c: c.real,
):
    told(lambda: written(view))


def pairs():
    v, c = torch.ones(2, dtype=torch.complex64, requires_grad=True), torch.zeros(2, 2) * 1
    torch.view_as_complex(c).copy_(v)
    (c * torch.tensor([[1.0, 2], [3, 4]])).sum().backward()
    return v.grad


def turned():
    v, c = torch.ones(2, requires_grad=True), torch.zeros(2, dtype=torch.complex64) * 1
    c.conj().imag.copy_(v)
    (c.imag * 3).sum().backward()
    return v.grad


def scaled():
    x = torch.zeros(3, dtype=torch.complex64, requires_grad=True)
    y = x * 1
    y.real[1:].mul_(2)
    y.imag.add_(1)
    y.abs().sum().backward()
    return x.grad


for case in (pairs, turned, scaled):
    told(case)
