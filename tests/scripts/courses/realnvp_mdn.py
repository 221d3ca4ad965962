"""Normalising flows from coupling layers, a mixture density network, Bayesian linear layers, quantile loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Independent, MixtureSameFamily, MultivariateNormal, Normal, kl_divergence

torch.manual_seed(4)


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 4))
        nn.init.zeros_(self.net[2].weight)
        nn.init.zeros_(self.net[2].bias)

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, dim=1)
        s, t = torch.tanh(s) * (1 - self.mask), t * (1 - self.mask)
        return x * s.exp() + t, s.sum(1)

    def inverse(self, y):
        s, t = self.net(y * self.mask).chunk(2, dim=1)
        s, t = torch.tanh(s) * (1 - self.mask), t * (1 - self.mask)
        return (y - t) * (-s).exp()


flow = nn.ModuleList([Coupling(torch.tensor([float(i % 2), float((i + 1) % 2)])) for i in range(4)])
base = MultivariateNormal(torch.zeros(2), torch.eye(2))
data = torch.randn(128, 2) @ torch.tensor([[1.5, 0.6], [0.0, 0.4]]) + torch.tensor([1.0, -2.0])
optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
for step in range(20):
    z, log_det = data, torch.zeros(len(data))
    for layer in flow:
        z, change = layer(z)
        log_det = log_det + change
    loss = -(base.log_prob(z) + log_det).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        print(f"flow {step}: {loss.item():.4f}")
with torch.no_grad():
    x = z
    for layer in reversed(flow):
        x = layer.inverse(x)
print(torch.allclose(x, data, atol=1e-4))

net = nn.Sequential(nn.Linear(1, 16), nn.ELU(), nn.Linear(16, 9))
x = torch.linspace(-1, 1, 40).unsqueeze(1)
y = x.squeeze() + 0.3 * torch.sin(6 * x.squeeze()) + 0.1 * torch.randn(40)
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(20):
    weights, means, scales = net(x).chunk(3, dim=1)
    mixture = MixtureSameFamily(Categorical(logits=weights), Normal(means, F.softplus(scales) + 1e-3))
    loss = -mixture.log_prob(y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mixture {loss.item():.4f} mean {mixture.mean[:3].detach()} sample {mixture.sample()[:3]}")


class BayesianLinear(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.mu = nn.Parameter(torch.empty(outside, inside).uniform_(-0.2, 0.2))
        self.rho = nn.Parameter(torch.full((outside, inside), -3.0))

    def posterior(self):
        return Independent(Normal(self.mu, F.softplus(self.rho)), 2)

    def forward(self, x):
        return F.linear(x, self.posterior().rsample())

    def kl(self):
        prior = Independent(Normal(torch.zeros_like(self.mu), torch.ones_like(self.mu)), 2)
        return kl_divergence(self.posterior(), prior)


bayes = nn.Sequential(BayesianLinear(1, 8), nn.Tanh(), BayesianLinear(8, 3))
quantiles = torch.tensor([0.1, 0.5, 0.9])
optimizer = torch.optim.Rprop(bayes.parameters(), lr=0.01)
for step in range(10):
    error = y.unsqueeze(1) - bayes(x)
    pinball = torch.maximum(quantiles * error, (quantiles - 1) * error).sum(1).mean()
    loss = pinball + sum(layer.kl() for layer in bayes if isinstance(layer, BayesianLinear)) / 1000
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"bayes {loss.item():.4f} pinball {pinball.item():.4f}")
