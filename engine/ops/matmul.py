"""Matrix products, through BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import kernel
from stridescope.engine.dtype import scalar_name
from stridescope.engine.ops.arithmetic import conj
from stridescope.engine.tensor import Tensor


def product(a: Any, b: Any) -> Any:
    """``a @ b``; half precisions accumulate in float32."""
    if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return np.matmul(a, b)


def same_dtype(a: Tensor, b: Tensor) -> None:
    """Refuse a product of two dtypes, with PyTorch's text."""
    if a.dtype is not b.dtype:
        names = f"{_c_name(a)} != {_c_name(b)}"
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {names}")


_C_NAMES = {"Float": "float", "Double": "double", "Long": "long long", "Int": "int", "Half": "c10::Half",
            "BFloat16": "c10::BFloat16", "Bool": "bool", "Byte": "unsigned char", "Char": "signed char",
            "Short": "short", "ComplexFloat": "c10::complex<float>", "ComplexDouble": "c10::complex<double>"}  # fmt: skip


def _c_name(tensor: Tensor) -> str:
    return _C_NAMES[scalar_name(tensor.dtype)]


def _mm(self: Tensor, mat2: Tensor) -> Tensor:
    a, b = self._array, mat2._array
    if a.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if b.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    same_dtype(self, mat2)
    return _product(self, mat2)  # type: ignore[no-any-return]


_product = kernel(product)

mm = define(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    doc="The product of two matrices.",
    run=_mm,
    grads={
        "self": lambda grad, mat2: grad.mm(conj(mat2).t()),
        "mat2": lambda grad, self: conj(self).t().mm(grad),
    },
    samples=[((3, 4), (4, 5))],
)


def _matmul(self: Tensor, other: Tensor) -> Tensor:
    a, b = self._array.ndim, other._array.ndim
    if a == 2 and b == 2:
        return mm.call(self, other)  # type: ignore[no-any-return]
    raise NotImplementedError(f"matmul of {a}-D and {b}-D tensors is not in Stridescope yet")


matmul = define(
    "matmul(Tensor self, Tensor other) -> Tensor",
    doc="The matrix product, batched over leading dims.",
    composite=_matmul,
    samples=[((3, 4), (4, 5))],
)
