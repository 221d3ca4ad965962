"""Views in several parts: split, chunk, unbind, tensor_split and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.autograd.history import mark_inference
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.parser import Function
from stridescope.engine.dtype import int64, scalar_name
from stridescope.engine.layout import Layout, wrap_dim
from stridescope.engine.ops.views import replaced, without
from stridescope.engine.ops.views_select import slice_
from stridescope.engine.tensor import Tensor


def _pieces(layout: Layout, dim: int, lengths: Sequence[int]) -> list[Layout]:
    found, offset = [], layout.offset
    for length in lengths:
        found.append(Layout(replaced(layout.sizes, dim, length), layout.strides, offset))
        offset += length * layout.strides[dim]
    return found


def _split(layout: Layout, split_size: int, dim: int) -> list[Layout]:
    if not layout.sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    dim = wrap_dim(dim, len(layout.sizes))
    size = layout.sizes[dim]
    if split_size == 0 and size:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
        )  # fmt: skip
    count = max(-(-size // split_size), 1) if split_size else 1
    lengths = [split_size] * (count - 1) + [size - split_size * (count - 1)]
    return _pieces(layout, dim, lengths)


def _split_with_sizes(layout: Layout, split_sizes: Sequence[int], dim: int) -> list[Layout]:
    if not layout.sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    given, dim = dim, wrap_dim(dim, len(layout.sizes))
    size = layout.sizes[dim]
    for length in split_sizes:
        if length < 0:
            raise RuntimeError(
                "split_with_sizes expects split_sizes have only non-negative entries, but got "
                f"split_sizes={list(split_sizes)}"
            )
    if sum(split_sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension "
            f"{given}), but got split_sizes={list(split_sizes)}"
        )
    return _pieces(layout, dim, split_sizes)


def _unbind(layout: Layout, dim: int) -> list[Layout]:
    dim = wrap_dim(dim, len(layout.sizes))
    if not layout.sizes:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    sizes, strides = without(layout.sizes, dim), without(layout.strides, dim)
    return [Layout(sizes, strides, layout.offset + i * layout.strides[dim]) for i in range(layout.sizes[dim])]


def _joined(grads: Sequence[Any], sizes: Sequence[int], dim: int, lengths: Sequence[int]) -> Any:
    """The gradients of the parts, put together; a part without one counts as zeros."""
    from stridescope.engine.ops.joining import cat

    dim = wrap_dim(dim, len(sizes))
    known = next(g for g in grads if g is not None)
    parts = [
        known.new_zeros(replaced(sizes, dim, length)) if g is None else g
        for g, length in zip(grads, lengths, strict=True)
    ]
    return cat.call(parts, dim)


def _split_grad(grads: Sequence[Any], self_sym_sizes: Sequence[int], split_size: int, dim: int) -> Any:
    size = self_sym_sizes[wrap_dim(dim, len(self_sym_sizes))]
    last = size - split_size * (len(grads) - 1)
    return _joined(grads, self_sym_sizes, dim, [split_size] * (len(grads) - 1) + [last])


def _unbind_grad(grads: Sequence[Any], dim: int) -> Any:
    from stridescope.engine.ops.joining import stack

    known = next(g for g in grads if g is not None)
    return stack.call([known.new_zeros(known.shape) if g is None else g for g in grads], dim)


split_size = define(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    doc="Parts of a size along a dim; the last may be smaller.",
    view=_split,
    grads={"self": lambda grads, self_sym_sizes, split_size, dim: _split_grad(grads, self_sym_sizes, split_size, dim)},
    samples=[((5, 2), 2, 0)],
)
split_with_sizes = define(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    doc="Parts of the given sizes along a dim.",
    view=_split_with_sizes,
    grads={"self": lambda grads, self_sym_sizes, split_sizes, dim: _joined(grads, self_sym_sizes, dim, split_sizes)},
    samples=[((5, 2), (2, 3), 0)],
)
split_sizes = define(
    "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
    doc="Parts of the given sizes along a dim.",
    composite=lambda self, split_size, dim=0: split_with_sizes.call(self, split_size, dim),
)
_BY_SIZE = Function("split", [split_size, split_sizes], method=False)
_BY_SIZES = Function("split_with_sizes", [split_with_sizes], method=False)


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """``torch.split``: parts of a size, or of the given sizes, along a dim."""
    return tensor.split(split_size_or_sections, dim)  # type: ignore[no-any-return]


def _split_method(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """``Tensor.split``, written in Python in PyTorch: whatever is no int goes on to split_with_sizes."""
    if isinstance(split_size, Tensor) and split_size._array.size == 1:
        split_size = int(split_size)
    if not isinstance(split_size, int):
        return _BY_SIZES(self, split_size, dim)  # type: ignore[no-any-return]
    return _BY_SIZE(self, split_size, dim)  # type: ignore[no-any-return]


_split_method.__name__, _split_method.__qualname__ = "split", "Tensor.split"  # which Python's own errors name
FUNCTIONS: dict[str, Any] = {"split": split}
METHODS: dict[str, Any] = {"split": _split_method}
unbind = define(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    doc="The slices along a dim, each without it.",
    view=_unbind,
    grads={"self": lambda grads, dim: _unbind_grad(grads, dim)},
    samples=[((3, 2), 0)],
)


def _chunk(self: Tensor, chunks: int, dim: int = 0, parts: Op = split_size, sized: Op = split_with_sizes) -> Any:
    if not self._array.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self._array.shape[wrap_dim(dim, self._array.ndim)]
    length = -(-size // chunks)
    if length == 0 and size == 0:
        return sized.call(self, (0,) * chunks, dim)
    return parts.call(self, length, dim)


chunk = define(
    "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
    doc="At most so many parts of equal size along a dim.",
    composite=_chunk,
    samples=[((5, 2), 2, 0)],
)


def _sections(self: Tensor, sections: int, dim: int) -> tuple[Tensor, ...]:
    if not self._array.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap_dim(dim, self._array.ndim)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    least, longer = divmod(self._array.shape[dim], sections)
    found, start = [], 0
    for number in range(sections):
        end = start + least + (number < longer)
        found.append(slice_.call(self, dim, start, end, 1))
        start = end
    return tuple(found)


def _at_indices(self: Tensor, indices: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    if not self._array.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap_dim(dim, self._array.ndim)
    found, start = [], 0
    for end in indices:
        found.append(slice_.call(self, dim, start, end, 1))
        start = end
    found.append(slice_.call(self, dim, start, self._array.shape[dim], 1))
    return tuple(found)


def _at_tensor(self: Tensor, where: Tensor, dim: int) -> tuple[Tensor, ...]:
    if not self._array.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    if where.device.type != "cpu":
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {where.device}")
    if where.dtype is not int64:
        kind = scalar_name(where.dtype)
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {kind}"
        )  # fmt: skip
    if where._array.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {where._array.ndim} dims"
        )
    return _at_indices(self, where.tolist(), dim) if where._array.ndim else _sections(self, int(where.item()), dim)


define(
    "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
    doc="So many parts along a dim; the first ones are one longer where it does not come out even.",
    composite=lambda self, sections, dim=0: _sections(self, sections, dim),
)
define(
    "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
    doc="Parts that end at the given indices.",
    composite=lambda self, indices, dim=0: _at_indices(self, indices, dim),
)
define(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) "
    "-> Tensor(a)[]",
    doc="Parts that end at the given indices.",
    composite=lambda self, tensor_indices_or_sections, dim=0: _at_tensor(self, tensor_indices_or_sections, dim),
)


def _split_dim(name: str, dim: int, least: int) -> None:
    """Declare hsplit, vsplit or dsplit: tensor_split along a fixed dim, even parts only."""

    def dim_of(self: Tensor) -> int:
        if self._array.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                f"with {self._array.ndim} dimensions!"
            )
        return 0 if least == 1 and self._array.ndim == 1 else dim

    def even(self: Tensor, sections: int) -> Any:
        along = dim_of(self)
        size = self._array.shape[along]
        if sections == 0 or size % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {along}, but the size of the dimension {size} is not "
                f"divisible by the split_size {sections}!"
            )
        return _sections(self, sections, along)

    define(
        f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
        doc=f"Equal parts along dim {dim}.",
        composite=even,
    )
    define(
        f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
        doc=f"Parts along dim {dim} that end at the given indices.",
        composite=lambda self, indices: _at_indices(self, indices, dim_of(self)),
    )


_split_dim("hsplit", 1, 1)
_split_dim("vsplit", 0, 2)
_split_dim("dsplit", 2, 3)


def _copies(rule: Any) -> Any:
    """The parts as tensors of their own that still read the input's memory, as ``unsafe_split`` gives them."""
    from stridescope.engine.tensor import alias

    def run(self: Tensor, *args: Any) -> tuple[Tensor, ...]:
        parts = tuple(alias(self, layout) for layout in rule(self.layout_, *args))
        for part in parts:
            part._version_counter = None
            if self._inference:
                mark_inference(part)
        return parts

    return run


unsafe_split = define(
    "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    doc="split whose parts are not tracked as views.",
    run=_copies(_split),
    grads={"self": lambda grads, self_sym_sizes, split_size, dim: _split_grad(grads, self_sym_sizes, split_size, dim)},
)
unsafe_split_with_sizes = define(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    doc="split_with_sizes whose parts are not tracked as views.",
    run=_copies(_split_with_sizes),
    grads={"self": lambda grads, self_sym_sizes, split_sizes, dim: _joined(grads, self_sym_sizes, dim, split_sizes)},
)
define(
    "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    doc="chunk whose parts are not tracked as views.",
    composite=lambda self, chunks, dim=0: _chunk(self, chunks, dim, unsafe_split, unsafe_split_with_sizes),
)
