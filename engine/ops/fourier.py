"""Discrete Fourier transforms: torch.fft."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.out import warn_of_growth
from stridescope.engine.dispatch.out_rule import USUAL, Out
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import INTEGER, default_float, dtype, scalar_name
from stridescope.engine.layout import strides_in_order, wrap_dim
from stridescope.engine.ops.lookup import concatenated, op_call
from stridescope.engine.ops.reduce import wrapped
from stridescope.engine.tensor import Tensor, fresh

NONE, ROOT, ALL = 0, 1, 2  # what a transform is divided by: nothing, the root of the count, the count

# ---- the three kernels -------------------------------------------------------------------------------------------


def _scale(normalization: int, count: int) -> float:
    return 1.0 if normalization == NONE else 1.0 / math.sqrt(count) if normalization == ROOT else 1.0 / count


def _by_stride(tensor: Tensor, dims: Sequence[int]) -> list[int]:
    """The dims, those with the largest strides first."""
    strides = tensor.strides
    return sorted(dims, key=lambda d: -strides[d])


def _batch_dims(ndim: int, dims: Sequence[int]) -> list[int]:
    """The other dims, in the order in which C++'s std::partition leaves them: where it swaps, those behind come first.

    Of dims with one stride (such as those of size 1) this order decides which lies outermost.
    """
    order, first, last = list(range(ndim)), 0, ndim
    while True:
        while first < last and order[first] not in dims:
            first += 1
        while first < last and order[last - 1] in dims:
            last -= 1
        if first == last:
            return order[:first]
        last -= 1
        order[first], order[last] = order[last], order[first]
        first += 1


def _placed(result: Any, kind: dtype, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """The result in the memory order that PyTorch's transform leaves: the transformed dims innermost."""
    if not result.size:
        raise RuntimeError("MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters")
    others = _by_stride(tensor, _batch_dims(result.ndim, dims))
    order = [*others, *dims]
    array = laid_out(result.astype(kind.np, copy=False), strides_in_order(result.shape, order[::-1]))
    return fresh(array, kind, tensor.device)


def _count(sizes: Sequence[int], dims: Sequence[int]) -> int:
    return math.prod(sizes[d] for d in dims)


