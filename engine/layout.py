"""Layout: how a tensor reads its storage, and the pure algebra of views.

A :class:`Layout` is sizes, strides and a storage offset, all counted in elements; element ``[i, j, …]`` lives at
``offset + i * strides[0] + j * strides[1] + …``. Every view op is a function from Layout to Layout that moves no
byte. The rules and error texts are PyTorch's (``aten/src/ATen/TensorUtils.cpp``, ``native/TensorShape.cpp``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Ints = tuple[int, ...]


class Word:
    """A named constant of the ``torch`` module, such as ``torch.strided``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(Word):
    """``torch.layout``: how elements are kept; every tensor here is ``strided``."""

    __slots__ = ()


class memory_format(Word):
    """``torch.memory_format``: the order of dims in memory that an op is asked for."""

    __slots__ = ()


strided = layout("strided")
# The layouts that no tensor here has.
OTHER_LAYOUTS = tuple(
    layout(name) for name in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged")
)
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
for _kind in (layout, memory_format):
    _kind.__module__ = "torch"


class Layout(NamedTuple):
    """Sizes, strides and offset of a tensor, in elements."""

    sizes: Ints
    strides: Ints
    offset: int = 0

    @property
    def numel(self) -> int:
        """How many elements the tensor has."""
        return math.prod(self.sizes)

    def address(self, index: Sequence[int]) -> int:
        """The element of the storage that ``index`` reads: ``offset + Σ index[d] · strides[d]``."""
        return self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def extent(self) -> int:
        """One past the last element of the storage that the tensor can read; ``offset`` when it is empty."""
        if 0 in self.sizes:
            return self.offset
        return self.offset + 1 + sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))


def contiguous_strides(sizes: Sequence[int]) -> Ints:
    """Row-major strides; a size of 0 counts as 1, as PyTorch does it."""
    return row_major(tuple(sizes))


@functools.lru_cache(8192)
def row_major(sizes: Ints, item: int = 1) -> Ints:
    """Row-major strides in units of which an element takes ``item``: bytes for NumPy, 1 for PyTorch."""
    strides, step = [], item
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def channels_last_strides(sizes: Sequence[int]) -> Ints:
    """Strides of ``channels_last`` (4 dims) or ``channels_last_3d`` (5 dims): the channel is innermost.

    Sizes of 0 make strides of 0, unlike in row-major layouts.
    """
    strides = [0] * len(sizes)
    step = 1
    for dim in (1, *range(len(sizes) - 1, 1, -1), 0):
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


def contiguous(sizes: Sequence[int], offset: int = 0) -> Layout:
    """The row-major layout of these sizes."""
    return Layout(tuple(sizes), contiguous_strides(sizes), offset)


def is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie in row-major order without gaps; dims of size 1 do not count, empty tensors pass."""
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != expected:
                return _has_zero(sizes)
            expected *= size
    return True


def _has_zero(sizes: Sequence[int]) -> bool:
    return 0 in sizes


def is_channels_last(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the memory is densely laid out channels last (4 or 5 dims)."""
    if len(sizes) not in (4, 5):
        return False
    expected = 1
    for dim in (1, *range(len(sizes) - 1, 1, -1), 0):
        if sizes[dim] != 1:
            if strides[dim] != expected:
                return False
            expected *= sizes[dim]
    return True


