"""Distances between vectors: cosine similarity, pairwise distance, and all pairs of rows of one tensor or two."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.promote import result_type
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import FLOAT, scalar_name
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.lookup import concatenated, op_call
from stridescope.engine.ops.norms import lengths, norm_grad, vector_norm
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh


def _cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Any:
    kind = op_call("add.Tensor")(x1.new_zeros(()), x2.new_zeros(())).dtype if x1.dtype is not x2.dtype else x1.dtype
    if kind.category != FLOAT:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {scalar_name(kind)}")
    first, second = op_call("broadcast_tensors")([x1.to(kind), x2.to(kind)])
    a = first / _length(first, dim, eps)
    b = second / _length(second, dim, eps)
    return (a * b).sum(dim)


def _length(tensor: Tensor, dim: int, eps: float) -> Any:
    """The norm that is never below eps; autograd sees only the norm."""
    size = op_call("linalg_vector_norm")(tensor, 2, (dim,), True).clone()
    with no_grad():
        size.clamp_min_(eps)
    return size


define(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    doc="The cosine of the angle between vectors along a dim.",
    composite=_cosine,
    samples=[((3, 4), (3, 4))],
    method=False,
)


_length_by_p = define(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    doc="The p-norm along some dims.",
    run=lambda self, p, dim, keepdim: vector_norm.run(self, p, dim, keepdim, None),  # type: ignore[misc]
    grads={"self": lambda grad, self, p, dim, keepdim, result: norm_grad(grad, self, float(p), result, dim, keepdim)},
    node="NormBackward1",
    method=False,
    function=False,
)


def _pairwise(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Any:
    inner = max(x1.dim(), x2.dim())
    return _length_by_p.call(op_call("add.Scalar")(x1 - x2, eps), p, (inner - 1,), keepdim)


define(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    doc="The p-norm of the difference along the last dim.",
    composite=_pairwise,
    samples=[((3, 4), (3, 4))],
    method=False,
)


def _pdist(self: Tensor, p: float) -> Tensor:
    if self.dtype.itemsize == 2 and self.shape[0] > 1:
        raise not_implemented("pdist", self.dtype)
    array = resolved(self)
    rows, cols = np.triu_indices(len(array), 1)
    gap = np.abs(array[rows] - array[cols])
    if p == 0:
        result = (gap != 0).sum(1).astype(array.dtype)
    elif p == float("inf"):
        result = gap.max(1) if gap.size else np.zeros(len(rows), array.dtype)
    else:
        result = ((gap**p).sum(1) ** (1 / p)).astype(array.dtype)
    return fresh(dense(result), self.dtype, self.device)


def _slopes(gap: Array, whole: Array, p: float) -> Array:
    """How a p-norm distance grows with each difference; 0 where it has a corner."""
    if p == 0:
        return np.zeros_like(gap)
    if p == 1:
        return np.asarray(np.sign(gap))
    with np.errstate(all="ignore"):
        if p == float("inf"):
            return np.asarray(np.sign(gap) * (np.abs(gap) == whole))
        steep = (whole == 0) | (gap == 0) if p < 1 else whole == 0
        return np.where(steep, 0, np.sign(gap) * np.abs(gap) ** (p - 1) / whole ** (p - 1))


def _refused(name: str) -> Callable[..., Any]:
    """The formula of an op whose derivative nobody has written."""

    def formula(grad: Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return formula


def _pdist_back(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    rows, cols = np.triu_indices(self.shape[0], 1)
    array, share = resolved(self), resolved(grad)[:, None]
    slope = share * _slopes(array[rows] - array[cols], resolved(pdist)[:, None], p)
    total = np.zeros_like(array)
    np.add.at(total, rows, slope)
    np.add.at(total, cols, -slope)
    return fresh(total, self.dtype, self.device)


_pdist_backward = define(
    "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
    doc="The gradient of the distances of all pairs of rows.",
    run=_pdist_back,
    grads={"grad,self,pdist": _refused("_pdist_backward")},
    method=False,
    function=False,
)
_pdist_op = define(
    "_pdist_forward(Tensor self, float p=2) -> Tensor",
    doc="The distances of all pairs of rows.",
    run=_pdist,
    grads={"self": lambda grad, self, p, result: _pdist_backward.call(grad, self, p, result)},
    node="PdistBackward0",
    method=False,
    function=False,
)


def _checked_pdist(self: Tensor, p: float) -> Any:
    if self.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.dim()}D")
    if self.dtype.category != FLOAT:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist_op.call(self.contiguous(), p)


define(
    "pdist(Tensor self, float p=2) -> Tensor",
    doc="The distances of all pairs of rows.",
    composite=_checked_pdist,
    samples=[((4, 3),)],
    method=False,
)

# ---- all pairs of two tensors ----------------------------------------------------------------------------------------

MANY = 25  # rows beyond which Euclidean distances are another op, as PyTorch computes those by matrix products


def _check_cdist(x1: Tensor, x2: Tensor, p: float) -> None:
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {tensor.dim()}D")
    for name, tensor in (("X1", x1), ("X2", x2)):
        if tensor.dtype.category != FLOAT:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {scalar_name(tensor.dtype)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")


def _apart(x1: Tensor, x2: Tensor) -> Array:
    kind = result_type(x1, x2)
    return cast(resolved(x1), kind)[..., :, None, :] - cast(resolved(x2), kind)[..., None, :, :]


def _cdist_run(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    _check_cdist(x1, x2, p)
    kind = x1.dtype
    if x1._array.size and x2._array.size:
        if kind.itemsize == 2:
            raise not_implemented("cdist", kind)
        if x2.dtype is not kind:
            raise RuntimeError(f"expected scalar type {scalar_name(kind)} but found {scalar_name(x2.dtype)}")
    apart = _apart(x1, x2)
    result = lengths(apart, p, (apart.ndim - 1,), False) if apart.shape[-1] else np.zeros(apart.shape[:-1], apart.dtype)
    return wrapped(result, kind, x1)


def _cdist_back(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    apart = _apart(x1, x2)
    slope = resolved(grad)[..., None] * _slopes(apart, resolved(cdist)[..., None], p)
    return wrapped(_of_shape(slope.sum(-2), x1._array.shape), x1.dtype, x1)


def _of_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """What was stretched over a batch, summed to the shape that it had."""
    array = array.sum(tuple(range(array.ndim - len(shape))))
    return array.sum(tuple(d for d, n in enumerate(shape) if n == 1 != array.shape[d]), keepdims=True)


_cdist_backward = define(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    doc="The gradient of the distances of each pair of rows, for the first rows.",
    run=_cdist_back,
    grads={"grad,x1,x2,cdist": _refused("_cdist_backward")},
    method=False,
    function=False,
)


def _second_rows(grad: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor) -> Any:
    return _cdist_backward.call(grad.mT.contiguous(), x2, x1, p, result.mT.contiguous())


_cdist_forward = define(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    doc="The p-norm distance of each pair of rows.",
    run=_cdist_run,
    node="CdistBackward0",
    grads={
        "x1": lambda grad, x1, x2, p, result: _cdist_backward.call(grad.contiguous(), x1, x2, p, result),
        "x2": _second_rows,
    },
    method=False,
)


def _euclidean(x1: Tensor, x2: Tensor) -> Tensor:
    """Distances out of one matrix product: ``|a|² - 2ab + |b|²``, which loses digits where points are close."""
    square1, square2 = x1.pow(2).sum(-1, True), x2.pow(2).sum(-1, True)
    first = concatenated([x1.mul(-2), square1, square1.new_ones(square1.shape)], -1)
    second = concatenated([x2, square2.new_ones(square2.shape), square2], -1)
    return first.matmul(second.mT).clamp_min_(0).sqrt_()  # type: ignore[no-any-return]


def _euclidean_grad(grad: Tensor, x1: Tensor, x2: Tensor, result: Tensor) -> Any:
    ratio = (grad / result).masked_fill(result == 0, 0)
    matmul = op_call("matmul")
    return (
        x1 * ratio.sum(-1, True) - matmul(ratio, x2),
        x2 * ratio.sum(-2, False).unsqueeze(-1) - matmul(ratio.mT, x1),
    )


_euclidean_dist = define(
    "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
    doc="The Euclidean distance of each pair of rows.",
    run=lambda x1, x2: _euclidean(x1.detach(), x2.detach()),
    grads={"x1,x2": _euclidean_grad},
    method=False,
    function=False,
)
MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """``torch.cdist``: the p-norm distance of each pair of rows of two batches."""
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    mode = MODES[compute_mode]
    _check_cdist(x1, x2, p)
    many = x1.shape[-2] > MANY or x2.shape[-2] > MANY
    if p == 2 and (mode == 1 or (mode is None and many)) and x1._array.size and x2._array.size:
        return _by_products(x1, x2)
    return _cdist_forward.call(x1, x2, p, mode)  # type: ignore[no-any-return]


def _by_products(x1: Tensor, x2: Tensor) -> Tensor:
    """Euclidean distances, the batches brought to one dim."""
    batch = broadcast_shapes(x1._array.shape[:-2], x2._array.shape[:-2])
    shape = (*batch, x1.shape[-2], x2.shape[-2])
    if math.prod(batch) != 1:
        x1, x2 = (t.expand((*batch, *t.shape[-2:])).contiguous().view((-1, *t.shape[-2:])) for t in (x1, x2))
    return _euclidean_dist.call(x1, x2).view(shape)  # type: ignore[no-any-return]


FUNCTIONS: dict[str, Any] = {"cdist": cdist}
