"""Indices that vmap maps over: each example has its own; numbers cannot be made of them."""

import torch
from torch.func import vmap


def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, str(error)[:120])


x, places = torch.arange(1.0, 4.0), torch.tensor([0, 2])
table = torch.arange(9.0).view(3, 3)
told(lambda: vmap(lambda i: x[i])(places))
told(lambda: vmap(lambda i: torch.eye(3)[i])(torch.tensor([2, 1])))
told(lambda: vmap(lambda i: x.view(3, 1)[i, 0])(places))
told(lambda: vmap(lambda i: table[1:, i])(places))
told(lambda: vmap(lambda i, j: table[i, j])(places, places))
told(lambda: vmap(lambda row, i: row[i])(table[:2], places))
told(lambda: vmap(lambda row, i: row[i], (0, None))(table, torch.tensor(1)))
told(lambda: vmap(lambda i: x[int(i)])(places))
told(lambda: vmap(lambda i: x * float(i))(places))
told(lambda: vmap(lambda i: [1, 2, 3][i])(places))
told(lambda: [x[i] for i in places])
for dim in (3, 1, -1, -2, -3):
    told(lambda: vmap(lambda a: a, out_dims=dim)(torch.arange(3.0)))
    told(lambda: vmap(lambda a: a, out_dims=dim)(torch.ones(2, 3)).shape)
