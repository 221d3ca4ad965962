"""``torch.optim.Adadelta``."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, counted, decayed, like


class Adadelta(SingleTensorOptimizer):
    """Steps in the units of the parameter: root mean square of past steps over that of the gradients."""

    _xla = (False, False)

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checks.learning_rate(lr)
        checks.require(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        checks.not_negative(eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    _as_real = False

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Both running means begin at zero."""
        state["square_avg"] = like(param)
        state["acc_delta"] = like(param)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Scale the gradient by the ratio of the two roots."""
        counted(state)
        grad = decayed(grad, param, group["weight_decay"])
        rho, eps = group["rho"], group["eps"]
        square, past = state["square_avg"], state["acc_delta"]
        if param.is_complex():  # the means are of pairs of real numbers; the parameter itself is written to
            grad, square, past = (torch.view_as_real(each) for each in (grad, square, past))
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = past.add(eps).sqrt_()
        delta = delta.clone() if group["differentiable"] else delta
        delta.div_(square.add(eps).sqrt_()).mul_(grad)
        past.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        if param.is_complex():
            delta = torch.view_as_complex(delta)
        param.add_(delta, alpha=-checks.scalar(group["lr"]))
