"""A learning-rate range test, then cyclical, one-cycle and warm-restart schedules over the same model."""

import copy
import math

import torch
import torch.nn as nn
from torch.optim import lr_scheduler as schedules

torch.manual_seed(8)
x = torch.randn(64, 6)
y = (x.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(6, 12), nn.ELU(), nn.Linear(12, 2))
start = copy.deepcopy(model.state_dict())
criterion = nn.CrossEntropyLoss()


def range_test(low=1e-4, high=10.0, steps=24, beta=0.9):
    optimizer = torch.optim.SGD(model.parameters(), lr=low)
    scheduler = schedules.ExponentialLR(optimizer, gamma=(high / low) ** (1 / (steps - 1)))
    average, best, found = 0.0, math.inf, []
    for step in range(steps):
        loss = criterion(model(x), y)
        average = beta * average + (1 - beta) * loss.item()
        smooth = average / (1 - beta ** (step + 1))
        if smooth > 4 * best:
            break
        best = min(best, smooth)
        found.append((optimizer.param_groups[0]["lr"], smooth))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return found


found = range_test()
for rate, smooth in found[::4]:
    print(f"{rate:.5f} {smooth:.4f}")
steepest = min(range(1, len(found)), key=lambda i: found[i][1] - found[i - 1][1])
print(f"suggested {found[steepest][0]:.4f}")
made = {
    "one cycle": lambda o: schedules.OneCycleLR(o, max_lr=0.5, total_steps=12),
    "three phases": lambda o: schedules.OneCycleLR(o, 0.5, epochs=3, steps_per_epoch=4, three_phase=True),
    "triangular": lambda o: schedules.CyclicLR(o, 0.01, 0.3, step_size_up=3, mode="triangular2"),
    "exp_range": lambda o: schedules.CyclicLR(o, 0.01, 0.3, step_size_up=2, mode="exp_range", gamma=0.9),
    "restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.001),
    "lambda": lambda o: schedules.LambdaLR(o, lambda epoch: 0.9**epoch),
    "multiplied": lambda o: schedules.MultiplicativeLR(o, lambda epoch: 0.95),
    "polynomial": lambda o: schedules.PolynomialLR(o, total_iters=8, power=2.0),
    "steps": lambda o: schedules.MultiStepLR(o, [3, 6], 0.3),
    "chained": lambda o: schedules.ChainedScheduler(
        [schedules.ConstantLR(o, 0.5, 4), schedules.ExponentialLR(o, 0.9)], optimizer=o
    ),
    "sequence": lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o, 0.1, total_iters=4), schedules.CosineAnnealingLR(o, 8)], [4]
    ),
}
for name, make in made.items():
    model.load_state_dict(start)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    rates = []
    for _ in range(12):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.append(f"{optimizer.param_groups[0]['lr']:.4f}")
        scheduler.step() if _ < 11 else None
    print(f"{name}: {' '.join(rates)} loss {loss.item():.4f} momentum {optimizer.param_groups[0]['momentum']:.3f}")
