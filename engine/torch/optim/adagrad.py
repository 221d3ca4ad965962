"""``torch.optim.Adagrad``."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, counted, counter, decayed, plus


class Adagrad(SingleTensorOptimizer):
    """Steps divided by the root of the sum of all squared gradients."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        checks.learning_rate(lr)
        checks.not_negative(
            lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value, eps=eps
        )
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        checks.fused_alone(fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                state = self.state[param]
                state["step"] = counter(0.0, param, group)
                self._begin(param, group, state)

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """The sum of squares begins at a value of the user's choice."""
        first: Any = self.defaults["initial_accumulator_value"]
        first = complex(first, first) if param.is_complex() else first
        state["sum"] = torch.full_like(param, first, memory_format=torch.preserve_format)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Add the square, divide by the root of the sum."""
        step = counted(state)
        grad = decayed(grad, param, group["weight_decay"])
        rate = checks.scalar(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        total = state["sum"]
        total.addcmul_(grad, grad, value=1)
        param.addcdiv_(grad, plus(total.sqrt(), group["eps"], group), value=-rate)

    def share_memory(self) -> None:
        """Let other processes see the sums."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()
