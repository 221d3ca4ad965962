"""``torch.nn.utils.parametrizations``: weight norm, spectral norm and orthogonal weights."""

from __future__ import annotations

from typing import Any

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.utils.parametrize import register_parametrization
from stridescope.engine.torch.numeric_limits import finfo

TORCH = FUNCTIONS["torch"]


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
    """An orthogonal matrix (or a wide or tall part of one), made by one of three maps.

    ``matrix_exp`` and ``cayley`` take a skew-symmetric matrix, ``householder`` reflections. With a ``base`` the maps
    start from the weight that there was, made orthogonal and completed to a square.
    """

    def __init__(self, weight: Tensor, mode: str, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and mode == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.mode = weight.shape, mode
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, original: Tensor) -> Any:
        """The orthogonal weight."""
        wide = original.size(-2) < original.size(-1)
        tall = original.mT if wide else original
        found = self._reflected(tall) if self.mode == "householder" else self._turned(tall)
        if "base" in self._buffers:
            found = self.base @ found
        return found.mT if wide else found

    def _turned(self, tall: Any) -> Any:
        rows, cols = tall.size(-2), tall.size(-1)
        lower = tall.tril()
        if rows != cols:
            blank = lower.new_zeros(rows, rows - cols).expand(*lower.shape[:-2], -1, -1)
            lower = TORCH["cat"]([lower, blank], dim=-1)
        skew = lower - lower.mH
        if self.mode == "matrix_exp":
            return TORCH["matrix_exp"](skew)[..., :cols]
        one = TORCH["eye"](rows, dtype=skew.dtype, device=skew.device)
        halves = [TORCH["add"](one, skew, alpha=alpha) for alpha in (-0.5, 0.5)]
        return FUNCTIONS["torch.linalg"]["solve"](*halves)[..., :cols]

    @staticmethod
    def _reflected(tall: Any) -> Any:
        reflectors = tall.tril(diagonal=-1)
        lengths = 2.0 / (1.0 + (reflectors * reflectors).sum(dim=-2))
        found = FUNCTIONS["torch.linalg"]["householder_product"](reflectors, lengths)
        return found * tall.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, value: Any) -> Any:
        """What gives this weight; raises ValueError for another shape, NotImplementedError without a known inverse."""
        if value.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {value.shape}."
            )
        wide = value.size(-2) < value.size(-1)
        with no_grad():
            tall = value.mT if wide else value
            if "base" not in self._buffers:
                found = self._reflections_of(tall)
                return found.mT if wide else found
            self.base = _completed(tall)
            start = TORCH["zeros_like"](value)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start

    def _reflections_of(self, tall: Any) -> Any:
        if self.mode != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        found, lengths = TORCH["geqrf"](tall)
        found.diagonal(dim1=-2, dim2=-1).sign_()
        found.diagonal(dim1=-2, dim2=-1)[lengths == 0.0] *= -1
        return found


def _completed(tall: Any) -> Any:
    """A square orthogonal matrix that begins with the columns of ``tall``, made orthogonal where they are not."""
    rows, cols = tall.size(-2), tall.size(-1)
    if rows != cols:
        drawn = TORCH["randn"](*tall.size()[:-2], rows, rows - cols, dtype=tall.dtype, device=tall.device)
        return _orthogonal_part(TORCH["cat"]([tall, drawn], dim=-1))
    one = TORCH["eye"](cols, dtype=tall.dtype, device=tall.device)
    near = 10.0 * rows * finfo(tall.dtype).eps
    return tall.clone() if TORCH["allclose"](tall.mH @ tall, one, atol=near) else _orthogonal_part(tall)


def _orthogonal_part(square: Any) -> Any:
    """The orthogonal factor whose triangular factor has a positive diagonal."""
    packed, lengths = TORCH["geqrf"](square)
    found = FUNCTIONS["torch.linalg"]["householder_product"](packed, lengths)
    found *= packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return found


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    square = weight.size(-2) == weight.size(-1) or weight.is_complex()
    mode = orthogonal_map or ("matrix_exp" if square else "householder")
    if mode not in ("matrix_exp", "cayley", "householder"):
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")  # fmt: skip
    return register_parametrization(module, name, _Orthogonal(weight, mode, use_trivialization), unsafe=True)
