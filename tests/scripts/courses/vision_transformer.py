"""A small vision transformer: patches, class token, encoder layers, mixup, cosine warm-up, attention weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


class PatchEmbedding(nn.Module):
    def __init__(self, size, patch, channels, dim):
        super().__init__()
        self.proj = nn.Conv2d(channels, dim, patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + (size // patch) ** 2, dim))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed


class ViT(nn.Module):
    def __init__(self, dim=16, depth=2, heads=4, classes=3):
        super().__init__()
        self.embed = PatchEmbedding(12, 4, 1, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 32, 0.1, F.gelu, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x))[:, 0])


labels = torch.randint(0, 3, (24,))
images = torch.randn(24, 1, 12, 12)
images[torch.arange(24), 0, :, labels * 4] += 3
model = ViT()
print(sum(p.numel() for p in model.parameters()), model.encoder.layers[0].self_attn)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9),
    ],
    [3],
)
mix = torch.distributions.Beta(0.4, 0.4)
for epoch in range(10):
    model.train()
    order = torch.randperm(24)
    share = mix.sample()
    mixed = share * images + (1 - share) * images[order]
    out = model(mixed)
    loss = share * F.cross_entropy(out, labels) + (1 - share) * F.cross_entropy(out, labels[order])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if epoch % 3 == 0:
        print(f"epoch {epoch} share {share:.4f} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.6f}")
model.eval()
with torch.no_grad():
    print("accuracy", (model(images).argmax(1) == labels).float().mean().item())
    x = model.embed(images[:1])
    attended, weights = model.encoder.layers[0].self_attn(x, x, x, need_weights=True, average_attn_weights=False)
    print(weights.shape, (weights.sum(-1) - 1).abs().max() < 1e-6, attended.mean().item().__format__(".4f"))
