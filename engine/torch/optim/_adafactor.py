"""``torch.optim.Adafactor``."""

from __future__ import annotations

from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer, counted, like


class Adafactor(SingleTensorOptimizer):
    """Keeps the mean square of a matrix's gradient as one row and one column."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        checks.one_element(lr)
        checks.require(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        checks.require(beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        checks.require(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        checks.require(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        checks.require(d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        checks.require(weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _refuse(self, param: Tensor, group: dict[str, Any]) -> None:
        """Raise RuntimeError for complex parameters."""
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """The mean squares begin at zero."""
        grad = param.grad
        if grad.dim() > 1:
            shape = list(grad.shape)
            state["row_var"] = grad.new_zeros([*shape[:-1], 1])
            state["col_var"] = grad.new_zeros([*shape[:-2], 1, shape[-1]])
        else:
            state["variance"] = like(grad)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Divide by the root of the estimated mean square, then clip the step's own size."""
        lr, (eps1, eps2) = checks.scalar(group["lr"]), group["eps"]
        eps1 = torch.finfo(param.dtype).eps if eps1 is None else eps1
        step = counted(state)
        rho = min(lr, 1 / (step**0.5))
        alpha = max(eps2, param.norm(2).item() / (param.numel() ** 0.5)) * rho
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        update = _estimate(grad, state, step ** group["beta2_decay"], eps1).clamp_(min=eps1 * eps1).rsqrt_()
        update.mul_(grad)
        size = max(1.0, update.norm(2).item() / ((update.numel() ** 0.5) * group["d"]))
        param.add_(update, alpha=-alpha / size)


def _estimate(grad: Tensor, state: dict[str, Any], weight: float, eps1: float) -> Tensor:
    """The mean square of the gradient; of a matrix it is a column times a row."""
    if grad.dim() <= 1:
        state["variance"].lerp_(grad * grad, weight)
        whole: Tensor = state["variance"].clone()
        return whole
    row, column = state["row_var"], state["col_var"]
    row.lerp_(torch.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1)), weight)
    column.lerp_(torch.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2)), weight)
    product: Tensor = row @ column
    return product.div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))  # type: ignore[no-any-return]