def _c2c_run(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    from scipy import fft

    array = resolved(self)
    if not dim:
        return wrapped(array.copy(), self.dtype, self)
    run = fft.fftn if forward else fft.ifftn
    result = run(array, axes=tuple(dim), norm="backward" if forward else "forward")
    scaled = result * _scale(normalization, _count(array.shape, dim))
    return _placed(scaled, self.dtype, self, _by_stride(self, dim))


def _mirrored(half: Any, sizes: Sequence[int], dims: Sequence[int]) -> Any:
    """The full spectrum of real numbers: the missing half are the conjugates at the opposite frequencies."""
    last = dims[-1]
    size, have = sizes[last], half.shape[last]
    rest = np.take(half, np.arange(size - have, 0, -1), last)
    for dim in dims[:-1]:
        rest = np.take(rest, -np.arange(sizes[dim]) % sizes[dim], dim)
    return np.concatenate([half, np.conj(rest)], last)


def _r2c_run(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    from scipy import fft

    array, kind = resolved(self), self.dtype.to_complex()
    result = fft.rfftn(array, axes=tuple(dim))
    if not onesided:
        result = _mirrored(result, array.shape, dim)
    scaled = result * _scale(normalization, _count(array.shape, dim))
    return _placed(scaled, kind, self, [*_by_stride(self, dim[:-1]), dim[-1]])


def _c2r_run(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    from scipy import fft

    kind = self.dtype.to_real()
    *others, last = dim
    if others:
        self = _c2c_run(self, others, NONE, False)
    array = resolved(self)
    result = fft.irfft(array, n=last_dim_size, axis=last, norm="forward")
    scaled = result * _scale(normalization, _count(result.shape, dim))
    return _placed(scaled, kind, self, [last])


c2c: Op = define(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    doc="The transform of complex numbers, forwards or backwards.",
    run=_c2c_run,
    node="FftC2CBackward0",
    grads={"self": lambda grad, dim, normalization, forward: c2c.call(grad, dim, normalization, not forward)},
    method=False,
    function=False,
)


def _r2c_grad(grad: Tensor, self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    if not onesided:
        return c2c.call(grad, dim, normalization, False).real  # type: ignore[no-any-return]
    last = wrap_dim(dim[-1], self._array.ndim)
    missing = self.shape[last] - grad.shape[last]
    if missing:
        shape = [missing if d == last else n for d, n in enumerate(grad.shape)]
        grad = concatenated([grad, grad.new_zeros(shape)], last)
    return c2c.call(grad, dim, normalization, False).real  # type: ignore[no-any-return]


r2c = define(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    doc="The transform of real numbers; onesided leaves out the half that mirrors the other.",
    run=_r2c_run,
    node="FftR2CBackward0",
    grads={
        "self": lambda grad, self, dim, normalization, onesided: _r2c_grad(grad, self, dim, normalization, onesided)
    },
    method=False,
    function=False,
)


def _c2r_grad(grad: Tensor, dim: Sequence[int], normalization: int) -> Tensor:
    """All but the first (and, for even sizes, the middle) frequency stand for two."""
    last = wrap_dim(dim[-1], grad._array.ndim)
    result = r2c.call(grad, dim, normalization, True)
    double = grad.shape[last] - result.shape[last]
    if double > 0:
        weights = np.ones([n if d == last else 1 for d, n in enumerate(result.shape)], grad.dtype.np)
        np.moveaxis(weights, last, 0)[1 : 1 + double] = 2
        result = result * wrapped(weights, grad.dtype, grad)
    return result  # type: ignore[no-any-return]


c2r = define(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    doc="The transform back to real numbers.",
    run=_c2r_run,
    node="FftC2RBackward0",
    grads={"self": lambda grad, dim, normalization: _c2r_grad(grad, dim, normalization)},
    method=False,
    function=False,
)

# ---- what all transforms share -----------------------------------------------------------------------------------


def _norm(word: str | None, forward: bool) -> int:
    if word is None or word == "backward":
        return NONE if forward else ALL
    if word == "forward":
        return ALL if forward else NONE
    if word == "ortho":
        return ROOT
    raise RuntimeError(f'Invalid normalization mode: "{word}"')


def _as_float(name: str, tensor: Tensor, to_complex: bool = False) -> Tensor:
    """The input in a dtype that the kernels know."""
    kind = tensor.dtype if tensor.dtype.category > INTEGER else default_float()
    if kind.name in ("float16", "bfloat16"):
        raise RuntimeError(f"Unsupported dtype {scalar_name(kind)}")
    if to_complex:
        kind = kind.to_complex()
    return tensor.to(kind)  # type: ignore[no-any-return]


def _real_only(name: str, tensor: Tensor) -> None:
    if tensor.dtype.is_complex:
        word = "real-valued" if name.endswith("n") else "real"
        raise RuntimeError(f"{name} expects a {word} input tensor, but got {scalar_name(tensor.dtype)}")


def _resized(tensor: Tensor, sizes: Sequence[int], dims: Sequence[int]) -> Tensor:
    """The tensor cut off or filled up with zeros so that these dims have these sizes."""
    for size, dim in zip(sizes, dims, strict=True):
        own = tensor.shape[dim]
        if own > size:
            tensor = tensor.narrow(dim, 0, size)
    missing = [0] * tensor._array.ndim
    for size, dim in zip(sizes, dims, strict=True):
        missing[dim] = max(size - tensor.shape[dim], 0)
    if any(missing):
        pads = [pad for dim in reversed(range(len(missing))) for pad in (0, missing[dim])]
        tensor = op_call("constant_pad_nd")(tensor, pads, 0)
    return tensor


def _points(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _one_dim(tensor: Tensor, dim: int) -> int:
    if not tensor._array.ndim:
        wrap_dim(dim, 0, scalar=False)
    return wrap_dim(dim, tensor._array.ndim)


def _fft(forward: bool) -> Any:
    name = "fft" if forward else "ifft"

    def run(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        dim = _one_dim(self, dim)
        size = _points(self.shape[dim] if n is None else n)
        tensor = _resized(_as_float(name, self), (size,), (dim,))
        if tensor.dtype.is_complex:
            return c2c.call(tensor, (dim,), _norm(norm, forward), forward)  # type: ignore[no-any-return]
        result = r2c.call(tensor, (dim,), _norm(norm, forward), False)
        return result if forward else result.conj()  # type: ignore[no-any-return]

    return run


def _rfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    _real_only("rfft", self)
    dim = _one_dim(self, dim)
    size = _points(self.shape[dim] if n is None else n)
    return r2c.call(_resized(_as_float("rfft", self), (size,), (dim,)), (dim,), _norm(norm, True), True)  # type: ignore[no-any-return]


def _irfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    dim = _one_dim(self, dim)
    size = _points(2 * (self.shape[dim] - 1) if n is None else n)
    tensor = _resized(_as_float("irfft", self, True), (size // 2 + 1,), (dim,))
    return c2r.call(tensor, (dim,), _norm(norm, False), size)  # type: ignore[no-any-return]


def _hfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    dim = _one_dim(self, dim)
    size = _points(2 * (self.shape[dim] - 1) if n is None else n)
    tensor = _resized(_as_float("hfft", self, True), (size // 2 + 1,), (dim,))
    return c2r.call(tensor.conj(), (dim,), _norm(norm, True), size)  # type: ignore[no-any-return]


def _ihfft(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    _real_only("ihfft", self)
    dim = _one_dim(self, dim)
    size = _points(self.shape[dim] if n is None else n)
    tensor = _resized(_as_float("ihfft", self), (size,), (dim,))
    return r2c.call(tensor, (dim,), _norm(norm, False), True).conj()  # type: ignore[no-any-return]


for _name, _rule, _doc in (
    ("fft", _fft(True), "The discrete Fourier transform along a dim."),
    ("ifft", _fft(False), "The inverse of fft."),
    ("rfft", _rfft, "The transform of real numbers: the half that is not redundant."),
    ("irfft", _irfft, "The inverse of rfft."),
    ("hfft", _hfft, "The transform of a signal that is Hermitian in time."),
    ("ihfft", _ihfft, "The inverse of hfft."),
):
    define(
        f"fft_{_name}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
        doc=_doc,
        composite=_rule,
        method=False,
        namespace="torch.fft",
    )

# ---- several dims ------------------------------------------------------------------------------------------------


def _shape_and_dims(self: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None) -> tuple[list[int], list[int]]:
    ndim = self._array.ndim
    if dim is not None:
        dims = [wrap_dim(d, ndim, scalar=False) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = list(range(ndim - len(s), ndim))
    else:
        dims = list(range(ndim))
    sizes = [self.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    for size in sizes:
        _points(size)
    return sizes, dims


def _fftn(forward: bool) -> Any:
    def run(self: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        sizes, dims = _shape_and_dims(self, s, dim)
        tensor = _resized(_as_float("fftn", self, True), sizes, dims)
        return c2c.call(tensor, tuple(dims), _norm(norm, forward), forward)  # type: ignore[no-any-return]

    return run


def _need_dims(name: str, dims: Sequence[int]) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _rfftn(self: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    _real_only("rfftn", self)
    sizes, dims = _shape_and_dims(self, s, dim)
    _need_dims("rfftn", dims)
    return r2c.call(_resized(_as_float("rfftn", self), sizes, dims), tuple(dims), _norm(norm, True), True)  # type: ignore[no-any-return]


def _half_sizes(self: Tensor, s: Any, dim: Any, name: str) -> tuple[list[int], list[int], int]:
    """Sizes and dims of a transform to real numbers, and the full size of its last dim."""
    sizes, dims = _shape_and_dims(self, s, dim)
    _need_dims(name, dims)
    last = _points(2 * (sizes[-1] - 1) if s is None or s[-1] == -1 else s[-1])
    sizes[-1] = last // 2 + 1
    return sizes, dims, last


def _irfftn(self: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    sizes, dims, last = _half_sizes(self, s, dim, "irfftn")
    tensor = _resized(_as_float("irfftn", self, True), sizes, dims)
    return c2r.call(tensor, tuple(dims), _norm(norm, False), last)  # type: ignore[no-any-return]


def _hfftn(self: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    sizes, dims, last = _half_sizes(self, s, dim, "hfftn")
    tensor = _resized(_as_float("hfftn", self, True), sizes, dims)
    how = _norm(norm, True)
    if len(dims) > 1:
        tensor = c2c.call(tensor, tuple(dims[:-1]), how, True)
    return c2r.call(tensor.conj(), (dims[-1],), how, last)  # type: ignore[no-any-return]


def _ihfftn(self: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {scalar_name(self.dtype)}")
    sizes, dims = _shape_and_dims(self, s, dim)
    _need_dims("ihfftn", dims)
    how = _norm(norm, False)
    half: Tensor = r2c.call(_resized(_as_float("ihfftn", self), sizes, dims), (dims[-1],), how, True)
    if len(dims) == 1:
        return half.conj()  # type: ignore[no-any-return]
    return c2c.call(half.conj_physical(), tuple(dims[:-1]), how, False)  # type: ignore[no-any-return]


def _ihfftn_into(self: Tensor, s: Any, dim: Any, norm: str | None, out: Tensor) -> Tensor:
    """Over one dim PyTorch leaves ``out`` as it was, and warns of what it did not resize."""
    result = _ihfftn(self, s, dim, norm)
    if len(_shape_and_dims(self, s, dim)[1]) > 1:
        return result
    if result._array.shape != out._array.shape and result._array.size:
        warn_of_growth(result._array.shape, out._array.shape)
    return out


for _name, _rule in (
    ("fft", _fftn(True)), ("ifft", _fftn(False)), ("rfft", _rfftn), ("irfft", _irfftn), ("hfft", _hfftn),
    ("ihfft", _ihfftn),
):  # fmt: skip
    for _suffix, _dim in (("2", "int[1] dim=[-2,-1]"), ("n", "int[1]? dim=None")):
        define(
            f"fft_{_name}{_suffix}(Tensor self, SymInt[1]? s=None, {_dim}, str? norm=None) -> Tensor",
            doc=f"{_name} over {'two' if _suffix == '2' else 'several'} dims.",
            composite=_rule,
            out=Out(_ihfftn_into) if _rule is _ihfftn else USUAL,
            method=False,
            namespace="torch.fft",
        )

# ---- shifts and frequencies --------------------------------------------------------------------------------------


def _shift(sign: int) -> Any:
    def run(self: Tensor, dim: Sequence[int] | None = None) -> Tensor:
        dims = (
            tuple(range(self._array.ndim))
            if dim is None
            else [wrap_dim(d, self._array.ndim, scalar=False) for d in dim]
        )
        steps = [(self.shape[d] // 2 if sign > 0 else (self.shape[d] + 1) // 2) for d in dims]
        return self.roll(steps, dims)  # type: ignore[no-any-return]

    return run


for _name, _sign, _doc in (
    ("fftshift", 1, "Moves frequency zero to the middle."),
    ("ifftshift", -1, "Moves frequency zero back to the front."),
):
    define(
        f"fft_{_name}(Tensor self, int[1]? dim=None) -> Tensor",
        doc=_doc,
        composite=_shift(_sign),
        method=False,
        namespace="torch.fft",
    )

_OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool? requires_grad=False"
)


def _frequencies(n: int, d: float, kind: dtype | None, on: Any, grad: Any, half: bool) -> Tensor:
    from stridescope.engine.ops.creation import made

    numbers = np.fft.rfftfreq(n, d) if half else np.fft.fftfreq(n, d)
    kind = kind or default_float()
    return made(numbers.astype(kind.np), kind, on, grad)


for _name, _half in (("fftfreq", False), ("rfftfreq", True)):
    define(
        f"fft_{_name}(int n, float d=1.0, {_OPTIONS}) -> Tensor",
        doc="The frequencies that the results of a transform belong to.",
        run=lambda n, d, dtype, layout, device, pin_memory, requires_grad, half=_half: _frequencies(
            n, d, dtype, device, requires_grad, half
        ),
        method=False,
        namespace="torch.fft",
    )
