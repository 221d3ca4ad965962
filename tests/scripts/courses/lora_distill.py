"""Adapters of low rank on a frozen net, knowledge distillation, focal loss, gradient checkpoints, a custom Function."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(3)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=5**0.5)

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scale


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1), None


def focal_loss(logits, targets, gamma=2.0):
    log_probability = F.log_softmax(logits, dim=-1).gather(1, targets[:, None]).squeeze(1)
    return (-((1 - log_probability.exp()) ** gamma) * log_probability).mean()


teacher = nn.Sequential(nn.Linear(6, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 3))
student = nn.Sequential(nn.Linear(6, 8), nn.Hardtanh(), nn.Linear(8, 3))
x = torch.randn(48, 6)
y = x[:, :3].argmax(1)
optimizer = torch.optim.Adam(teacher.parameters(), lr=0.02)
for _ in range(12):
    loss = focal_loss(teacher(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"teacher {loss.item():.4f}")
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
temperature = 3.0
for step in range(10):
    hidden = RoundSTE.apply(torch.tanh(student[0](x)), 8)
    out = student[2](student[1](hidden))
    with torch.no_grad():
        soft = F.softmax(teacher(x) / temperature, dim=-1)
    distilled = F.kl_div(F.log_softmax(out / temperature, dim=-1), soft, reduction="batchmean") * temperature**2
    loss = 0.7 * distilled + 0.3 * F.cross_entropy(out, y, weight=torch.tensor([1.0, 2.0, 0.5]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"student {loss.item():.4f}")
adapted = nn.Sequential(LoRALinear(teacher[0]), nn.GELU(), LoRALinear(teacher[2]))
trainable = [name for name, p in adapted.named_parameters() if p.requires_grad]
print(trainable, sum(p.numel() for p in adapted.parameters() if p.requires_grad))
optimizer = torch.optim.AdamW((p for p in adapted.parameters() if p.requires_grad), lr=0.02)
for step in range(8):
    out = checkpoint(adapted, x, use_reentrant=False)
    loss = F.cross_entropy(out, y.roll(1), label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"adapted {loss.item():.4f} {adapted[0].lora_B.abs().mean().item():.5f} {teacher[0].weight.grad is None}")
merged = teacher[0].weight + adapted[0].scale * adapted[0].lora_B @ adapted[0].lora_A
print(torch.allclose(F.linear(x, merged, teacher[0].bias), adapted[0](x), atol=1e-5))
