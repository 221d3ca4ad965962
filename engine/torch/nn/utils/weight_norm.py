"""The older weight norm and spectral norm of ``torch.nn.utils``: a hook computes the weight before every call."""

from __future__ import annotations

from typing import Any, TypeVar

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.parameter import Parameter
from stridescope.engine.torch.nn.utils.parametrizations import norm_except_dim
from stridescope.engine.warn import warn

M = TypeVar("M", bound=Module)


class WeightNorm:
    """The hook of ``weight_norm``."""

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Module) -> Any:
        """The weight of its length and direction."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except_dim(v, self.dim))

    def __call__(self, module: Module, inputs: Any) -> None:  # noqa: D102
        setattr(module, self.name, self.compute_weight(module))


class SpectralNorm:
    """The hook of ``spectral_norm``."""

    def __init__(self, name: str, iterations: int, dim: int, eps: float) -> None:
        self.name, self.iterations, self.dim, self.eps = name, iterations, dim, eps

    def matrix(self, weight: Any) -> Any:
        """The weight as a matrix with its output dim first."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        """The weight divided by its largest singular value."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix, mv = self.matrix(weight), FUNCTIONS["torch"]["mv"]
        if do_power_iteration:
            with no_grad():
                for _ in range(self.iterations):
                    v.copy_(F.normalize(mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / FUNCTIONS["torch"]["dot"](u, mv(matrix, v))

    def __call__(self, module: Module, inputs: Any) -> None:  # noqa: D102
        setattr(module, self.name, self.compute_weight(module, module.training))


def _hooked(module: Module, name: str, kind: type) -> Any:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            return key, hook
    return None, None


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Split a weight into ``name_g`` and ``name_v``."""
    warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    if _hooked(module, name, WeightNorm)[1] is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, -1 if dim is None else dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, hook.dim).data))
    module.register_parameter(f"{name}_v", Parameter(weight.data))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight a plain parameter again."""
    key, hook = _hooked(module, name, WeightNorm)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = hook.compute_weight(module)
    delattr(module, name)
    del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
    setattr(module, name, Parameter(weight.data))
    del module._forward_pre_hooks[key]
    return module


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value before every call."""
    if dim is None:
        dim = 1 if type(module).__name__ in ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d") else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    assert weight is not None
    matrix = hook.matrix(weight.data)
    height, width = matrix.size()
    u = F.normalize(weight.data.new_empty(height).normal_(0, 1), dim=0, eps=eps)
    v = F.normalize(weight.data.new_empty(width).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the weight a plain parameter again."""
    key, hook = _hooked(module, name, SpectralNorm)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    with no_grad():
        weight = hook.compute_weight(module, False)
    delattr(module, name)
    for suffix in ("orig", "u", "v"):
        delattr(module, f"{name}_{suffix}")
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    return module
