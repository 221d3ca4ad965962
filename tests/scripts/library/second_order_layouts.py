"""Layouts of second derivatives of convolutions, nodes of smoothed losses, and strides of NumPy's empty arrays."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def chain(node, depth=0):
    if node is not None and depth < 10:
        print(" " * depth + type(node).__name__)
        for following, _ in node.next_functions:
            chain(following, depth + 1)


for layer, shape in (
    (nn.Conv1d(4, 5, 3), (2, 4, 8)), (nn.Conv2d(4, 5, 3), (2, 4, 6, 6)), (nn.Conv3d(4, 5, 3), (1, 4, 4, 4, 4)),
    (nn.ConvTranspose1d(4, 5, 3), (2, 4, 8)), (nn.ConvTranspose2d(4, 5, 3), (2, 4, 6, 6)),
    (nn.Conv2d(4, 4, 3, groups=2), (2, 4, 6, 6)),
):  # fmt: skip
    x = torch.ones(shape, requires_grad=True)
    (first,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    of_input, of_weight = torch.autograd.grad(first.square().sum(), (x, layer.weight))
    print(type(layer).__name__, first.stride(), of_input.stride(), tuple(of_weight.shape), of_weight.stride())

for reduction in ("mean", "none"):
    scores, shares = torch.ones(2, 3, requires_grad=True), torch.full((2, 3), 1 / 3, requires_grad=True)
    chain(F.cross_entropy(scores, shares, reduction=reduction, label_smoothing=0.1).grad_fn)

for delta in (1j, "x", None, True, -1):
    try:
        print(nn.HuberLoss(delta=delta).delta)
    except TypeError as error:
        print(error)

for shape in ((0,), (0, 2), (2, 0), (1, 3)):
    print(torch.from_numpy(np.zeros(shape, np.float32)).stride(), torch.as_tensor(np.zeros(shape)).stride())
