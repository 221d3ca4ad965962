"""``torch.optim.Muon``."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer

MOST_STEPS = 100


class Muon(SingleTensorOptimizer):
    """Momentum whose direction is made orthogonal; for matrices only."""

    _as_real = False
    _counts_steps = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        checks.one_element(lr)
        checks.require(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        checks.require(momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}")
        checks.require(weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}")
        known = adjust_lr_fn in (None, "original", "match_rms_adamw")
        checks.require(known, f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                text = f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                checks.require(param.ndim == 2, text)

    def _refuse(self, param: Tensor, group: dict[str, Any]) -> None:
        """Raise RuntimeError for complex parameters."""
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """The momentum begins at zero."""
        state["momentum_buffer"] = torch.zeros_like(param.grad, memory_format=torch.preserve_format)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Step along the orthogonal matrix closest to the momentum."""
        lr, momentum, buffer = checks.scalar(group["lr"]), group["momentum"], state["momentum_buffer"]
        buffer.lerp_(grad, 1 - momentum)
        direction = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        direction = _orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(direction, alpha=-(lr * _ratio(group["adjust_lr_fn"], *param.shape[:2])))


def _orthogonal(matrix: Tensor, coefficients: Any, steps: int, eps: float) -> Tensor:
    """Newton and Schulz's iteration towards the nearest orthogonal matrix, in bfloat16."""
    checks.require(steps < MOST_STEPS, "Number of steps must be less than 100 for computational efficiency")
    checks.require(len(coefficients) == 3, "Coefficients must be a tuple of exactly 3 values")
    linear, cubic, quintic = coefficients
    tall = matrix.size(0) > matrix.size(1)
    found = matrix.bfloat16().T if tall else matrix.bfloat16()
    found.div_(found.norm().clamp(min=eps))
    for _ in range(steps):
        gram = found @ found.T
        found = torch.addmm(found, torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic), found, beta=linear)
    return found.T if tall else found  # type: ignore[no-any-return]


def _ratio(rule: str | None, rows: int, columns: int) -> float:
    """How the learning rate depends on the matrix's shape."""
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
