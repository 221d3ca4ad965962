"""``torch.masked``: reductions and normalizations of the elements that a mask leaves in.

Where a mask is True an element takes part. What is masked out is replaced by the operation's identity (0 in a sum, 1 in
a product, minus infinity in a maximum), so results are those of the plain operation on the rest. A mask has at most as
many dimensions as the input, and is broadcast to it. ``dtype`` is that of the result, the input's by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine import torch
from stridescope.engine.dtype import FLOAT, dtype
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import missing_from

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip
__getattr__ = missing_from("torch.masked")
_Dims = int | Sequence[int] | None
_inf = float("inf")


# ---- the mask ----------------------------------------------------------------------------------------------------


def _spread(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as bool in the input's shape; raises IndexError when it has more dimensions."""
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = torch.broadcast_to(mask.clone(), input.shape)
    return mask.to(dtype=torch.bool)  # type: ignore[no-any-return]


def _lowest(input: Tensor, name: str, sign: int) -> Any:
    """What every element is above (``sign`` -1) or below (``sign`` 1)."""
    kind = input.dtype
    if kind.is_floating_point:
        return sign * _inf
    if kind.is_complex and name == "logsumexp":
        return complex(sign * _inf, 0)
    if kind is torch.bool:
        raise NotImplementedError(f"identity of {name} on {kind} input")
    limits = torch.iinfo(kind)
    return limits.min if sign < 0 else limits.max


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """The input with ``value`` where the mask is False."""
    if mask is None:
        return input
    inside = _spread(input, mask)
    return torch.where(inside, input, torch.tensor(value, dtype=input.dtype, device=input.device))  # type: ignore[no-any-return]


def _bounded(input: Tensor, mask: Tensor | None, name: str, sign: int) -> Tensor:
    return input if mask is None else _filled(input, mask, _lowest(input, name, sign))


