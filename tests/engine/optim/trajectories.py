"""Runs every optimizer and schedule for some steps and writes where they went to ``trajectories.json``.

With real PyTorch (``python trajectories.py``) it makes the file that the tests compare with; the tests call
:func:`run` and :func:`rates` with the engine's ``torch``.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

FILE = pathlib.Path(__file__).with_name("trajectories.json")
STEPS = 8

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("ASGD", {}),
    ("ASGD", {"lr": 0.05, "t0": 3, "weight_decay": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.3, "rho": 0.8, "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.3, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "maximize": True, "betas": (0.5, 0.9)}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.2}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("LBFGS", {}),
    ("LBFGS", {"line_search_fn": "strong_wolfe"}),
    ("LBFGS", {"lr": 0.3, "max_iter": 4, "history_size": 3}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.2}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.2}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1, "maximize": True}),
]
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 6}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 14}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 14, "three_phase": True, "anneal_strategy": "linear"}),
]


def label(name: str, options: dict[str, Any]) -> str:
    """How a case is called in the file and in the tests."""
    return " ".join([name, *(f"{key}={value}" for key, value in options.items())])


def run(torch: Any, name: str, options: dict[str, Any]) -> list[list[float]]:
    """The parameters after each step down a bowl."""
    weight = torch.tensor([[1.0, 2.0, -0.3], [0.5, -0.25, 3.0]], requires_grad=True)
    bias = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    optimizer = getattr(torch.optim, name)([weight, bias], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((weight + bias - 1.5) ** 2).sum()
        loss.backward()
        return loss

    path = []
    for _ in range(STEPS):
        optimizer.step(closure)
        path.append([*weight.detach().flatten().tolist(), *bias.tolist()])
    return path


def rates(torch: Any, name: str, options: dict[str, Any]) -> list[list[float]]:
    """Learning rate and momentum before each step."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    schedule = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
    path = []
    for _ in range(14):
        path.append([schedule.get_last_lr()[0], optimizer.param_groups[0]["momentum"]])
        optimizer.step()
        schedule.step()
    return path


if __name__ == "__main__":
    import torch

    made = {
        "optimizers": {label(*case): run(torch, *case) for case in OPTIMIZERS},
        "schedules": {label(*case): rates(torch, *case) for case in SCHEDULES},
    }
    FILE.write_text(json.dumps(made) + "\n")
