"""Softmax, its logarithm, and the activations that stand in PyTorch's torch namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise, not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, dtype
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.minmax import larger
from stridescope.engine.ops.reduce import widened
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh

# NumPy's stubs do not let these be called with positional dims; the methods of arrays take two more Python calls.
_largest: Any = np.maximum.reduce
_sum: Any = np.add.reduce


def softmax_of(array: Array, dim: int) -> Array:
    """Exponentials as shares of their sum, the largest element taken out first."""
    if not array.ndim:
        return np.exp(array - array)
    if not array.size:
        return array.copy()
    shifted = array - _largest(array, dim, keepdims=True)
    np.exp(shifted, shifted)
    return np.divide(shifted, _sum(shifted, dim, keepdims=True), shifted)  # type: ignore[no-any-return]


def log_softmax_of(array: Array, dim: int) -> Array:
    """The logarithms of the shares, without computing the shares."""
    if not array.ndim:
        return array - array
    if not array.size:
        return array.copy()
    shifted = array - _largest(array, dim, keepdims=True)
    shifted -= np.log(_sum(np.exp(shifted), dim, keepdims=True))
    return shifted  # type: ignore[no-any-return]


def _kernel(name: str, compute: Callable[[Array, int], Array]) -> Callable[..., Tensor]:
    def run(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
        dim = wrap_dim(dim, self._array.ndim)
        if self.dtype.category != FLOAT and self._array.size:
            last = dim == self._array.ndim - 1 or not self._array.ndim
            raise not_implemented(f"{name}_lastdim_kernel_impl" if last else f"{name}_kernel_impl", self.dtype)
        array = resolved(self)
        if not array.size:
            return fresh(array.copy(), self.dtype, self.device)
        result = compute(widened(array, self.dtype), dim).astype(array.dtype, copy=False)
        return fresh(dense(result), self.dtype, self.device)

    return run


def _softmax_back(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    weighted = grad * result
    return weighted - result * weighted.sum(dim, True)  # type: ignore[no-any-return]


def _log_softmax_back(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    return grad - result.exp() * grad.sum(dim, True)  # type: ignore[no-any-return]


def _family(name: str, compute: Callable[[Array, int], Array], grad: Callable[..., Tensor], doc: str) -> None:
    core = define(
        f"_{name}(Tensor self, int dim, bool half_to_float) -> Tensor",
        doc=doc,
        run=_kernel(name, compute),
        grads={"self": grad},
        method=False,
    )

    def composite(self: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
        return core.call(self if dtype is None else self.to(dtype), dim, False)  # type: ignore[no-any-return]

    define(
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


_family("softmax", softmax_of, _softmax_back, "Exponentials along a dim as shares of their sum.")
_family("log_softmax", log_softmax_of, _log_softmax_back, "The logarithm of softmax, computed without overflow.")

# ---- activations -------------------------------------------------------------------------------------------------


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
        quick=_relu,
    ),
    grads={"self": lambda grad, result: grad.masked_fill(result <= 0, 0)},
    samples=[((3, 4),)],
    inplace=True,
)
