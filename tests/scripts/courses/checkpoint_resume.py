"""Stop, save everything, resume: the run goes on as if it had never stopped."""

import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn

folder = tempfile.mkdtemp()


def build():
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.2, total_iters=3)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    return model, optimizer, torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[3])


def epoch(model, optimizer, scheduler):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()


torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
model, optimizer, scheduler = build()
first = [epoch(model, optimizer, scheduler) for _ in range(4)]
torch.save(
    {
        "epoch": 4,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
    },
    os.path.join(folder, "last.pt"),
)
straight = [epoch(model, optimizer, scheduler) for _ in range(5)]
model, optimizer, scheduler = build()
saved = torch.load(os.path.join(folder, "last.pt"), map_location="cpu", weights_only=True)
print(sorted(saved), list(saved["model"])[:3], type(saved["model"]).__name__)
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
scheduler.load_state_dict(saved["scheduler"])
torch.set_rng_state(saved["rng"])
resumed = [epoch(model, optimizer, scheduler) for _ in range(5)]
print([f"{value:.4f}" for value in first], [f"{value:.4f}" for value in resumed])
print("as if never stopped:", straight == resumed, scheduler.get_last_lr())
try:
    nn.Linear(4, 2).load_state_dict({"weight": torch.zeros(2, 3), "extra": torch.zeros(1)})
except RuntimeError as error:
    print(error)
print(nn.Linear(4, 2).load_state_dict({"extra": torch.zeros(1)}, strict=False))

averaged = AveragedModel(model)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
swa = SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
for _ in range(4):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    averaged.update_parameters(model)
    ema.update_parameters(model)
    swa.step()
    print(f"{loss.item():.4f} {swa.get_last_lr()[0]:.5f}")
update_bn([torch.randn(16, 4) for _ in range(3)], averaged)
print(averaged.n_averaged, averaged.module[4].bias)
print(ema.module[4].weight[0, :4].detach())
torch.save(model, os.path.join(folder, "whole.pt"))
try:
    torch.load(os.path.join(folder, "whole.pt"))
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
whole = torch.load(os.path.join(folder, "whole.pt"), weights_only=False)
print(whole, torch.equal(whole[0].weight, model[0].weight))
