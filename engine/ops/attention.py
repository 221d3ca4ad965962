"""Scaled dot product attention: the fused form that PyTorch's CPU takes, and the form made of matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import in_cpp
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import FLOAT, bool_, cpp_name, dtype, float32, float64
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.softmax import softmax_of
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh

NAMESPACE = "torch._C._nn"

# ---- the fused op ----------------------------------------------------------------------------------------------------


def _scores(query: Array, key: Array, causal: bool, mask: Array | None, scale: float) -> Array:
    scores = np.matmul(query, key.swapaxes(-1, -2)) * query.dtype.type(scale)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)  # type: ignore[type-var]
    if mask is None:
        return scores  # type: ignore[no-any-return]
    return np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask


def _wide(*tensors: Tensor) -> list[Array]:
    arrays = [resolved(t) for t in tensors]
    return [a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in arrays]


def _repeated(array: Array, heads: int) -> Array:
    """Keys and values that several query heads share."""
    return array if array.shape[1] == heads else np.repeat(array, heads // array.shape[1], 1)


def _flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Tensor | None,
    scale: float | None,
) -> tuple[Tensor, Tensor]:
    q, k, v = _wide(query, key, value)
    k, v = (_repeated(a, q.shape[1]) for a in (k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = _scores(q, k, is_causal, None if attn_mask is None else resolved(attn_mask), factor)
    top = scores.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    shares = np.exp(scores - top)
    total = shares.sum(-1, keepdims=True)
    weights = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    out = np.matmul(weights, v).astype(query.dtype.np)
    sums = (np.log(total) + top)[..., 0].astype(q.dtype)
    kind = float64 if q.dtype == np.float64 else float32
    placed = laid_out(out, dense_strides_like(out.shape, query.strides))
    return fresh(placed, query.dtype, query.device), fresh(dense(sums), kind, query.device)


def _flash_back(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Tensor | None,
    scale: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    grad, q, k, v, o = _wide(grad_out, query, key, value, out)
    groups = (k.shape[1], v.shape[1])
    k, v = (_repeated(a, q.shape[1]) for a in (k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = _scores(q, k, is_causal, None if attn_mask is None else resolved(attn_mask), factor)
    sums = resolved(logsumexp)[..., None]
    weights = np.exp(scores - np.where(np.isfinite(sums), sums, np.inf))
    by_value = np.matmul(weights.swapaxes(-1, -2), grad)
    slopes = weights * (np.matmul(grad, v.swapaxes(-1, -2)) - (grad * o).sum(-1, keepdims=True)) * q.dtype.type(factor)
    found = (np.matmul(slopes, k), np.matmul(slopes.swapaxes(-1, -2), q), by_value)
    summed = (found[0], _grouped(found[1], groups[0]), _grouped(found[2], groups[1]))
    return tuple(  # type: ignore[return-value]
        fresh(laid_out(a.astype(t.dtype.np), dense_strides_like(a.shape, t.strides)), t.dtype, t.device)
        for a, t in zip(summed, (query, key, value), strict=True)
    )


def _grouped(array: Array, heads: int) -> Array:
    """The gradients of heads that were shared, added up."""
    if array.shape[1] == heads:
        return array
    return array.reshape((array.shape[0], heads, -1, *array.shape[2:])).sum(2)


flash_backward = define(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> "
    "(Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    doc="The gradients of queries, keys and values.",
    run=_flash_back,
    method=False,
    function=False,
)


def _flash_grad(
    grad: Tensor,
    needs: Sequence[bool],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Tensor | None,
    scale: float | None,
) -> Any:
    found = flash_backward.call(
        grad, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )
    return tuple(part if need else None for part, need in zip(found, needs, strict=True))


flash = define(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    doc="Values, mixed by the softmax of scaled products of queries and keys.",
    run=_flash,
    grads={"query,key,value": _flash_grad},
    differentiable_outputs=(0,),
    method=False,
)

# ---- by matrix products ----------------------------------------------------------------------------------------------


def _safe(self: Tensor, dim: int, kind: dtype | None) -> Tensor:
    array = resolved(self)
    if self.dtype.category != FLOAT and array.size:
        last = dim % max(array.ndim, 1) == max(array.ndim, 1) - 1
        raise not_implemented("softmax_lastdim_kernel_impl" if last else "softmax_kernel_impl", self.dtype)
    wide = array.astype(np.float32) if array.dtype.itemsize == 2 else array
    hidden = np.isneginf(wide).all(axis=dim, keepdims=True) if wide.size else np.zeros((), bool)
    result = np.where(hidden, wide.dtype.type(0), softmax_of(np.where(hidden, 0, wide), dim % max(array.ndim, 1)))
    return fresh(dense(result.astype(array.dtype)), self.dtype, self.device)


def _safe_grad(grad: Tensor, result: Tensor, dim: int) -> Any:
    weighted = grad * result
    return weighted - result * weighted.sum(dim, True)


safe_softmax = define(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    doc="softmax; rows of nothing but minus infinity become zeros.",
    run=_safe,
    grads={"self": _safe_grad},
    method=False,
)


def _as_bias(mask: Tensor | None, kind: dtype) -> Any:
    if mask is None or mask.dtype is not bool_:
        return mask
    blank = mask.new_zeros(mask.shape, dtype=kind)
    return blank.masked_fill_(mask.logical_not(), -math.inf)


def _causal(query: Tensor, key: Tensor) -> Any:
    shape = (query._array.shape[-2], key._array.shape[-2])
    return query.new_ones(shape, dtype=bool_).tril()


@in_cpp
def _by_products(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    gqa: bool,
) -> Any:
    width = max(query._array.shape[-1], 1)
    factor = math.sqrt(1 / math.sqrt(width) if scale is None else abs(scale))
    first = query * (factor if scale is None or scale >= 0 else -factor)
    bias = _as_bias(mask, first.dtype)
    if is_causal:
        low = _as_bias(_causal(query, key), first.dtype)
        bias = low if bias is None else bias + low
    if gqa:
        times = query._array.shape[-3] // key._array.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = op_call("matmul")(first, key.transpose(-2, -1) * factor)
    if bias is not None:
        scores = scores.add_(bias)
    weights = safe_softmax.call(scores, -1, None)
    if dropout_p > 0:
        weights = op_call("dropout")(weights, dropout_p, True)
    return op_call("matmul")(weights, value)


def _validate(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    tensors = (query, key, value)
    if len({t.dtype for t in tensors}) > 1:
        q, k, v = (cpp_name(t.dtype) for t in tensors)
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {q} key.dtype: {k} and "
            f"value.dtype: {v} instead."
        )
    if any(t.dim() < 2 for t in tensors):
        q, k, v = (str(t.dim()) for t in tensors)
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {q} key.dim: {k} "
            "and "
            f"value.dim: {v} instead."
        )
    if mask is not None and mask.dtype not in (bool_, float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{cpp_name(mask.dtype)} and  query.dtype: {cpp_name(query.dtype)} instead."
        )


def _fits_fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, gqa: bool
) -> bool:
    q, k, v = (t._array.shape for t in (query, key, value))
    if not (len(q) == len(k) == len(v) == 4) or dropout_p > 0 or query.dtype.category != FLOAT:
        return False
    heads = q[1] == k[1] == v[1] or (gqa and k[1] == v[1] and k[1] > 0 and q[1] % k[1] == 0)
    sizes = q[0] == k[0] == v[0] and q[3] == k[3] == v[3] and k[2] == v[2] and heads
    if not sizes or 0 in q or 0 in k:
        return False
    if mask is None:
        return True
    fits = mask.dim() in (2, 4) and all(m in (1, n) for m, n in zip(mask._array.shape[-2:], (q[2], k[2]), strict=True))
    return fits and not mask._requires_grad and not is_causal


def _is_empty(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether there is nothing to compute; queries and keys without features still see all values alike."""
    return 0 in (*query._array.shape[:-1], *key._array.shape[:-1], *value._array.shape)


@in_cpp
def _nothing_seen(query: Tensor, key: Tensor, value: Tensor) -> Any:
    """Zeros, in the graph of all three."""
    zeros = query.new_zeros((*query._array.shape[:-1], value._array.shape[-1]))
    return zeros + (query.sum() + key.sum() + value.sum()) * 0


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    _validate(query, key, value, attn_mask)
    if _is_empty(query, key, value):
        return _nothing_seen(query, key, value)
    if _fits_fused(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
        bias = attn_mask if attn_mask is None or attn_mask.dtype is bool_ else _as_bias(attn_mask, query.dtype)
        return flash.call(query, key, value, dropout_p, is_causal, attn_mask=bias, scale=scale)[0]
    return _by_products(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


define(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    doc="Values, mixed by the softmax of scaled products of queries and keys.",
    composite=_attention,
    samples=[((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))],
    method=False,
    namespace=NAMESPACE,
)
