"""Softmax, its logarithm, and the activations that stand in PyTorch's torch namespace."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise, not_implemented
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.run import FLOATS, Run, resolved
from stridescope.engine.dtype import FLOAT, dtype
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.lookup import chosen_in_kernel, op_call
from stridescope.engine.ops.minmax import larger
from stridescope.engine.ops.reduce import widened
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, canonical, dense, fresh

# NumPy's stubs do not let these be called with positional dims; the methods of arrays take two more Python calls.
_largest: Any = np.maximum.reduce
_largest_from: Any = np.maximum.reduceat
_sum: Any = np.add.reduce
_START = np.zeros(1, np.intp)
LANES = 16  # half precision numbers in a vector of AVX2


def _top(array: Array, dim: int) -> Array:
    """The largest element along a dim, which stays; one run from the start takes NumPy less along the last dim."""
    if dim == array.ndim - 1:
        return _largest_from(array, _START, dim)  # type: ignore[no-any-return]
    return _largest(array, dim, keepdims=True)  # type: ignore[no-any-return]


def softmax_of(array: Array, dim: int) -> Array:
    """Exponentials as shares of their sum, the largest element taken out first."""
    if not array.ndim:
        return np.asarray(np.exp(array - array))
    if not array.size:
        return array.copy()
    shifted = array - _top(array, dim)
    np.exp(shifted, shifted)
    total = _sum(shifted, dim, keepdims=True)
    if dim == array.ndim - 1:  # PyTorch multiplies by the reciprocal here
        return np.multiply(shifted, np.reciprocal(total, total), shifted)  # type: ignore[no-any-return]
    return np.divide(shifted, total, shifted)  # type: ignore[no-any-return]


def log_softmax_of(array: Array, dim: int) -> Array:
    """The logarithms of the shares, without computing the shares."""
    if not array.ndim:
        return np.asarray(array - array)
    if not array.size:
        return array.copy()
    shifted = array - _top(array, dim)
    total = _sum(np.exp(shifted), dim, keepdims=True)
    return np.subtract(shifted, np.log(total, total), shifted)  # type: ignore[no-any-return]


def _half_softmax(array: Array, dim: int) -> Array:
    """Softmax of float16 or bfloat16, rounded where PyTorch does it: along an outer dim its vectors round once.

    What whole vectors leave over is rounded before it is divided too. (With several threads PyTorch's vectors begin
    anew for each, so that a last digit may depend on their number.)
    """
    wide = array.astype(np.float32)
    shares = np.exp(wide - _largest(wide, dim, keepdims=True)) if array.ndim else np.exp(wide - wide)
    total = _sum(shares, dim, keepdims=True) if array.ndim else shares
    if dim == array.ndim - 1 or not array.ndim:
        return np.asarray((shares / total).astype(array.dtype))
    whole = math.prod(array.shape[dim + 1 :]) // LANES * LANES
    columns = (*array.shape[: dim + 1], -1)
    shares, total = shares.reshape(columns), total.reshape((*array.shape[:dim], 1, -1))
    shares[..., whole:] = shares[..., whole:].astype(array.dtype)
    return np.asarray((shares / total).astype(array.dtype).reshape(array.shape))


def _half_log_softmax(array: Array, dim: int) -> Array:
    """Its logarithm; along the last dim PyTorch keeps the sum and the logarithm of the sum in half precision."""
    wide = array.astype(np.float32)
    if dim != array.ndim - 1 or not array.ndim:
        return log_softmax_of(wide, dim).astype(array.dtype)
    shifted = wide - _largest(wide, dim, keepdims=True)
    total = _sum(np.exp(shifted), dim, keepdims=True).astype(array.dtype).astype(np.float32)
    return (shifted - np.log(total).astype(array.dtype).astype(np.float32)).astype(array.dtype)  # type: ignore[no-any-return]


def _kernel(name: str, compute: Callable[[Array, int], Array], half: Callable[[Array, int], Array]) -> Run:
    def run(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
        dim = wrap_dim(dim, self._array.ndim)
        if self._plain and self.dtype in FLOATS and self._array.flags.c_contiguous:  # as almost all are
            return fresh(canonical(compute(self._array, dim)), self.dtype)
        if self.dtype.category != FLOAT and self._array.size:
            last = dim == self._array.ndim - 1 or not self._array.ndim
            raise not_implemented(f"{name}_lastdim_kernel_impl" if last else f"{name}_kernel_impl", self.dtype)
        array = resolved(self)
        if not array.size:
            return fresh(array.copy(), self.dtype, self.device)
        result = (half if self.dtype.itemsize == 2 else compute)(array, dim)
        return fresh(dense(result), self.dtype, self.device)

    return run


def _softmax_slope(grad: Array, result: Array, dim: int) -> Array:
    total = _sum(grad * result, dim, keepdims=True) if grad.ndim else grad * result
    return (grad - total) * result  # type: ignore[no-any-return]


def _log_softmax_slope(grad: Array, result: Array, dim: int) -> Array:
    total = _sum(grad, dim, keepdims=True) if grad.ndim else grad
    return grad - np.exp(result) * total  # type: ignore[no-any-return]


def _slope(compute: Callable[[Array, Array, int], Array]) -> Run:
    def run(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:
        dim = wrap_dim(dim, output._array.ndim)
        if (
            input_dtype in FLOATS
            and output._plain
            and output.dtype is input_dtype is grad_output.dtype
            and output._array.size
        ):
            return fresh(dense(np.asarray(compute(grad_output._array, output._array, dim))), input_dtype)
        grad, result = (widened(resolved(t), t.dtype) for t in (grad_output, output))
        found = compute(grad, result, dim) if result.size else np.zeros_like(result)
        return fresh(dense(np.asarray(found, input_dtype.np)), input_dtype, output.device)

    return run


def _softmax_slope_of_output(grad: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    inner = (output * grad_output).sum(dim, True) * grad
    return grad_output * grad - inner - grad_output * (output * grad).sum(dim, True)  # type: ignore[no-any-return]


_DOUBLE_GRADS: dict[str, dict[str, Callable[..., Any]]] = {
    "softmax": {
        "grad_output": lambda grad, output, dim, input_dtype: op_call("_softmax_backward_data")(
            grad, output, dim, input_dtype
        ),
        "output": _softmax_slope_of_output,
    },
    "log_softmax": {
        "grad_output": lambda grad, output, dim: grad - (grad * output.exp()).sum(dim, True),
        "output": lambda grad, grad_output, output, dim: -grad_output.sum(dim, True) * output.exp() * grad,
    },
}


def _family(name: str, run: Run, slope: Run, doc: str) -> Op:
    backward = define(
        f"_{name}_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        doc=f"The gradient of {name} from that of its result.",
        run=slope,
        grads=_DOUBLE_GRADS[name],
        method=False,
    )
    core = define(
        f"_{name}(Tensor self, int dim, bool half_to_float) -> Tensor",
        doc=doc,
        run=run,
        grads={
            "self": lambda grad, result, dim, self_scalar_type: backward.call(grad, result, dim, self_scalar_type),
        },
        method=False,
    )

    def composite(self: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
        return core.call(self if dtype in (None, self.dtype) else self.to(dtype), dim, False)  # type: ignore[no-any-return]

    public = define(
        f"{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        doc=doc,
        composite=composite,
        samples=[((3, 4), 1), ((3, 4), 0)],
    )
    define(
        f"special_{name}(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        doc=doc,
        composite=composite,
        method=False,
        namespace="torch.special",
    )
    return public


softmax = _family("softmax", _kernel("softmax", softmax_of, _half_softmax), _slope(_softmax_slope),
                  "Exponentials along a dim as shares of their sum.")  # fmt: skip
log_softmax = _family(
    "log_softmax",
    _kernel("log_softmax", log_softmax_of, _half_log_softmax),
    _slope(_log_softmax_slope),
    "The logarithm of softmax, computed without overflow.",
)

# ---- activations -------------------------------------------------------------------------------------------------


_ZEROS = {np.dtype(kind): np.zeros((), kind) for kind in (np.float32, np.float64, np.int64)}


def _relu(a: Any) -> Any:
    return larger(a.dtype.type(0), a)  # the second of equals: -0.0 stays


define(
    "relu(Tensor self) -> Tensor",
    doc="Zero for negative elements, the element itself otherwise.",
    run=elementwise(
        _relu,
        "relu_cpu",
        refuse={
            "b": (RuntimeError, "Boolean inputs not supported for relu"),
            "c": (NotImplementedError, "clamp is not supported for complex types"),
        },
        through=False,
        quick=lambda a: np.maximum(_ZEROS[a.dtype], a),
    ),
    grads={"self": lambda grad, result: chosen_in_kernel(result <= 0, 0, grad)},
    samples=[((3, 4),)],
    inplace=True,
)
