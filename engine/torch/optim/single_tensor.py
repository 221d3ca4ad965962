"""The step that most optimizers share: each parameter that has a gradient is updated on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import enable_grad, set_grad_enabled
from stridescope.engine.autograd.policies import _unsafe_preserve_version_counter
from stridescope.engine.dtype import dtype
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.optim.optimizer import Optimizer

FUSED_DEVICES = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]
CAPTURABLE_DEVICES = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


class SingleTensorOptimizer(Optimizer):
    """Subclasses define what state a parameter begins with and how one gradient changes it."""

    _as_real = True  # a complex parameter is updated as pairs of real numbers
    _counts_steps = True
    _on_device = "params and state_steps"  # what ``capturable`` wants on the device, in PyTorch's words
    _xla = (True, True)  # whether PyTorch names XLA among the devices, one by one and with ``foreach``

    def _begin(self, param: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Fill the empty state of a parameter."""

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change one parameter by its gradient."""
        raise NotImplementedError

    def _state_of(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter; empty before its first update."""
        state: dict[str, Any] = self.state[param]
        return state

    def _refuse(self, param: Tensor, group: dict[str, Any]) -> None:
        """Raise RuntimeError for a parameter that this optimizer can't handle."""

    @in_each
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; returns what ``closure`` returned."""
        with set_grad_enabled(self.defaults.get("differentiable", False)):
            loss = None
            if closure is not None:
                with enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for param, grad, state in list(self._ready(group)):
                    self._update_one(param, grad, state, group)
        return loss

    def _ready(self, group: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor, dict[str, Any]]]:
        """The parameters that have a gradient, with their states; new states are begun."""
        for param in group["params"]:
            grad = param.grad
            if grad is not None:
                if group.get("fused"):
                    _check_fused(param)
                self._refuse(param, group)
                state = self._state_of(param, group)
                if not state:
                    if self._counts_steps:
                        state["step"] = counter(0.0, param, group)
                    self._begin(param, group, state)
                yield param, grad, state

    def _update_one(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group.get("capturable"):
            self._check_capturable(param, state, bool(group.get("foreach")))
        if group.get("maximize"):
            grad = -grad
        if self._as_real and param.is_complex():
            param, grad = torch.view_as_real(param), torch.view_as_real(grad)
            state = {key: _real(value) for key, value in state.items()}
        if not group.get("fused"):
            return self._update(param, grad, state, group)
        # a fused kernel counts no write but that of the step
        kept = (value for key, value in state.items() if key != "step" and isinstance(value, Tensor))
        with _unsafe_preserve_version_counter((param, *kept)):
            return self._update(param, grad, state, group)

    def _check_capturable(self, param: Tensor, state: dict[str, Any], foreach: bool) -> None:
        on, devices = param.device.type, CAPTURABLE_DEVICES if self._xla[foreach] else CAPTURABLE_DEVICES[:-1]
        if on not in devices or state["step"].device.type != on:
            what = self._on_device.format(comma="," if foreach else "")
            raise AssertionError(f"If capturable=True, {what} must be on supported devices: {devices}.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for param in group["params"]:
                found = self.state.get(param, {})
                if "step" in found and not isinstance(found["step"], Tensor):
                    found["step"] = counter(float(found["step"]), param, group)


def _check_fused(param: Tensor) -> None:
    if not param.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            f"{FUSED_DEVICES} but {param.dtype} and {param.device.type}"
        )


def _real(value: Any) -> Any:
    return torch.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def counter_dtype(fused: Any = None) -> dtype:
    """The dtype of a step count: the default one as far as it is exact enough."""
    double: dtype = torch.float64
    return double if torch.get_default_dtype() == double and not fused else torch.float32


def counter(value: float, param: Tensor, group: dict[str, Any]) -> Tensor:
    """A number of the state that is kept as a tensor: on the CPU, unless the whole step runs on the device."""
    fused = group.get("fused")
    on = param.device if group.get("capturable") or fused else torch.device("cpu")
    made: Tensor = torch.tensor(value, dtype=counter_dtype(fused), device=on)
    return made


def like(param: Tensor) -> Tensor:
    """Zeros in the parameter's layout."""
    zeros: Tensor = torch.zeros_like(param, memory_format=torch.preserve_format)
    return zeros


def counted(state: dict[str, Any]) -> float:
    """Count one step and return the number of steps."""
    step = state["step"]
    step += 1
    number: float = step.item()
    return number


def decayed(grad: Tensor, param: Tensor, weight_decay: Any) -> Tensor:
    """The gradient of the loss plus L2 regularisation."""
    if weight_decay == 0:
        return grad
    with_decay: Tensor = grad.add(param, alpha=weight_decay)
    return with_decay


def plus(tensor: Tensor, eps: float, group: dict[str, Any]) -> Tensor:
    """``tensor + eps``: in place, unless autograd will need what was there."""
    out: Tensor = tensor.add(eps) if group["differentiable"] else tensor.add_(eps)
    return out
