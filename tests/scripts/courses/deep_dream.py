"""Optimising the input: activation maximisation, a total-variation prior, style by Gram matrices, FGSM."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
net = nn.Sequential(
    nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
).eval().requires_grad_(False)  # fmt: skip
image = (torch.rand(1, 3, 16, 16) * 0.1).requires_grad_()
optimizer = torch.optim.Adam([image], lr=0.05, weight_decay=1e-4)
for step in range(12):
    activation = net[:4](image)[0, 2].mean()
    variation = (image[..., 1:, :] - image[..., :-1, :]).abs().mean() + (image[..., 1:] - image[..., :-1]).abs().mean()
    loss = -activation + 0.1 * variation
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
    if step % 4 == 3:
        print(f"{step}: {activation.item():.5f} {variation.item():.5f}")
dream = torch.rand(1, 3, 20, 20)
for octave in (0.5, 0.75, 1.0):
    dream = F.interpolate(dream, size=(int(20 * octave),) * 2, mode="bilinear", align_corners=False).detach()
    for _ in range(3):
        dream.requires_grad_(True)
        net[:2](dream).norm().backward()
        grad = dream.grad
        dream = (dream + 0.05 * grad / (grad.abs().mean() + 1e-8)).detach()
        dream = torch.roll(dream, shifts=(1, -1), dims=(-2, -1))
    print(tuple(dream.shape), f"{dream.mean().item():.4f}")


def gram(x):
    b, c, h, w = x.size()
    flat = x.view(b * c, h * w)
    return torch.mm(flat, flat.t()).div(b * c * h * w)


style, content = gram(net[:2](torch.rand(1, 3, 16, 16))), net[:4](torch.rand(1, 3, 16, 16))
canvas = torch.rand(1, 3, 16, 16).requires_grad_()
lbfgs = torch.optim.LBFGS([canvas], max_iter=5)
run = [0]


def closure():
    lbfgs.zero_grad()
    loss = 1e3 * F.mse_loss(gram(net[:2](canvas)), style) + F.mse_loss(net[:4](canvas), content)
    loss.backward()
    run[0] += 1
    return loss


before = closure().item()
for _ in range(2):
    after = lbfgs.step(closure).item()
print(run[0], f"{before:.3f}", after < before)
x, label = torch.rand(2, 3, 16, 16), torch.tensor([0, 1])
x.requires_grad = True
loss = F.cross_entropy(net(x), label)
net.zero_grad()
loss.backward()
for epsilon in (0, 0.05, 0.2):
    attacked = torch.clamp(x + epsilon * x.grad.sign(), 0, 1)
    print(epsilon, f"{F.cross_entropy(net(attacked), label).item():.5f}", net(attacked).max(1, keepdim=True)[1].T)
