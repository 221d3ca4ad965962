"""Wasserstein GAN on points of a ring: gradient penalty (a gradient of a gradient), two steps of the critic."""

import torch
import torch.nn as nn

torch.manual_seed(0)


def ring(n):
    angle = torch.rand(n) * 2 * torch.pi
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    epsilon = torch.rand(len(real), 1)
    mixed = (epsilon * real + (1 - epsilon) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


for step in range(16):
    for _ in range(2):
        real, fake = ring(32), G(torch.randn(32, 2)).detach()
        penalty = gradient_penalty(real, fake)
        loss_d = D(fake).mean() - D(real).mean() + 10 * penalty
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
    loss_g = -D(G(torch.randn(32, 2))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if step % 4 == 3:
        print(f"{step}: D {loss_d.item():.4f} (penalty {penalty.item():.4f}) G {loss_g.item():.4f}")
