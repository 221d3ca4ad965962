"""MAML with torch.func: functional_call, grad, vmap over tasks; the same inner step with create_graph."""

import math

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, stack_module_state, vmap

torch.manual_seed(10)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
params = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
optimizer = torch.optim.Adam(params.values(), lr=0.01)


def loss_of(p, x, y):
    return nn.functional.mse_loss(functional_call(net, p, (x,)), y)


def task_loss(p, x1, y1, x2, y2):
    inner = grad(loss_of)(p, x1, y1)
    fast = {name: p[name] - 0.1 * inner[name] for name in p}
    return loss_of(fast, x2, y2)


def sample_tasks(count, points=8):
    amplitude, phase = torch.rand(count, 1, 1) * 4 + 0.5, torch.rand(count, 1, 1) * math.pi
    xs = [torch.rand(count, points, 1) * 10 - 5 for _ in range(2)]
    return [t for x in xs for t in (x, amplitude * torch.sin(x + phase))]


for step in range(12):
    x1, y1, x2, y2 = sample_tasks(5)
    losses = vmap(lambda a, b, c, d: task_loss(params, a, b, c, d))(x1, y1, x2, y2)
    loss = losses.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        print(f"{step}: {loss.item():.4f} {losses.std().item():.4f}")
x1, y1, x2, y2 = (t[0] for t in sample_tasks(1))
loss = nn.functional.mse_loss(net(x1), y1)
grads = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
fast = {name: p - 0.1 * g for (name, p), g in zip(net.named_parameters(), grads)}
outer = nn.functional.mse_loss(functional_call(net, fast, x2), y2)
outer.backward()
print(f"{outer.item():.4f} {net[0].weight.grad.norm().item():.4f}")
per_sample, values = vmap(grad_and_value(loss_of), in_dims=(None, 0, 0))(dict(net.named_parameters()), x1, y1)
print({name: tuple(g.shape) for name, g in per_sample.items()}, f"{values.mean().item():.4f}")
print(torch.allclose(per_sample["2.bias"].mean(0), grads[3], atol=1e-6))
models = [nn.Linear(3, 2) for _ in range(4)]
stacked, buffers = stack_module_state(models)
base = nn.Linear(3, 2)
x = torch.randn(5, 3)
together = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(stacked, buffers, x)
print(together.shape, torch.allclose(together[1], models[1](x)))
f = lambda v: (v.sin() * v.flip(0)).sum()
v = torch.tensor([0.1, 0.7, 1.3])
print(jacrev(lambda v: v**2)(v))
print(hessian(f)(v))
