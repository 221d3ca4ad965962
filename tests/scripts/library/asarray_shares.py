"""What torch.asarray shares, copies and tracks, for each kind of source."""

import itertools

import numpy as np
import torch


def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, str(error)[:300])


def facts(x, options):
    y = torch.asarray(x, **options)
    node = y.grad_fn and y.grad_fn.name()
    return y is x, y.requires_grad, y.is_leaf, node, y.data_ptr() == x.data_ptr(), x.requires_grad


plain, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
ways = list(itertools.product((None, False, True), (None, True, False), (None, torch.float32, torch.float64)))
for x in (plain, leaf, leaf * 2):
    for tracked, copy, kind in ways:
        print(tracked, copy, kind, end=" ")
        told(lambda: facts(x, {"copy": copy, "dtype": kind, "requires_grad": tracked}))
    told(lambda: facts(x, {}))

sources = [
    np.ones(2, dtype=np.float32), [1, 2], 3, 3.5, True, b"abcd", np.float64(2), range(3), (1, 2j), torch.tensor([1]),
    np.array(3),
]
for source in sources:
    for tracked, copy, kind in itertools.product((False, True), (None, True, False), (None, torch.float32, torch.int8)):
        told(lambda: torch.asarray(source, copy=copy, dtype=kind, requires_grad=tracked))
