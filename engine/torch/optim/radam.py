"""``torch.optim.RAdam``."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.moments import MomentOptimizer, check
from stridescope.engine.torch.optim.single_tensor import counted, plus


class RAdam(MomentOptimizer):
    """Adam that trusts its mean square only once enough gradients were seen."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr, eps, betas, weight_decay=weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Move by the mean, scaled by the mean square when its variance is tractable."""
        beta1, beta2 = group["betas"]
        lr = checks.scalar(group["lr"])
        step = counted(state)
        grad = self._weighted(param, grad, group, lr)
        mean, square = self._moments(state, grad, beta1, beta2)
        correction = 1 - beta2**step
        move = mean / (1 - beta1**step) * lr
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / correction
        if length > 5.0:
            move = move * (correction**0.5 / plus(square.sqrt(), group["eps"], group)) * _rectified(length, longest)
        param.add_(move, alpha=-1.0)


def _rectified(length: float, longest: float) -> float:
    """How far the variance of the mean square can be trusted, for an average over ``length`` of ``longest`` steps."""
    trust: float = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
    return trust
