"""Other shapes by way of other views: flatten, unflatten, movedim, swapaxes, broadcast_to, atleast_nd and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.layout import broadcast_shapes, infer_size, wrap_dim
from stridescope.engine.ops.copying import contiguous
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.views import expand_, permute, replaced, reshape, t, transpose, unsqueeze, view
from stridescope.engine.tensor import Tensor


def _flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    ndim = self._array.ndim
    first, last = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if ndim == 0:
        return reshape.call(self, (1,))  # type: ignore[no-any-return]
    if first == last:
        return self
    shape = self._array.shape
    length = 1
    for size in shape[first : last + 1]:
        length *= size
    return reshape.call(self, (*shape[:first], length, *shape[last + 1 :]))  # type: ignore[no-any-return]


def _unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not self._array.ndim:  # PyTorch's text goes on with C++ frames
        wrap_dim(dim, 0)
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    dim = wrap_dim(dim, self._array.ndim)
    shape = self._array.shape
    size = shape[dim]
    try:
        inner = infer_size(sizes, size)
    except RuntimeError as error:
        if "only one dimension" in str(error) or "invalid shape dimension" in str(error):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({size}) in the input "
            "tensor"
        ) from None
    return view.call(self, (*shape[:dim], *inner, *shape[dim + 1 :]))  # type: ignore[no-any-return]


def _movedim(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> Tensor:
    ndim = self._array.ndim
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    starts, ends = [wrap_dim(d, ndim) for d in source], [wrap_dim(d, ndim) for d in destination]
    for name, dims, given in (("source", starts, source), ("destination", ends, destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if ndim == 0:
        return op_call("alias")(self)  # type: ignore[no-any-return]
    order = [-1] * ndim
    for start, end in zip(starts, ends, strict=True):
        order[end] = start
    rest = iter(d for d in range(ndim) if d not in starts)
    return permute.call(self, tuple(d if d >= 0 else next(rest) for d in order))  # type: ignore[no-any-return]


flatten = define(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    doc="Makes one dim of several; a view where one is possible.",
    composite=_flatten,
    samples=[((2, 3, 4), 1, 2)],
)
define(
    "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
    doc="Makes several dims of one.",
    composite=_unflatten,
    samples=[((2, 12), 1, (3, 4))],
)
define(
    "ravel(Tensor(a) self) -> Tensor(a)",
    doc="One dim, a view of the tensor or of its row-major copy.",
    composite=lambda self: view.call(contiguous.call(self), (-1,)),
)
for _name in ("movedim", "moveaxis"):
    define(
        f"{_name}.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
        doc="Moves a dim to another place.",
        composite=lambda self, source, destination: _movedim(self, (source,), (destination,)),
    )
    define(
        f"{_name}.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
        doc="Moves dims to other places; the others keep their order.",
        composite=_movedim,
    )
for _name, _first, _second in (("swapaxes", "axis0", "axis1"), ("swapdims", "dim0", "dim1")):
    define(
        f"{_name}(Tensor(a) self, int {_first}, int {_second}) -> Tensor(a)",
        doc="Swaps two dims.",
        composite=lambda self, first, second: transpose.call(self, first, second),
    )
define(
    "adjoint(Tensor(a) self) -> Tensor(a)",
    doc="The last two dims swapped, complex values conjugated.",
    composite=lambda self: _adjoint(self),
)


def _adjoint(self: Tensor) -> Tensor:
    ndim = self._array.ndim
    if ndim == 1:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."
        )  # fmt: skip
    if ndim == 0:
        return self.mH  # type: ignore[no-any-return]
    turned = transpose.call(self, -2, -1)
    return turned.conj() if self.dtype.is_complex else turned  # type: ignore[no-any-return]


for _name in ("view_as", "reshape_as", "expand_as"):
    _target: Op = {"view_as": view, "reshape_as": reshape, "expand_as": expand_}[_name]
    define(
        f"{_name}(Tensor(a) self, Tensor other) -> Tensor(a)",
        doc=f"{_name[:-3].capitalize()} to the shape of another tensor.",
        composite=lambda self, other, op=_target: op.call(self, other._array.shape),
        function=False,
    )
define(
    "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    doc="The tensor expanded to a shape.",
    composite=lambda self, size: expand_.call(self, size),
)
define(
    "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    doc="The tensors expanded to their common shape.",
    composite=lambda tensors: _broadcast(tensors),
    method=False,
    function=False,
)


def _broadcast(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    shape = broadcast_shapes(*(x._array.shape for x in tensors))
    return tuple(x if x._array.shape == shape else expand_.call(x, shape) for x in tensors)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """``torch.broadcast_tensors``."""
    return _broadcast(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors)


def _at_least(self: Tensor, dims: int) -> Tensor:
    ndim = self._array.ndim
    if ndim >= dims:
        return self
    if ndim == 0:
        return reshape.call(self, (1,) * dims)  # type: ignore[no-any-return]
    if dims == 2:
        return unsqueeze.call(self, 0)  # type: ignore[no-any-return]
    if ndim == 1:
        return unsqueeze.call(unsqueeze.call(self, 0), -1)  # type: ignore[no-any-return]
    return unsqueeze.call(self, -1)  # type: ignore[no-any-return]


def _atleast(dims: int) -> Any:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1:
            only = tensors[0]
            return _at_least(only, dims) if isinstance(only, Tensor) else tuple(_at_least(x, dims) for x in only)
        return tuple(_at_least(x, dims) for x in tensors)

    function.__name__ = f"atleast_{dims}d"
    function.__doc__ = f"The tensors with {dims} dims or more."
    return function


def _meshgrid(tensors: Sequence[Tensor], indexing: str | None) -> tuple[Tensor, ...]:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for tensor in tensors:
        if tensor._array.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor with "
                f"{tensor._array.ndim} dimensions."
            )
    _same_kind(tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )  # fmt: skip
    swapped = indexing == "xy" and len(tensors) >= 2
    given = [tensors[1], tensors[0], *tensors[2:]] if swapped else list(tensors)
    shape = tuple(x._array.size for x in given)
    grids = []
    for dim, tensor in enumerate(given):
        line = view.call(tensor, replaced((1,) * len(given), dim, shape[dim]))
        grids.append(expand_.call(line, shape))
    return (grids[1], grids[0], *grids[2:]) if swapped else tuple(grids)


def _same_kind(tensors: Sequence[Tensor]) -> None:
    for before, after in zip(tensors, tensors[1:], strict=False):
        if before.dtype is not after.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if before.device is not after.device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """``torch.meshgrid``: the coordinates of a grid, as expanded views."""
    from stridescope.engine.warn import internal, warn_once

    if indexing is None:
        warn_once(
            internal(
                "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                "aten/src/ATen/native/TensorShape.cpp:4215",
            )
        )
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return _meshgrid(given, indexing)


# Functions that take any number of tensors, which a schema line does not say.
FUNCTIONS: dict[str, Any] = {
    "broadcast_tensors": broadcast_tensors,
    "meshgrid": meshgrid,
    **{f"atleast_{dims}d": _atleast(dims) for dims in (1, 2, 3)},
}
__all__ = ["FUNCTIONS", "t"]
