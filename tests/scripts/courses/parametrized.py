"""Parametrizations: symmetric, orthogonal, weight and spectral norm; pruning; weights tied and frozen."""

import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils import parametrizations, prune

torch.manual_seed(4)


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class Skew(nn.Module):
    def forward(self, X):
        A = X.triu(1)
        return A - A.transpose(-1, -2)


class CayleyMap(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("Id", torch.eye(n))

    def forward(self, X):
        return torch.linalg.solve(self.Id - X, self.Id + X)


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
print(torch.allclose(layer.weight, layer.weight.T), layer)
print(dict(layer.named_parameters()).keys())
layer.weight = torch.arange(9.0).view(3, 3)
print(layer.weight)
cayley = nn.Linear(3, 3)
parametrize.register_parametrization(cayley, "weight", Skew())
parametrize.register_parametrization(cayley, "weight", CayleyMap(3))
print(torch.dist(cayley.weight.T @ cayley.weight, torch.eye(3)) < 1e-5)
with parametrize.cached():
    print(cayley.weight is cayley.weight)
optimizer = torch.optim.SGD(cayley.parameters(), lr=0.1)
for _ in range(3):
    loss = cayley(torch.ones(2, 3)).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
print(layer, parametrize.is_parametrized(layer), parametrize.is_parametrized(cayley, "weight"))
net = nn.Sequential(
    parametrizations.weight_norm(nn.Linear(4, 6)), nn.ReLU(), parametrizations.spectral_norm(nn.Linear(6, 5)),
    nn.ReLU(), parametrizations.orthogonal(nn.Linear(5, 5)),
)  # fmt: skip
out = net(torch.randn(3, 4))
out.sum().backward()
print([name for name, _ in net.named_parameters()])
print(torch.linalg.matrix_norm(net[2].weight, 2) < 1.5, torch.dist(net[4].weight @ net[4].weight.T, torch.eye(5)) < 1e-5)
print(list(net.state_dict()))

module = nn.Conv2d(1, 4, 3)
prune.random_unstructured(module, name="weight", amount=0.3)
print([name for name, _ in module.named_parameters()], [name for name, _ in module.named_buffers()])
print([type(hook).__name__ for hook in module._forward_pre_hooks.values()], (module.weight == 0).sum())
prune.l1_unstructured(module, name="bias", amount=2)
print(module.bias)
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
print((module.weight.flatten(1) == 0).all(1), [hook._tensor_name for hook in module._forward_pre_hooks.values()])
prune.remove(module, "weight")
print([name for name, _ in module.named_parameters()], prune.is_pruned(module))
small = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
parameters = [(small[0], "weight"), (small[2], "weight")]
prune.global_unstructured(parameters, pruning_method=prune.L1Unstructured, amount=0.25)
print([f"{(m.weight == 0).float().mean().item():.3f}" for m, _ in parameters], prune.is_pruned(small))


class Checkered(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


Checkered.apply(small[2], "bias")
print(small[2].bias_mask, small[2](torch.ones(1, 3)).grad_fn.name())
prune.custom_from_mask(small[0], "bias", mask=torch.tensor([1, 0, 1]))
print(small[0].bias_mask, sorted(small.state_dict()))
try:
    prune.l1_unstructured(module, "weight", amount=1.5)
except ValueError as error:
    print(error)