def suggests_channels_last(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the strides look channels last even where sizes of 1 leave it open (``suggest_memory_format``).

    The rule is ``is_channels_last_strides_2d_s4`` of ``c10/core/MemoryFormat.h``: strides ascend in the order
    C, W, H, N, ambiguous cases fall back to contiguous.
    """
    if len(sizes) not in (4, 5) or strides[1] == 0:
        return False
    smallest = 0
    for dim in (1, *range(len(sizes) - 1, 1, -1), 0):
        if sizes[dim] == 0 or strides[dim] < smallest:
            return False
        if dim == 0 and smallest == strides[1]:
            return False
        smallest = strides[dim]
        if sizes[dim] > 1:
            smallest *= sizes[dim]
    return True


def is_non_overlapping_and_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill one run of memory exactly once, in whatever order of dims."""
    return _fills_once(tuple(sizes), tuple(strides))


@functools.lru_cache(4096)
def _fills_once(sizes: Ints, strides: Ints) -> bool:
    if len(sizes) == 1:
        return sizes[0] < 2 or strides[0] == 1
    if 0 in sizes:
        return True
    expected = 1
    for size, stride in sorted(zip(sizes, strides, strict=True), key=lambda pair: (pair[0] < 2, pair[1])):
        if size < 2:
            return True
        if stride != expected:
            return False
        expected *= size
    return True


def wrap_dim(dim: int, ndim: int, scalar: bool = True) -> int:
    """Turn a negative dim into its position; raises IndexError with PyTorch's text when it is out of range.

    A 0-d tensor counts as one dim unless ``scalar`` is False.
    """
    if -ndim <= dim < ndim:
        return dim + ndim if dim < 0 else dim
    if ndim == 0:
        if not scalar:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        if dim in (0, -1):
            return 0
    low, high = min(-ndim, -1), max(ndim - 1, 0)
    raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")


def wrap_dims(dims: Iterable[int], ndim: int) -> Ints:
    """Wrap each dim; raises RuntimeError when one appears twice."""
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    for position, dim in enumerate(wrapped):
        if dim in wrapped[:position]:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return wrapped


def broadcast_shapes(*shapes: Sequence[int]) -> Ints:
    """The common shape of the operands; raises RuntimeError with PyTorch's text when they do not fit."""
    result: list[int] = []
    for shape in shapes:
        result = _broadcast_pair(result, list(shape))
    return tuple(result)


def _broadcast_pair(a: list[int], b: list[int]) -> list[int]:
    ndim = max(len(a), len(b))
    left, right = [1] * (ndim - len(a)) + a, [1] * (ndim - len(b)) + b
    for dim in range(ndim - 1, -1, -1):
        x, y = left[dim], right[dim]
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {dim}"
            )
    return [y if x == 1 else x for x, y in zip(left, right, strict=True)]


