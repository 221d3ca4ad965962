"""``torch.optim.ASGD``."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, counted, counter_dtype, decayed, like


class ASGD(SingleTensorOptimizer):
    """Gradient descent that also keeps the average of the parameters it has visited."""

    _on_device = "params, mus, etas, and state_steps"
    _xla = (True, False)

    _counts_steps = False  # its counters live where the parameter lives

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        checks.learning_rate(lr)
        checks.not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """The average begins at zero."""
        place = {"device": param.device, "dtype": counter_dtype()}
        state["step"] = torch.zeros((), **place)
        state["eta"] = torch.as_tensor(checks.scalar(group["lr"]), **place).clone().detach()  # type: ignore[attr-defined]
        state["mu"] = torch.ones((), **place)
        state["ax"] = like(param)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Step, average, and shrink the rates for the next step."""
        step = counted(state)
        grad = decayed(grad, param, group["weight_decay"])
        lr, lambd = checks.scalar(group["lr"]), group["lambd"]
        eta, average = state["eta"].item(), state["ax"]
        if group["foreach"]:  # decay and step in one write
            param.addcmul_(grad.add(param, alpha=lambd), state["eta"], value=-1)
        else:
            param.mul_(1 - lambd * eta)
            param.add_(grad, alpha=-eta)
        if state["mu"].item() != 1:
            average.add_(param.sub(average).mul_(state["mu"]))
        else:
            average.copy_(param)
        state["eta"].copy_(torch.as_tensor(lr / ((1 + lambd * lr * step) ** group["alpha"])))  # type: ignore[attr-defined]
        state["mu"].copy_(torch.as_tensor(1 / max(1, step - group["t0"])))  # type: ignore[attr-defined]
