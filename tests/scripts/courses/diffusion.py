"""Denoising diffusion on points: a noise schedule, sinusoidal time embeddings, an EMA model, ancestral sampling."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
T = 12
betas = torch.linspace(1e-3, 0.25, T)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, dim=0)
previous = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - previous) / (1.0 - alphas_cumprod)


def extract(a, t, shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half = self.dim // 2
        scale = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
        angles = time[:, None] * scale[None, :]
        return torch.cat((angles.sin(), angles.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.time = nn.Sequential(SinusoidalPositionEmbeddings(8), nn.Linear(8, width), nn.SiLU())
        self.first = nn.Linear(2, width)
        self.blocks = nn.ModuleList([nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(2)])
        self.last = nn.Linear(width, 2)

    def forward(self, x, t):
        h = self.first(x) + self.time(t)
        for block in self.blocks:
            h = h + block(h)
        return self.last(h)


model = Denoiser()
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
data = torch.stack([torch.cos(torch.arange(64.0)), torch.sin(torch.arange(64.0))], 1)
for step in range(24):
    x0 = data[torch.randint(0, 64, (32,))]
    t = torch.randint(0, T, (32,))
    noise = torch.randn_like(x0)
    noisy = extract(alphas_cumprod.sqrt(), t, x0.shape) * x0 + extract((1 - alphas_cumprod).sqrt(), t, x0.shape) * noise
    loss = F.smooth_l1_loss(model(noisy, t), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for averaged, current in zip(ema.parameters(), model.parameters()):
            averaged.lerp_(current, 0.1)
    if step % 6 == 5:
        print(f"{step}: {loss.item():.4f}")


@torch.inference_mode()
def sample(count):
    x = torch.randn(count, 2)
    for i in reversed(range(T)):
        t = torch.full((count,), i, dtype=torch.long)
        mean = (x - extract(betas, t, x.shape) * ema(x, t) / extract((1 - alphas_cumprod).sqrt(), t, x.shape)) * extract(
            (1.0 / alphas).sqrt(), t, x.shape
        )
        x = mean if i == 0 else mean + extract(posterior_variance, t, x.shape).sqrt() * torch.randn_like(x)
    return x


drawn = sample(5)
print([[f"{v:.3f}" for v in row] for row in drawn.tolist()])
