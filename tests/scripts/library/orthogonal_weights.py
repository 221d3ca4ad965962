"""Orthogonal parametrizations of square, tall and wide weights by all three maps, trained a little."""

import torch
import torch.nn as nn
from torch.nn.utils import parametrizations, parametrize

for sizes in ((3, 3), (4, 2), (2, 5)):
    for mapping in (None, "matrix_exp", "cayley", "householder"):
        for trivial in (True, False):
            torch.manual_seed(0)
            layer = nn.Linear(*sizes)
            before = layer.weight.detach().clone()
            parametrizations.orthogonal(layer, orthogonal_map=mapping, use_trivialization=trivial)
            print(sizes, mapping, trivial, f"{torch.rand(1).item():.6f}", layer.parametrizations.weight.original.shape)
            print("  ", [f"{v:.4f}" for v in layer.weight.flatten().tolist()])
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            for _ in range(3):
                loss = layer(torch.ones(2, sizes[0])).square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            q = layer.weight.detach()
            q = q if q.shape[0] >= q.shape[1] else q.T
            print("  ", f"{loss.item():.4f}", torch.dist(q.T @ q, torch.eye(q.shape[1])).item() < 1e-5, list(layer.state_dict()))
            try:
                layer.weight = nn.init.orthogonal_(torch.empty(sizes[1], sizes[0]))
                print("  ", [f"{v:.4f}" for v in layer.weight.flatten().tolist()][:4])
            except NotImplementedError as error:
                print("  ", error)
for bad in (lambda: parametrizations.orthogonal(nn.Linear(2, 2), "bias"), lambda: parametrizations.orthogonal(nn.Linear(2, 2), "no"), lambda: parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x")):
    try:
        bad()
    except ValueError as error:
        print(error)
