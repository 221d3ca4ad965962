"""``torch.optim.Adamax``."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.moments import check
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, counted, decayed, like


class Adamax(SingleTensorOptimizer):
    """Adam with the largest recent gradient in the place of the mean square."""

    _xla = (True, False)

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(lr, eps, betas, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Mean and largest gradient begin at zero."""
        state["exp_avg"] = like(param)
        state["exp_inf"] = like(param)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Move by the corrected mean over the decayed maximum."""
        beta1, beta2 = group["betas"]
        step = counted(state)
        grad = decayed(grad, param, group["weight_decay"])
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        candidate = grad.abs().add_(group["eps"])
        if group["differentiable"]:
            largest.copy_(torch.cat([largest.mul_(beta2).unsqueeze(0), candidate.unsqueeze(0)], 0).amax(0))
        else:
            torch.maximum(largest.mul_(beta2), candidate, out=largest)
        param.addcdiv_(mean, largest, value=-(checks.scalar(group["lr"]) / (1 - beta1**step)))
