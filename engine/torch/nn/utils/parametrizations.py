"""``torch.nn.utils.parametrizations``: weight norm, spectral norm and orthogonal weights."""

from __future__ import annotations

from typing import Any

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.utils.parametrize import register_parametrization


def norm_except_dim(v: Tensor, dim: int) -> Any:
    """The norm over all dims but one, kept as dims of size 1."""
    if dim == -1:
        return v.norm(2)
    dims = tuple(d for d in range(v.dim()) if d != dim)
    return FUNCTIONS["torch.linalg"]["vector_norm"](v, 2, dims, True) if dims else v.abs()


class _WeightNorm(Module):
    """A weight as a length and a direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight."""
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))  # type: ignore[no-any-return]

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Its length and direction."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Split a weight into a length and a direction."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iteration follows."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim if dim >= 0 else dim + weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u, v = matrix.new_empty(height).normal_(0, 1), matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Any:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, iterations: int) -> None:
        with no_grad():
            for _ in range(iterations):
                for target, product in (("_u", matrix), ("_v", matrix.mH)):
                    other = self._v if target == "_u" else self._u
                    vector = FUNCTIONS["torch"]["mv"](product, other)
                    getattr(self, target).copy_(F.normalize(vector, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight divided by its largest singular value."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)  # type: ignore[no-any-return]
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        sigma = FUNCTIONS["torch"]["vdot"](u, FUNCTIONS["torch"]["mv"](matrix, v))
        return weight / sigma  # type: ignore[no-any-return]

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if type(module).__name__ in ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d") else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _Orthogonal(Module):
    """The orthogonal matrix that the exponential or the Cayley map makes of a skew-symmetric one."""

    def __init__(self, weight: Tensor, mode: str) -> None:
        super().__init__()
        self.mode = mode
        self.register_buffer("base", _orthogonal_part(weight))

    def forward(self, original: Tensor) -> Tensor:
        """The orthogonal weight."""
        rows, cols = original.shape[-2:]
        tall = original if rows >= cols else original.mT
        lower = tall.tril()
        size = max(rows, cols)
        if size != min(rows, cols):
            blank = lower.new_zeros((*lower.shape[:-1], size - min(rows, cols)))
            lower = FUNCTIONS["torch"]["cat"]([lower, blank], dim=-1)
        skew = lower - lower.mH
        if self.mode == "matrix_exp":
            found = FUNCTIONS["torch"]["matrix_exp"](skew)
        else:
            eye = FUNCTIONS["torch"]["eye"](size, dtype=skew.dtype, device=skew.device)
            found = FUNCTIONS["torch.linalg"]["solve"](eye + skew * 0.5, eye - skew * 0.5)
        found = found[..., : min(rows, cols)]
        found = FUNCTIONS["torch"]["matmul"](self.base, found) if self.base.shape[-1] == size else found
        return found if rows >= cols else found.mT  # type: ignore[no-any-return]

    def right_inverse(self, value: Tensor) -> Tensor:
        """Zeros: the base holds the matrix."""
        if value.shape[-2:] != self.base.shape[-2:] and value.mT.shape[-2:] != self.base.shape[-2:]:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.base.shape}. Got {value.shape}.")
        return FUNCTIONS["torch"]["zeros_like"](value)  # type: ignore[no-any-return]


def _orthogonal_part(weight: Tensor) -> Any:
    with no_grad():
        tall = weight if weight.size(-2) >= weight.size(-1) else weight.mT
        q, r = FUNCTIONS["torch.linalg"]["qr"](tall, mode="complete")
        signs = r.diagonal(dim1=-2, dim2=-1).sgn()
        q = q.clone()
        q[..., : signs.shape[-1]] *= signs.unsqueeze(-2)
        return q


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    mode = orthogonal_map or "matrix_exp"
    if mode not in ("matrix_exp", "cayley"):
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")  # fmt: skip
    return register_parametrization(module, name, _Orthogonal(weight, mode), unsafe=True)
