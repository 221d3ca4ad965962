"""``torch.optim.SGD``."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, decayed


class SGD(SingleTensorOptimizer):
    """Stochastic gradient descent, with momentum as an option."""

    _as_real = False
    _counts_steps = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        checks.learning_rate(lr)
        checks.not_negative(momentum=momentum, weight_decay=weight_decay)
        checks.require(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
        )
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        checks.fused_alone(fused, foreach, differentiable)

    def _state_of(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Without momentum there is nothing to remember."""
        return super()._state_of(param, group) if group["momentum"] != 0 else {}

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Step along the gradient, or along its running sum."""
        grad = decayed(grad, param, group["weight_decay"])
        if group["momentum"] != 0:
            grad = self._with_momentum(grad, state, group)
        param.add_(grad, alpha=-checks.scalar(group["lr"]))

    def _with_momentum(self, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
        else:
            buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
        direction: Tensor = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        return direction
