"""A variational autoencoder with the usual loss, and the same with torch.distributions."""

import torch
import torch.utils.data
from torch import nn, optim
from torch.distributions import Independent, Normal, kl_divergence
from torch.nn import functional as F

torch.manual_seed(1)
base = torch.rand(6, 64).round()
train = (base[torch.arange(48) % 6] + 0.1 * torch.rand(48, 64)).clamp(0, 1).view(48, 1, 8, 8)
loader = torch.utils.data.DataLoader(train, batch_size=16, shuffle=True)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 5)
        self.fc22 = nn.Linear(40, 5)
        self.fc3 = nn.Linear(5, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(1, 6):
    model.train()
    train_loss = 0
    for data in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(loader.dataset):.4f}")
for epoch in range(3):
    for data in loader:
        mu, logvar = model.encode(data.view(-1, 64))
        posterior = Independent(Normal(mu, (0.5 * logvar).exp()), 1)
        prior = Independent(Normal(torch.zeros_like(mu), torch.ones_like(mu)), 1)
        z = posterior.rsample()
        likelihood = torch.distributions.Bernoulli(probs=model.decode(z), validate_args=False)
        elbo = likelihood.log_prob(data.view(-1, 64)).sum(1) - kl_divergence(posterior, prior)
        optimizer.zero_grad()
        (-elbo.mean()).backward()
        optimizer.step()
    print(f"elbo {elbo.mean().item():.3f}")
with torch.no_grad():
    sample = model.decode(torch.randn(4, 5)).view(4, 1, 8, 8)
print((sample[0, 0] > 0.5).int())
