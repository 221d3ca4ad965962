"""``torch.optim.Rprop``."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, counted, like


class Rprop(SingleTensorOptimizer):
    """Steps by the sign of the gradient alone; their size grows while the sign stays."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checks.learning_rate(lr)
        checks.require(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Every number has a step size of its own."""
        lr = checks.scalar(group["lr"])
        state["prev"] = like(param)
        state["step_size"] = torch.full_like(param.grad, complex(lr, lr) if param.is_complex() else lr)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Grow the steps whose sign stayed, shrink those whose sign changed."""
        counted(state)
        shrink, grow = group["etas"]
        before, size = state["prev"], state["step_size"]
        factor = grad.mul(before.clone() if group["differentiable"] else before).sign()
        factor[factor.gt(0)] = grow
        factor[factor.lt(0)] = shrink
        factor[factor.eq(0)] = 1
        size.mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.clone(memory_format=torch.preserve_format)
        grad[factor.eq(shrink)] = 0
        param.addcmul_(grad.sign(), size, value=-1)
        before.copy_(grad)
