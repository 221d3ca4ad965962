"""``torch.optim.NAdam``."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.moments import MomentOptimizer, check
from stridescope.engine.torch.optim.single_tensor import counted, counter, plus


class NAdam(MomentOptimizer):
    """Adam with Nesterov's momentum."""

    _on_device = "params, mu_products{comma} and state_steps"

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr, eps, betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """The means begin at zero, the product of the momenta at one."""
        state["mu_product"] = counter(1.0, param, group)
        super()._begin(param, group, state)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Move by the gradient and by the mean that the next step will have."""
        beta1, beta2 = group["betas"]
        lr = checks.scalar(group["lr"])
        step = counted(state)
        grad = self._weighted(param, grad, group, lr)
        momentum = _momentum(beta1, step, group["momentum_decay"])
        after = _momentum(beta1, step + 1, group["momentum_decay"])
        state["mu_product"] *= momentum
        product = state["mu_product"].item()
        mean, square = self._moments(state, grad, beta1, beta2)
        root = plus(square.div(1 - beta2**step).sqrt(), group["eps"], group)
        mean = mean.clone() if group["differentiable"] else mean
        param.addcdiv_(grad, root, value=-lr * (1.0 - momentum) / (1.0 - product))
        param.addcdiv_(mean, root, value=-lr * after / (1.0 - product * after))


def _momentum(beta1: float, step: float, decay: float) -> float:
    return beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))  # type: ignore[no-any-return]
