"""The bits of small linear layers and products, as PyTorch's BLAS rounds them."""

import torch

torch.manual_seed(7)
for rows, inner, columns in ((8, 3, 4), (8, 4, 1), (5, 2, 7), (3, 5, 3), (1, 4, 9), (6, 1, 6), (16, 3, 2), (4, 3, 3)):
    x, layer = torch.randn(rows, inner), torch.nn.Linear(inner, columns)
    y = layer(x)
    print(rows, inner, columns, y.view(torch.int32).flatten().tolist()[:8])
    y.square().sum().backward()
    print("  ", [f"{v:.9g}" for v in layer.bias.grad.tolist()])
a, b = torch.randn(5, 7), torch.randn(7, 4)
print((a @ b).view(torch.int32).flatten().tolist())
