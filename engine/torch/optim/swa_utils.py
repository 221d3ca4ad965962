"""``torch.optim.swa_utils``: averages of a model's parameters over training."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim.lr_scheduler.scheduler import LRScheduler, per_group
from stridescope.engine.torch.optim.optimizer import Optimizer

_module = importlib.import_module("stridescope.engine.torch.nn.modules.module")


def _checked(decay: float) -> float:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return decay


def _moves(tensors: list[Tensor]) -> bool:
    """Whether the tensors can be averaged without rounding."""
    return bool(tensors[0].is_floating_point() or tensors[0].is_complex())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """An exponential moving average, of lists of tensors."""
    _checked(decay)

    @no_grad()
    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: Any) -> None:
        for average, now in zip(ema_param_list, current_param_list, strict=True):
            if _moves(ema_param_list):
                average.lerp_(now, 1 - decay)
            else:
                average.copy_(average * decay + now * (1 - decay))

    return ema_update  # type: ignore[no-any-return]


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The mean of all that was seen, of lists of tensors."""

    @no_grad()
    def swa_update(averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        for average, now in zip(averaged_param_list, current_param_list, strict=True):
            if _moves(averaged_param_list):
                average.lerp_(now, float(1 / (num_averaged + 1)))
            else:
                average.add_(now - average, alpha=1.0 / (num_averaged + 1))

    return swa_update  # type: ignore[no-any-return]


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """An exponential moving average, of two tensors."""
    _checked(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update  # type: ignore[no-any-return]


def get_swa_avg_fn() -> Callable[..., Any]:
    """The mean of all that was seen, of two tensors."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update  # type: ignore[no-any-return]


class AveragedModel(_module.Module):  # type: ignore[misc, name-defined]
    """A copy of a model whose parameters are averages; raises AssertionError when two ways to average are given."""

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> None:
        """Take the model's parameters into the averages."""
        pairs = [
            (mine.detach(), theirs.detach().to(mine.device))
            for mine, theirs in zip(self._averaged(), self._of(model), strict=False)
        ]
        if self.n_averaged == 0:
            for mine, theirs in pairs:
                mine.copy_(theirs)
        else:
            self._average(pairs)
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1

    def _averaged(self) -> Iterable[Tensor]:
        found: Iterable[Tensor] = self._of(self.module) if self.use_buffers else self.parameters()
        return found

    def _of(self, model: Any) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ())

    def _average(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        if self.multi_avg_fn is None:
            average = self.avg_fn or get_swa_avg_fn()
            for mine, theirs in pairs:
                mine.copy_(average(mine, theirs, self.n_averaged.to(mine.device)))
            return
        groups: dict[Any, list[tuple[Tensor, Tensor]]] = {}
        for pair in pairs:
            groups.setdefault((pair[0].device, pair[0].dtype), []).append(pair)
        for (on, _), members in groups.items():
            self.multi_avg_fn(*map(list, zip(*members, strict=True)), self.n_averaged.to(on))


@no_grad()
def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the statistics of a model's batch norms anew, from all the loader gives."""
    batchnorm = importlib.import_module("stridescope.engine.torch.nn.modules.batchnorm")
    norms = [module for module in model.modules() if isinstance(module, batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    for batch in loader:
        data = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(data if device is None else data.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Moves the learning rate to a constant one, for averaging."""

    _unsaved = ("optimizer", "anneal_func")

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _set_anneal_func(self, strategy: str) -> None:
        self._anneal_strategy = strategy
        self.anneal_func = _cosine if strategy == "cos" else float

    def get_lr(self) -> list[Any]:
        """From the current rates: what was annealed so far is taken back first."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        span = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / span)))
        now = self.anneal_func(max(0, min(1, step / span)))
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        super().load_state_dict(state_dict)
        self._set_anneal_func(self._anneal_strategy)


def _cosine(part: float) -> float:
    return (1 - math.cos(math.pi * part)) / 2


for _kind in (AveragedModel, SWALR):
    _kind.__module__ = "torch.optim.swa_utils"

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip
