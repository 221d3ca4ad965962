"""Distances between vectors: cosine similarity, pairwise distance, and all pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, scalar_name
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.norms import norm_grad, vector_norm
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


def _pdist_grad(grad: Tensor, self: Tensor, p: float, result: Tensor) -> Any:
    rows, cols = np.triu_indices(self.shape[0], 1)
    array, share = resolved(self), resolved(grad)[:, None]
    gap, whole = array[rows] - array[cols], resolved(result)[:, None]
    with np.errstate(all="ignore"):
        if p == 0:
            slope = np.zeros_like(gap)
        elif p == float("inf"):
            slope = np.sign(gap) * (np.abs(gap) == whole)
        elif p == 1:
            slope = np.sign(gap)
        else:
            slope = np.where(whole == 0, 0, np.sign(gap) * np.abs(gap) ** (p - 1) / whole ** (p - 1))
    total = np.zeros_like(array)
    np.add.at(total, rows, share * slope)
    np.add.at(total, cols, -share * slope)
    return fresh(total, self.dtype, self.device)


_pdist_op = define(
    "_pdist_forward(Tensor self, float p=2) -> Tensor",
    doc="The distances of all pairs of rows.",
    run=_pdist,
    grads={"self": _pdist_grad},
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
