"""Siamese nets: contrastive, triplet and cosine losses over one shared encoder."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 4, 3, padding=1), nn.InstanceNorm1d(4, affine=True), nn.PReLU(4), nn.AvgPool1d(2),
            nn.Conv1d(4, 8, 3, padding=1, padding_mode="circular"), nn.GroupNorm(2, 8), nn.SiLU(),
            nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(32, 6),
        )  # fmt: skip

    def forward(self, x):
        return F.normalize(self.features(x), dim=1)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, same):
        distance = F.pairwise_distance(a, b, keepdim=True).squeeze(1)
        return torch.mean(same * distance.pow(2) + (1 - same) * torch.clamp(self.margin - distance, min=0.0).pow(2))


def signals(kind, count):
    time = torch.linspace(0, 6.28, 16)
    return (torch.sin(time * (kind + 1)) + 0.2 * torch.randn(count, 16)).unsqueeze(1)


net = Encoder()
print(net)
optimizer = torch.optim.RMSprop(net.parameters(), lr=0.005, momentum=0.5)
losses = {
    "contrastive": lambda a, p, n: ContrastiveLoss()(
        torch.cat([a, a]), torch.cat([p, n]), torch.cat([torch.ones(6), torch.zeros(6)])
    ),
    "triplet": nn.TripletMarginLoss(margin=0.5, swap=True),
    "distance": nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: 1.0 - F.cosine_similarity(x, y)),
    "cosine": lambda a, p, n: (
        nn.CosineEmbeddingLoss(margin=0.1)(a, p, torch.ones(6)) + nn.CosineEmbeddingLoss(0.1)(a, n, -torch.ones(6))
    ),
}
for name, loss_of in losses.items():
    for step in range(4):
        anchor, positive, negative = net(signals(0, 6)), net(signals(0, 6)), net(signals(2, 6))
        loss = loss_of(anchor, positive, negative)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{name}: {loss.item():.5f}")
net.eval()
with torch.no_grad():
    embedded = net(torch.cat([signals(0, 2), signals(2, 2)]))
    print(torch.cdist(embedded, embedded))
    print((embedded @ embedded.T).round(decimals=3))
