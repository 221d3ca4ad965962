"""Mixed precision on the CPU with accumulation and clipping; a scaler that is switched off and one that is not."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=False)
scaler = torch.amp.GradScaler("cpu", enabled=False)
x, y = torch.randn(32, 12), torch.randint(0, 4, (32,))
accumulation = 4
for epoch in range(3):
    for i, (inputs, targets) in enumerate(zip(x.split(4), y.split(4))):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            output = model(inputs)
            loss = F.cross_entropy(output, targets) / accumulation
        scaler.scale(loss).backward()
        if (i + 1) % accumulation == 0:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            print(epoch, i, output.dtype, loss.dtype, f"{loss.item():.2f}", f"{norm.item():.1f}")
with torch.autocast("cpu"):
    a, b = torch.rand(3, 3), torch.rand(3, 3)
    print((a @ b).dtype, torch.softmax(a @ b, 0).dtype, (a + b).dtype, torch.mm(a, b).sum().dtype)
    with torch.autocast("cpu", enabled=False):
        print((a @ b).dtype)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step, factor in enumerate([1.0, 1.0, float("inf"), 1.0]):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 3) * factor).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, scaler.get_scale(), f"{model.bias.item():.5f}")
print(scaler.state_dict())
