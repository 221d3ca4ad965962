"""What Adam and its relatives share: two running means, weight decay of two kinds, and the checks of their options."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, decayed, like


class MomentOptimizer(SingleTensorOptimizer):
    """Keeps running means of the gradient and of its square."""

    _xla = (True, False)

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Both running means begin at zero."""
        state["exp_avg"] = like(param)
        state["exp_avg_sq"] = like(param)

    @staticmethod
    def _weighted(param: Tensor, grad: Tensor, group: dict[str, Any], lr: Any) -> Tensor:
        """The gradient with weight decay in it; decoupled decay shrinks the parameter itself instead."""
        if not group["decoupled_weight_decay"]:
            return decayed(grad, param, group["weight_decay"])
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        return grad

    @staticmethod
    def _moments(state: dict[str, Any], grad: Tensor, beta1: Any, beta2: Any) -> tuple[Any, Any]:
        """Both means, with this gradient in them."""
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        return mean, square


def check(lr: Any, eps: Any, betas: Any, **others: Any) -> None:
    """Raise ValueError for options outside of their ranges; ``others`` must not be negative."""
    checks.learning_rate(lr)
    checks.not_negative(eps=eps)
    checks.decay_rates(betas)
    checks.not_negative(**others)
