"""Rows picked by number: embedding, and sums, means and maxima of bags of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, int32, int64, scalar_name, type_name
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh


def _check_indices(indices: Tensor, name: str) -> None:
    if indices.dtype not in (int64, int32):
        raise RuntimeError(
            f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: Long, Int; but got "
            f"{type_name(indices.dtype, indices.device.type)} instead (while checking arguments for embedding)"
        )


def _check_range(numbers: Array, rows: int) -> None:
    if numbers.size and (numbers.min() < 0 or numbers.max() >= rows):
        raise IndexError("index out of range in self")


def _embedding(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Tensor:
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices, "indices")
    numbers = resolved(indices)
    _check_range(numbers, weight.shape[0])
    return fresh(dense(resolved(weight)[numbers]), weight.dtype, weight.device)


def _embedding_back(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    numbers = resolved(indices).reshape(-1)
    grad = resolved(grad_output)
    rows = grad.reshape((-1, grad.shape[-1]))
    wide = rows.astype(np.float32) if rows.dtype.itemsize == 2 else rows
    if scale_grad_by_freq and numbers.size:
        wide = wide / np.bincount(numbers)[numbers][:, None].astype(wide.dtype)
    kept = numbers != padding_idx
    total = np.zeros((num_weights, grad.shape[-1]), wide.dtype)
    np.add.at(total, numbers[kept], wide[kept])
    return fresh(total.astype(rows.dtype, copy=False), grad_output.dtype, grad_output.device)


def _again(grad: Tensor, indices: Tensor, padding_idx: int, grad_output_sym_sizes: Any) -> Any:
    picked = grad.index_select(0, indices.reshape((-1,)))
    if padding_idx >= 0:
        picked = picked.masked_fill((indices == padding_idx).reshape((-1, 1)), 0)
    return picked.view(grad_output_sym_sizes)


embedding_backward = define(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    doc="The gradients of the picked rows, added up row by row.",
    run=_embedding_back,
    grads={"grad_output": _again},
    method=False,
    function=False,
)


def _embedding_grad(
    grad: Tensor,
    indices: Tensor,
    weight_sym_argsize_0: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Any:
    return embedding_backward.call(grad, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)


embedding = define(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
    "bool sparse=False) -> Tensor",
    doc="The rows of a table at these numbers.",
    run=_embedding,
    grads={"weight": _embedding_grad},
    method=False,
)


def _renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    table, numbers = self._array, np.unique(resolved(indices))
    _check_range(numbers, table.shape[0])
    for row in numbers:
        norm = float((np.abs(table[row].astype(np.float64)) ** norm_type).sum() ** (1 / norm_type))
        if norm > max_norm:
            table[row] = (table[row] * (max_norm / (norm + 1e-7))).astype(table.dtype)
    return self


define(
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    doc="Shortens the rows at these numbers to a largest norm, in place.",
    run=_renorm,
    method=False,
)

# ---- bags ------------------------------------------------------------------------------------------------------------

SUM, MEAN, MAX = 0, 1, 2


def _bags_of(starts: Array, total: int, include_last: bool) -> Array:
    """Which bag each number belongs to."""
    counts = np.diff(starts if include_last else np.append(starts, total))
    return np.repeat(np.arange(len(counts)), counts)


def _check_bags(weight: Tensor, indices: Tensor, offsets: Tensor, mode: int, per_sample: Tensor | None) -> None:
    if indices.dtype is not offsets.dtype:
        raise RuntimeError(
            f"expected both indices and offsets to have the same dtype, but found {scalar_name(indices.dtype)} and "
            f"{scalar_name(offsets.dtype)}"
        )
    starts = resolved(offsets)
    if starts.size and starts[0] != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                           f"position 0. However, got {starts[0]}")  # fmt: skip
    if starts.size and starts[-1] > indices.numel():
        raise RuntimeError(f"offsets[-1] can not be greater than input's length({indices.numel()}) but got offsets[-1] "
                           f"of {starts[-1]}")  # fmt: skip
    if weight.dtype.category != FLOAT:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {type_name(weight.dtype, weight.device.type)} instead (while checking arguments "
            "for embedding_bag)"
        )
    if per_sample is not None and mode != SUM:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    if per_sample is not None and per_sample.dtype is not weight.dtype:
        names = [type_name(tensor.dtype, tensor.device.type) for tensor in (weight, per_sample)]
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {names[0]} does not equal {names[1]} (while checking arguments for "
            "embedding_bag)"
        )


def _bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[Tensor, ...]:
    _check_bags(weight, indices, offsets, mode, per_sample_weights)
    table, numbers, starts = resolved(weight), resolved(indices), resolved(offsets)
    _check_range(numbers, table.shape[0])
    bags = _bags_of(starts, numbers.size, include_last_offset)
    count = len(starts) - include_last_offset
    rows = table[numbers].astype(np.float32) if table.dtype.itemsize == 2 else table[numbers]
    if per_sample_weights is not None:
        rows = rows * resolved(per_sample_weights)[:, None]
    kept = numbers != padding_idx
    sizes = np.bincount(bags[kept], minlength=count)
    if mode == MAX:
        result, where = _maxima(rows, numbers, bags, kept, count)
    else:
        result, where = np.zeros((count, table.shape[1]), rows.dtype), np.zeros((0,), np.int64)
        np.add.at(result, bags[kept], rows[kept])
        if mode == MEAN:
            result = result / np.maximum(sizes, 1)[:, None].astype(rows.dtype)
    made = [fresh(dense(np.asarray(a, np.int64)), int64, weight.device) for a in (bags, sizes, where)]
    return fresh(dense(result.astype(table.dtype)), weight.dtype, weight.device), *made


def _maxima(rows: Array, numbers: Array, bags: Array, kept: Array, count: int) -> tuple[Array, Array]:
    result, where = np.zeros((count, rows.shape[1]), rows.dtype), np.full((count, rows.shape[1]), -1, np.int64)
    for bag in range(count):
        own = np.flatnonzero((bags == bag) & kept)
        if own.size:
            best = rows[own].argmax(0)
            result[bag], where[bag] = np.take_along_axis(rows[own], best[None], 0)[0], numbers[own][best]
    return result, where


def _bag_back(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Tensor:
    array, bags = resolved(grad), resolved(offset2bag)
    if mode == MAX:
        where, wide = resolved(maximum_indices), array.astype(np.float32) if array.dtype.itemsize == 2 else array
        total = np.zeros((num_weights, array.shape[1]), wide.dtype)
        np.add.at(total, (where.clip(0), np.arange(array.shape[1])), wide * (where >= 0))
        return fresh(total.astype(array.dtype, copy=False), grad.dtype, grad.device)
    scale = np.ones(len(bags)) if per_sample_weights is None else resolved(per_sample_weights).astype(np.float64)
    if scale_grad_by_freq and scale.size:
        scale = scale / _frequencies(resolved(indices))
    if mode == MEAN:
        scale = scale / resolved(bag_size).clip(1)[bags]
    rows = array[bags] * scale.astype(array.dtype)[:, None]
    return _embedding_back(fresh(dense(rows), grad.dtype, grad.device), indices, num_weights, padding_idx, False)


def _frequencies(numbers: Array) -> Array:
    """What ``scale_grad_by_freq`` divides each row's gradient by.

    PyTorch looks for the count of the n-th distinct number in the n-th place of all the sorted numbers, which is
    another number's count wherever a smaller number stands twice.
    """
    ordered, rank = np.sort(numbers), np.unique(numbers, return_inverse=True)[1]
    return np.bincount(numbers)[ordered[rank]]


def _no_second(grad: Tensor) -> Any:
    raise NotImplementedError("the derivative for '_embedding_bag_backward' is not implemented.")


bag_backward = define(
    "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, "
    "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    doc="The gradients of the rows that bags were made of, added up row by row.",
    run=_bag_back,
    grads={"grad": _no_second, "per_sample_weights": _no_second},
    method=False,
    function=False,
)


def _table_grad(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    result1: Tensor,
    result2: Tensor,
    result3: Tensor,
    weight_sym_argsize_0: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int,
) -> Any:
    return bag_backward.call(
        grad, indices, offsets, result1, result2, result3, weight_sym_argsize_0, scale_grad_by_freq, mode, sparse,
        per_sample_weights, padding_idx,
    )  # fmt: skip


def _per_sample_grad(
    grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, result1: Tensor, mode: int, padding_idx: int
) -> Any:
    found = (grad.index_select(0, result1) * weight.index_select(0, indices)).sum(1)
    return found.masked_fill(indices == padding_idx, 0)


bag_core = define(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    doc="Rows of a table, joined bag by bag.",
    run=_bag,
    grads={"weight": _table_grad, "per_sample_weights": _per_sample_grad},
    node="EmbeddingBagBackward0",
    differentiable_outputs=(0,),
    method=False,
)


def _public_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Any:
    place = -1 if padding_idx is None else padding_idx
    if padding_idx is not None and padding_idx < 0:
        place = weight.shape[0] + padding_idx
    return bag_core.call(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, place
    )


define(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    doc="Rows of a table, joined bag by bag.",
    composite=_public_bag,
    method=False,
)