def infer_size(shape: Sequence[int], numel: int) -> Ints:
    """Fill in a single -1 of ``shape``; raises RuntimeError when the sizes cannot hold ``numel`` elements."""
    known, unknown = 1, None
    for dim, size in enumerate(shape):
        if size == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = dim
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {dim} of shape {list(shape)}")
        else:
            known *= size
    if unknown is None:
        fits = known == numel
    else:
        fits = known > 0 and numel % known == 0
        if known == 0 and numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size "
                "-1 can be any value and is ambiguous"
            )
    if not fits:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(numel // known if dim == unknown else size for dim, size in enumerate(shape))


def view_strides(sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> Ints | None:
    """Strides with which ``shape`` reads the same elements without a copy, or None when only a copy can.

    Dims are walked from the last; runs of dims that are contiguous with each other form a chunk, and each chunk
    must be cut exactly by the new sizes (``computeStride_impl``).
    """
    numel = math.prod(sizes)
    if numel == 0:
        return tuple(strides) if tuple(sizes) == tuple(shape) else contiguous_strides(shape)
    result = [0] * len(shape)
    view = len(shape) - 1
    chunk_stride = strides[-1] if strides else 1
    chunk, filled = 1, 1
    for dim in range(len(sizes) - 1, -1, -1):
        chunk *= sizes[dim]
        if dim == 0 or (sizes[dim - 1] != 1 and strides[dim - 1] != chunk * chunk_stride):
            while view >= 0 and (filled < chunk or shape[view] == 1):
                result[view] = filled * chunk_stride
                filled *= shape[view]
                view -= 1
            if filled != chunk:
                return None
            if dim > 0:
                chunk_stride, chunk, filled = strides[dim - 1], 1, 1
    if not sizes:
        return contiguous_strides(shape)
    return tuple(result) if view == -1 else None


def expand(layout: Layout, shape: Sequence[int]) -> Layout:
    """Stretch dims of size 1 with stride 0; raises RuntimeError with PyTorch's text when a size does not fit."""
    extra = len(shape) - len(layout.sizes)
    sizes, strides = list(shape), [0] * len(shape)
    if not layout.sizes and all(n >= 0 for n in sizes):
        return Layout(tuple(sizes), tuple(strides), layout.offset)
    for dim in range(len(shape) - 1, -1, -1):
        old = layout.sizes[dim - extra] if dim >= extra else 1
        inner = sizes[dim + 1] * strides[dim + 1] if dim + 1 < len(shape) else 1
        sizes[dim], strides[dim] = _expand_dim(layout, tuple(shape), dim, extra, old, inner)
    return Layout(tuple(sizes), tuple(strides), layout.offset)


def _expand_dim(layout: Layout, shape: Ints, dim: int, extra: int, old: int, inner: int) -> tuple[int, int]:
    wanted = shape[dim]
    if dim < extra:
        if wanted < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {dim}"
            )
        return wanted, inner if wanted == 1 else 0
    stride = layout.strides[dim - extra]
    wanted = old if wanted == -1 else wanted
    if old == wanted:
        return wanted, stride
    if old != 1 or wanted < 0:
        raise RuntimeError(
            f"The expanded size of the tensor ({wanted}) must match the existing size ({old}) at non-singleton "
            f"dimension {dim}.  Target sizes: {list(shape)}.  Tensor sizes: {list(layout.sizes)}"
        )
    return wanted, 0


def dense_strides_like(sizes: Sequence[int], strides: Sequence[int]) -> Ints:
    """The strides of ``empty_like(…, preserve_format)``.

    Non-overlapping dense tensors keep their strides; others get dense strides in the same order of dims
    (``infer_dense_strides`` of ``aten/src/ATen/native/TensorFactories``/``TensorIterator``).
    """
    return _dense_like(tuple(sizes), tuple(strides))


@functools.lru_cache(4096)
def _dense_like(sizes: Ints, strides: Ints) -> Ints:
    if _fills_once(sizes, strides):
        return strides
    return strides_in_order(sizes, iterator_order([sizes], [strides]))


def strides_in_order(sizes: Sequence[int], order: Sequence[int]) -> Ints:
    """Dense strides when ``order`` lists the dims from the innermost outwards."""
    strides, step = [0] * len(sizes), 1
    for dim in order:
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return tuple(strides)


def iterator_strides(sizes: Sequence[int], order: Sequence[int]) -> Ints:
    """The strides that TensorIterator gives a result it walks in this order; after an empty dim they are 0."""
    if list(order) == list(range(len(sizes) - 1, -1, -1)):
        return contiguous_strides(sizes)
    strides, step = [0] * len(sizes), 1
    for dim in order:
        strides[dim] = step
        step *= sizes[dim]
    return tuple(strides)


def iterator_order(shapes: Sequence[Ints], strides: Sequence[Ints]) -> list[int]:
    """The order of dims, innermost first, in which PyTorch's TensorIterator walks these operands.

    All operands are already broadcast to one shape with stride 0 where they repeat. It is the insertion sort of
    ``TensorIteratorBase::reorder_dimensions``: an ambiguous pair (a stride of 0) is left to the next operand, ties
    are decided by the smaller size.
    """
    ndim = len(shapes[0])
    order = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        dim1 = i
        for dim0 in range(i - 1, -1, -1):
            comparison = _should_swap(order[dim0], order[dim1], shapes[0], strides)
            if comparison > 0:
                order[dim0], order[dim1] = order[dim1], order[dim0]
                dim1 = dim0
            elif comparison < 0:
                break
    return order


def _should_swap(dim0: int, dim1: int, shape: Ints, strides: Sequence[Ints]) -> int:
    for operand in strides:
        stride0, stride1 = operand[dim0], operand[dim1]
        if stride0 == 0 or stride1 == 0:
            continue
        if stride0 < stride1:
            return -1
        if stride0 > stride1:
            return 1
        if shape[dim0] > shape[dim1]:
            return 1
    return 0
