"""Writes through views, a backward pass that works and one that fails, and lines without ops."""

import torch

x = torch.arange(6.0, requires_grad=True)
y = x * 2
v = y[1:4]
v.mul_(3)
loss = y.exp().sum() + torch.as_strided(x, (2, 2), (1, 2)).sum()
loss.backward()
print(x.grad is not None)
print("with a dot.")
a = torch.ones(3, requires_grad=True)
c = a.exp()
try:
    c.mul_(2)
    c.sum().backward()
except RuntimeError as error:
    print(type(error))
m = torch.zeros(2, 2)
m[0] = 1
later = m.t()
raise ValueError("the end.")
