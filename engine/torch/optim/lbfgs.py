"""``torch.optim.LBFGS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import enable_grad, no_grad
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.optim import checks
from stridescope.engine.torch.optim.optimizer import Optimizer
from stridescope.engine.torch.optim.strong_wolfe import strong_wolfe

_KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")
CURVED = 1e-10  # curvature below which a pair is not remembered


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last gradients; ``step`` needs a closure that computes loss and gradients anew."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        checks.learning_rate(lr)
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        checks.require(len(self.param_groups) == 1, "LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache: int | None = None

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Up to ``max_iter`` steps; returns the loss before the first."""
        with no_grad():
            return _Search(self, enable_grad()(closure)).run()

    def _gather_flat_grad(self) -> Tensor:
        parts = []
        for param in self._params:
            part = param.new(param.numel()).zero_() if param.grad is None else param.grad.view(-1)
            parts.append(torch.view_as_real(part).view(-1) if part.is_complex() else part)
        flat: Tensor = torch.cat(parts, 0)
        return flat

    def _add_grad(self, step_size: Any, direction: Tensor) -> None:
        """Move all parameters along one flat direction."""
        offset = 0
        for param in self._params:
            real = torch.view_as_real(param) if param.is_complex() else param
            count = real.numel()
            real.add_(direction[offset : offset + count].view_as(real), alpha=step_size)
            offset += count


class _Search:
    """One call of ``step``."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        self.optimizer, self.closure = optimizer, closure
        self.options = optimizer.param_groups[0]
        self.state = optimizer.state[optimizer._params[0]]
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)
        for name in _KEPT:
            setattr(self, name, self.state.get(name))
        self.evaluations = 0
        self.loss: float = 0.0
        self.grad: Any = None

    d: Any
    t: Any
    old_dirs: list[Any]
    old_stps: list[Any]
    ro: list[Any]
    H_diag: Any
    prev_flat_grad: Any
    prev_loss: Any

    def run(self) -> Any:
        """Step until nothing changes any more or the budget is used up."""
        first = self.closure()
        self.loss, self.grad = float(first), self.optimizer._gather_flat_grad()
        self._count(1)
        if self._flat():
            return first
        for iteration in range(1, self.options["max_iter"] + 1):
            self.state["n_iter"] += 1
            self._choose_direction()
            if not self._move(iteration):
                break
        self.state.update({name: getattr(self, name) for name in _KEPT})
        return first

    def _count(self, evaluations: int) -> None:
        self.evaluations += evaluations
        self.state["func_evals"] += evaluations

    def _flat(self) -> bool:
        return bool(self.grad.abs().max() <= self.options["tolerance_grad"])

    def _choose_direction(self) -> None:
        if self.state["n_iter"] == 1:
            self.d, self.old_dirs, self.old_stps, self.ro, self.H_diag = self.grad.neg(), [], [], [], 1
        else:
            self._remember(self.grad.sub(self.prev_flat_grad), self.d.mul(self.t))
            self.d = self._two_loops()
        if self.prev_flat_grad is None:
            self.prev_flat_grad = self.grad.clone(memory_format=torch.contiguous_format)
        else:
            self.prev_flat_grad.copy_(self.grad)
        self.prev_loss = self.loss

    def _remember(self, change: Tensor, moved: Tensor) -> None:
        """Keep the pair (change of the gradient, move), if the function curves upward along it."""
        curvature = change.dot(moved)
        if not curvature > CURVED:
            return
        if len(self.old_dirs) == self.options["history_size"]:
            for history in (self.old_dirs, self.old_stps, self.ro):
                history.pop(0)
        self.old_dirs.append(change)
        self.old_stps.append(moved)
        self.ro.append(1.0 / curvature)
        self.H_diag = curvature / change.dot(change)

    def _two_loops(self) -> Tensor:
        """The inverse Hessian that the history implies, times the negative gradient."""
        weights = self.state.setdefault("al", [None] * self.options["history_size"])
        q = self.grad.neg()
        for i in reversed(range(len(self.old_dirs))):
            weights[i] = self.old_stps[i].dot(q) * self.ro[i]
            q.add_(self.old_dirs[i], alpha=-weights[i])
        r: Tensor = torch.mul(q, self.H_diag)
        for i in range(len(self.old_dirs)):
            r.add_(self.old_stps[i], alpha=weights[i] - self.old_dirs[i].dot(r) * self.ro[i])
        return r

    def _move(self, iteration: int) -> bool:
        """Go one step; returns whether to go on."""
        options, lr = self.options, checks.scalar(self.options["lr"])
        first = self.state["n_iter"] == 1
        self.t = min(1.0, 1.0 / self.grad.abs().sum()) * lr if first else lr
        slope = self.grad.dot(self.d)
        if slope > -options["tolerance_change"]:
            return False
        flat = self._advance(slope, last=iteration == options["max_iter"])
        if iteration == options["max_iter"] or self.evaluations >= options["max_eval"] or flat:
            return False
        if self.d.mul(self.t).abs().max() <= options["tolerance_change"]:
            return False
        return bool(abs(self.loss - self.prev_loss) >= options["tolerance_change"])

    def _advance(self, slope: Tensor, last: bool) -> bool:
        """Move the parameters; returns whether the new gradient is flat."""
        kind = self.options["line_search_fn"]
        if kind is None:
            self.optimizer._add_grad(self.t, self.d)
            if last:  # nobody will look at loss and gradient there
                return False
            self.loss = float(self.closure())
            self.grad = self.optimizer._gather_flat_grad()
            evaluations = 1
        elif kind == "strong_wolfe":
            start = [param.clone(memory_format=torch.contiguous_format) for param in self.optimizer._params]
            found = strong_wolfe(
                lambda t: self._try(start, t), self.t, self.d, self.loss, self.grad, slope,
                most=self.options["max_eval"] - self.evaluations,
            )  # fmt: skip
            self.loss, self.grad, self.t, evaluations = found
            self.optimizer._add_grad(self.t, self.d)
        else:
            raise RuntimeError("only 'strong_wolfe' is supported")
        flat = self._flat()
        self._count(evaluations)
        return flat

    def _try(self, start: list[Tensor], t: Any) -> tuple[float, Tensor]:
        """Loss and gradient a step ``t`` away; the parameters are where they were afterwards."""
        self.optimizer._add_grad(t, self.d)
        loss, grad = float(self.closure()), self.optimizer._gather_flat_grad()
        for param, value in zip(self.optimizer._params, start, strict=True):
            param.copy_(value)
        return loss, grad
