"""``torch.optim.SparseAdam``: wants sparse gradients, which Stridescope does not have yet."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.single_tensor import SingleTensorOptimizer


class SparseAdam(SingleTensorOptimizer):
    """Adam for sparse gradients; raises RuntimeError for dense ones."""

    _counts_steps = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        checks.one_element(lr)
        checks.require(lr > 0.0, f"Invalid learning rate: {lr}")
        checks.require(eps > 0.0, f"Invalid epsilon value: {eps}")
        checks.decay_rates(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            [i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_complex()
        ]
        if places:
            raise ValueError(f"Complex params at indices {places}: SparseAdam does not support complex parameters")

    def _refuse(self, param: Tensor, group: dict[str, Any]) -> None:
        """Raise RuntimeError: the gradient is dense."""
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
