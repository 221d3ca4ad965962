"""``torch.optim.Adam``."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.moments import MomentOptimizer
from stridescope.engine.torch.optim.single_tensor import counted, like


class Adam(MomentOptimizer):
    """Steps scaled by running means of the gradient and of its square."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_tensor_options(lr, betas, foreach, capturable)
        checks.not_negative(lr=lr, eps=eps)
        checks.decay_rates(betas)
        checks.not_negative(weight_decay=weight_decay)
        _check_kinds(betas, foreach, capturable)
        defaults = {
            "lr": lr, "betas": tuple(checks.scalar(beta) for beta in betas), "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        checks.fused_alone(fused, foreach, differentiable)

    def _refuse(self, param: Tensor, group: dict[str, Any]) -> None:
        """Raise RuntimeError for a combination of options that only shows at the first step."""
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Both running means begin at zero."""
        super()._begin(param, group, state)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = like(param)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Move by the corrected mean over the root of the corrected mean square."""
        beta1, beta2 = group["betas"]
        lr = checks.scalar(group["lr"])
        step = counted(state)
        grad = self._weighted(param, grad, group, lr)
        mean, square = self._moments(state, grad, beta1, beta2)
        if group["amsgrad"]:
            square = _largest(state["max_exp_avg_sq"], square, group["differentiable"])
        denominator = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        mean = mean.clone() if group["differentiable"] else mean
        param.addcdiv_(mean, denominator, value=-(lr / (1 - beta1**step)))


def _largest(peak: Tensor, square: Tensor, differentiable: bool) -> Tensor:
    """Keep the largest mean square; with a graph where the step shall be differentiated."""
    if differentiable:
        kept: Tensor = peak.copy_(torch.maximum(peak.clone(), square))
    else:
        kept = torch.maximum(peak, square, out=peak)
    return kept


def _check_tensor_options(lr: Any, betas: tuple[Any, Any], foreach: Any, capturable: bool) -> None:
    if isinstance(lr, Tensor):
        checks.require(
            not foreach or capturable, "lr as a Tensor is not supported for capturable=False and foreach=True"
        )
        checks.one_element(lr)


def _check_kinds(betas: tuple[Any, Any], foreach: Any, capturable: bool) -> None:
    """Raise ValueError unless both betas are floats or both are tensors of one number."""
    kinds = [isinstance(beta, Tensor) for beta in betas]
    same = all(kinds) or all(isinstance(beta, float) for beta in betas)
    checks.require(same, "betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            text = f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
            checks.require(capturable or not foreach, text)
            checks.require(beta.numel() == 1, f"Tensor betas[{index}] must be 1-element")
