"""Schedules that move learning rate and momentum in opposite directions: CyclicLR and OneCycleLR."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from stridescope.engine.torch.optim.lr_scheduler.scheduler import (
    LRScheduler,
    check_optimizer,
    per_group,
    plain_state,
    set_value,
)
from stridescope.engine.torch.optim.optimizer import Optimizer

MODES = ("triangular", "triangular2", "exp_range")


class _WithMomentum(LRScheduler):
    """Knows where an optimizer keeps its momentum: as ``momentum``, or as the first of the ``betas``."""

    use_beta1: bool

    def _begin_momentum(self, base: list[Any], most: list[Any], last_epoch: int) -> None:
        """Start at the largest momentum; raises ValueError when the optimizer has none."""
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        if last_epoch == -1:
            for high, low, group in zip(most, base, self.optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Up and down between two learning rates."""

    _unsaved = ("optimizer", "_scale_fn_ref", "_scale_fn_custom")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            self._begin_momentum(self.base_momentums, self.max_momentums, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        scales: dict[str, Callable[[float], float]] = {
            "triangular": _same, "triangular2": _halved, "exp_range": partial(pow, self.gamma),
        }  # fmt: skip
        self._scale_fn_ref = scales[self.mode]
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    def scale_fn(self, x: float) -> float:
        """How high the cycle (or iteration) ``x`` goes, between 0 and 1."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def get_lr(self) -> list[Any]:
        """From the place in the cycle; sets the momentum too."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = partial(self.scale_fn, cycle if self.scale_mode == "cycle" else self.last_epoch)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        rates = [base + (most - base) * height * scale() for base, most in pairs]
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True)
            for base, most, group in bounds:
                self._set_momentum(group, most - (most - base) * height * scale())
        return rates

    def state_dict(self) -> dict[str, Any]:
        """A function of the user's is not saved, an object's attributes are."""
        custom = self._scale_fn_custom
        return {**super().state_dict(), "_scale_fn_custom": None if custom is None else plain_state(custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        saved = dict(state_dict)
        attributes = saved.pop("_scale_fn_custom")
        super().load_state_dict(saved)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self._init_scale_fn()


def _same(x: float) -> float:
    return 1.0


def _halved(x: float) -> float:
    return 1 / (2.0 ** (x - 1))  # type: ignore[no-any-return]


class OneCycleLR(_WithMomentum):
    """Up to ``max_lr`` once and down far below the start."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        most = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, highest in zip(optimizer.param_groups, most, strict=True):
                group["initial_lr"], group["max_lr"] = highest / div_factor, highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            high = per_group("max_momentum", optimizer, max_momentum)
            self._begin_momentum(per_group("base_momentum", optimizer, base_momentum), high, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[Any]:
        """From the place in the cycle; sets the momentum too. Raises ValueError beyond the last step."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start, phase = _current(self._schedule_phases, step)
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal(*ends, part))
        return rates


def _steps(total: Any, epochs: Any, per_epoch: Any) -> int:
    """The length of the cycle; raises ValueError when it isn't given, or not as positive ints."""
    if total is not None:
        given = {"total_steps": total}
    elif epochs is not None and per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": per_epoch}
    else:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, count in given.items():
        if not isinstance(count, int) or count <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {count}")
    return math.prod(given.values())


def _phases(total: int, part: float, three: bool) -> list[dict[str, Any]]:
    """When each phase ends, and between which of the group's values it moves."""
    rise = _phase(float(part * total) - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    if not three:
        return [rise, _phase(total - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum"))]
    fall = _phase(float(2 * part * total) - 2, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum"))
    return [rise, fall, _phase(total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]


def _phase(end: float, lr: tuple[str, str], momentum: tuple[str, str]) -> dict[str, Any]:
    return {
        "end_step": end, "start_lr": lr[0], "end_lr": lr[1],
        "start_momentum": momentum[0], "end_momentum": momentum[1],
    }  # fmt: skip


def _current(phases: list[dict[str, Any]], step: int) -> tuple[float, dict[str, Any]]:
    """Where the phase of a step begins, and the phase."""
    start = 0.0
    for phase in phases[:-1]:
        if step <= phase["end_step"]:
            return start, phase
        start = phase["end_step"]
    return start, phases[-1]