def _dims(dim: _Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions as a sorted tuple, all of them for None and (); raises IndexError and RuntimeError."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    return tuple(sorted(found))


def _summed(input: Tensor) -> dtype:
    """The dtype of a sum: int64 for the smaller integers."""
    return input.dtype if input.dtype.category >= FLOAT else torch.int64


# ---- reductions --------------------------------------------------------------------------------------------------


def sum(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The sum over ``dim``; 0 where all is masked out."""
    dims = _dims(dim, input.ndim)
    wanted = dtype or _summed(input)
    result: Tensor = torch.sum(_filled(input, mask, 0), dims, bool(keepdim), dtype=wanted)
    return result


def prod(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The product over ``dim``; 1 where all is masked out."""
    dims = _dims(dim, input.ndim)
    wanted = dtype or _summed(input)
    result: Tensor = _filled(input, mask, 1).to(dtype=wanted)
    for d in reversed(dims):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def cumsum(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along ``dim``, in the input's dtype, integers too."""
    kind, along = dtype or input.dtype, _dims(dim, input.ndim)[0]
    result: Tensor = torch.cumsum(_filled(input, mask, 0), along, dtype=kind).to(dtype=kind)
    return result


def cumprod(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The running product along ``dim``, in the input's dtype, integers too."""
    kind, along = dtype or input.dtype, _dims(dim, input.ndim)[0]
    result: Tensor = torch.cumprod(_filled(input, mask, 1), along, dtype=kind).to(dtype=kind)
    return result


def amax(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The largest over ``dim``; the least number of the dtype where all is masked out."""
    inside = _bounded(input, mask, "amax", -1)
    result: Tensor = torch.amax(inside, _dims(dim, inside.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)
    return result


def amin(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The smallest over ``dim``; the greatest number of the dtype where all is masked out."""
    inside = _bounded(input, mask, "amin", 1)
    result: Tensor = torch.amin(inside, _dims(dim, inside.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)
    return result


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the largest stands, in the input's dtype."""
    inside = _bounded(input, mask, "argmax", -1)
    result: Tensor = torch.argmax(inside, dim, bool(keepdim)).to(dtype=dtype or input.dtype)
    return result


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the smallest stands, in the input's dtype."""
    inside = _bounded(input, mask, "argmin", 1)
    result: Tensor = torch.argmin(inside, dim, bool(keepdim)).to(dtype=dtype or input.dtype)
    return result


def _count(input: Tensor, dim: _Dims, keepdim: bool | None, mask: Tensor | None) -> Tensor:
    """How many elements take part, int64."""
    if mask is None:
        return sum(torch.ones(input.shape, dtype=torch.int64, device=input.device), dim, keepdim=keepdim)
    counted: Tensor = mask.sum(dim=dim, keepdim=bool(keepdim))
    return counted


def mean(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The mean over ``dim``; nan where all is masked out. Raises ValueError for integers."""
    kind = dtype or input.dtype
    if kind.category < FLOAT:
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Optional' if dtype else 'Input'} dtype must be either "
            f"a floating point or complex dtype. Got: {kind}"
        )
    inside = None if mask is None else _spread(input, mask)
    count = _count(input, dim, keepdim, inside)
    result: Tensor = sum(input, dim, keepdim=keepdim, dtype=kind, mask=inside) / count
    return result


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The median along ``dim``; nan where all is masked out, which raises ValueError for integers."""
    kind, along = dtype or input.dtype, _dims(dim, input.ndim)[0]
    floating = input.dtype.is_floating_point
    inside = _filled(input if floating else input.to(dtype=torch.float32), mask, float("nan"))
    result: Tensor = torch.nanmedian(inside, along, keepdim).values
    if floating:
        return result
    if torch.isnan(result).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype=kind)  # type: ignore[no-any-return]


def logsumexp(
    input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials over ``dim``."""
    dims = _dims(dim, input.ndim)
    inside = _bounded(input, mask, "logsumexp", -1)
    result: Tensor = torch.logsumexp(inside, dims, keepdim=keepdim).to(dtype=dtype or input.dtype)
    return result


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: dtype | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The logarithm of the sum of two exponentials, each with a mask of its own."""
    left = _bounded(input, input_mask, "logaddexp", -1)
    right = _bounded(other, other_mask, "logaddexp", -1)
    result: Tensor = torch.logaddexp(left, right).to(dtype=dtype or input.dtype)
    return result


def norm(
    input: Tensor, ord: float | None = 2.0, dim: _Dims = None, *, keepdim: bool | None = False,
    dtype: dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The vector norm of order ``ord`` over ``dim``; 0 where all is masked out (infinity for order -inf)."""
    inside = _filled(input, mask, _inf if ord == -_inf else 0)
    dims = _dims(dim, input.ndim)
    result: Tensor = torch.linalg.vector_norm(inside, ord, dims, bool(keepdim), dtype=dtype or input.dtype)
    return result


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is not None:
        return float(correction)
    return 1.0 if unbiased is None or unbiased else 0.0


def _degrees(count: Tensor, correction: float, kind: dtype) -> Tensor:
    """What the sum of squares is divided by: at least 0."""
    if correction == 0:
        return count
    free = torch.subtract(count.to(kind.to_real()), correction)
    result: Tensor = torch.maximum(free, free.new_zeros([]))
    return result


def _spread_of(
    input: Tensor, dim: _Dims, correction: float, keepdim: bool | None, dtype: dtype | None, mask: Tensor | None
) -> Tensor:
    """The variance of the elements in the mask."""
    kind = dtype or (input.dtype if input.dtype.category >= FLOAT else torch.float32)
    inner = kind if kind.category >= FLOAT else torch.float32
    inside = None if mask is None else _spread(input, mask)
    count = _count(input, dim, True, inside)
    total = sum(input, dim, keepdim=True, dtype=kind, mask=inside)
    away = torch.subtract(input, torch.divide(total, count))
    squares = sum(away * away.conj(), dim, keepdim=keepdim, dtype=inner, mask=inside)
    if not keepdim:
        count = count.reshape(squares.shape)
    result: Tensor = torch.divide(squares, _degrees(count, correction, inner)).to(dtype=kind)
    return result


def var(
    input: Tensor, dim: _Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance over ``dim``; nan where all is masked out."""
    return _spread_of(input, dim, _correction(unbiased, correction), keepdim, dtype, mask)


def std(
    input: Tensor, dim: _Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation over ``dim``; nan where all is masked out."""
    variance = _spread_of(input, dim, _correction(unbiased, correction), keepdim, dtype, mask)
    return torch.sqrt(variance)  # type: ignore[no-any-return]


# ---- normalizations ----------------------------------------------------------------------------------------------


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax along ``dim``: 0 where masked out, nan where all of it is."""
    along = _dims(dim, input.ndim)[0]
    inside = _bounded(input, mask, "amax", -1)
    return torch.nn.functional.softmax(inside, along, dtype=dtype or input.dtype)  # type: ignore[no-any-return]


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of softmax along ``dim``."""
    along = _dims(dim, input.ndim)[0]
    inside = _bounded(input, mask, "amax", -1)
    return torch.nn.functional.log_softmax(inside, along, dtype=dtype or input.dtype)  # type: ignore[no-any-return]


def softmin(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negated elements along ``dim``."""
    along = _dims(dim, input.ndim)[0]
    inside = _bounded(input, mask, "amin", 1)
    return torch.nn.functional.softmin(inside, along, dtype=dtype or input.dtype)  # type: ignore[no-any-return]


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The elements divided by their norm of order ``ord`` along ``dim``, which counts as at least ``eps``."""
    inside = _filled(input, mask, 0)
    size = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return torch.divide(inside, torch.maximum(size, size.new_full([], eps)))  # type: ignore[no-any-return]
