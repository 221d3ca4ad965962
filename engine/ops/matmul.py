"""Matrix products, through BLAS: mm, bmm, mv, dot and matmul, which composes them as PyTorch does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out import layout_for, resized
from stridescope.engine.dispatch.out_dtypes import expected_dtype, refusal
from stridescope.engine.dispatch.out_rule import Out, own_dtype
from stridescope.engine.dispatch.overlap import refuse_overlap
from stridescope.engine.dispatch.run import FLOATS, kernel
from stridescope.engine.dtype import BOOL, cpp_name, dtype, scalar_name
from stridescope.engine.kernels.small_products import matrix_product
from stridescope.engine.layout import broadcast_shapes, wrap_dim
from stridescope.engine.ops.arithmetic import conj
from stridescope.engine.ops.matmul_grads import first_factor_grad, second_factor_grad
from stridescope.engine.tensor import Tensor, dense, fresh


def product(a: Any, b: Any) -> Any:
    """``a @ b``; half precisions accumulate in float32."""
    if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return matrix_product(a, b)


def check_factors(a: Tensor, b: Tensor) -> None:
    """Refuse a product of matrices whose sizes do not fit each other, with PyTorch's texts."""
    if b._array.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if a._array.shape[1] != b._array.shape[0]:
        (n, m), (k, p) = a._array.shape, b._array.shape
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{m} and {k}x{p})")


def check_one_dtype(a: Tensor, b: Tensor) -> None:
    """Refuse a product of two matrices of different dtypes."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {cpp_name(a.dtype)} != {cpp_name(b.dtype)}"
        )


def check_matrices(a: Tensor, b: Tensor) -> None:
    """Refuse what ``mm`` does not take, but for its dtypes."""
    if a._array.ndim != 2:
        raise RuntimeError("self must be a matrix")
    check_factors(a, b)


def _mm(self: Tensor, mat2: Tensor) -> Tensor:
    check_matrices(self, mat2)
    check_one_dtype(self, mat2)
    if self.dtype.category == BOOL and self._array.size and mat2._array.size:
        raise not_implemented("addmm_impl_cpu_", self.dtype)
    if self._plain and mat2._plain and self.dtype in FLOATS:
        return fresh(dense(matrix_product(self._array, mat2._array)), self.dtype)
    return _product(self, mat2)  # type: ignore[no-any-return]


def need_dtype(out: Tensor, kind: dtype) -> None:
    """Refuse an ``out`` of another dtype, which PyTorch asks for before it compares the factors' dtypes."""
    if out.dtype is not kind:
        raise expected_dtype(kind, out.dtype)


def _mm_into(self: Tensor, mat2: Tensor, out: Tensor) -> Tensor:
    check_matrices(self, mat2)
    need_dtype(out, self.dtype)
    return mm.call(self, mat2)  # type: ignore[no-any-return]


_product = kernel(product)
mm = define(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    doc="The product of two matrices.",
    run=_mm,
    out=Out(_mm_into),
    grads={
        "self": lambda grad, mat2, self_sym_sizes, self_sym_strides: first_factor_grad(
            grad, mat2, self_sym_sizes, self_sym_strides, 1
        ),
        "mat2": lambda grad, self, mat2_sym_sizes, mat2_sym_strides: second_factor_grad(
            grad, self, mat2_sym_sizes, mat2_sym_strides, 1
        ),
    },
    samples=[((3, 4), (4, 5))],
)


def check_batches(a: Tensor, b: Tensor) -> None:
    """Refuse a batched product of tensors that do not fit each other."""
    for name, tensor in (("batch1", a), ("batch2", b)):
        if tensor._array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    want = [a._array.shape[0], a._array.shape[2]]
    got = list(b._array.shape[:2])
    if want != got:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: {want} but got: {got}.")


def check_one_type(a: Tensor, b: Tensor) -> None:
    """Refuse a batched product of two dtypes."""
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(a.dtype)} but found {scalar_name(b.dtype)}")


def _bmm(self: Tensor, mat2: Tensor) -> Tensor:
    check_batches(self, mat2)
    if self.dtype.category == BOOL and self._array.size and mat2._array.size:
        wide = self._array.shape[2] * self._array.shape[1] * mat2._array.shape[2] >= 400  # each by a product of its own
        raise not_implemented("addmm_impl_cpu_" if wide else "bmm", self.dtype)
    check_one_type(self, mat2)
    return _product(self, mat2)  # type: ignore[no-any-return]


def _bmm_into(self: Tensor, mat2: Tensor, out: Tensor) -> Tensor:
    check_batches(self, mat2)
    need_dtype(out, mat2.dtype)
    return bmm.call(self, mat2)  # type: ignore[no-any-return]


bmm = define(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    doc="The products of two batches of matrices.",
    run=_bmm,
    out=Out(_bmm_into),
    grads={
        "self": lambda grad, mat2: grad.bmm(conj(mat2.transpose(1, 2))),
        "mat2": lambda grad, self: conj(self.transpose(1, 2)).bmm(grad),
    },
    samples=[((2, 3, 4), (2, 4, 5))],
)


def size_at(tensor: Tensor, dim: int) -> int:
    """The size of a dim; raises IndexError when there is none."""
    return int(tensor._array.shape[wrap_dim(dim, tensor._array.ndim, scalar=False)])


def check_same_dtypes(summand: Tensor, mat: Tensor, vec: Tensor) -> None:
    """Refuse a sum and a product of a matrix and a vector of several dtypes."""
    if not summand.dtype is mat.dtype is vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{scalar_name(summand.dtype)}, {scalar_name(mat.dtype)}, and {scalar_name(vec.dtype)}"
        )


def _check_mv(self: Tensor, vec: Tensor) -> None:
    size_at(self, 0)
    a, b = self._array, vec._array
    if a.ndim != 2 or b.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.ndim}, {b.ndim}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec "
                           f"({b.shape[0]})")  # fmt: skip
    check_same_dtypes(vec, self, vec)


def _mv(self: Tensor, vec: Tensor) -> Tensor:
    _check_mv(self, vec)
    if self.dtype.category == BOOL and self._array.size:
        raise not_implemented("addmv_impl_cpu", self.dtype)
    return _product(self, vec)  # type: ignore[no-any-return]


mv = define(
    "mv(Tensor self, Tensor vec) -> Tensor",
    doc="The product of a matrix and a vector.",
    run=_mv,
    grads={
        "self": lambda grad, vec: grad.outer(conj(vec)),
        "vec": lambda grad, self: conj(self).t().mv(grad),
    },
    samples=[((3, 4), (4,))],
)


def _check_vectors(name: str, a: Tensor, b: Tensor) -> None:
    if a._array.ndim != 1 or b._array.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a._array.ndim}D and {b._array.ndim}D tensors")
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found {scalar_name(a.dtype)} and "
            f"{scalar_name(b.dtype)}"
        )
    if a._array.shape != b._array.shape:
        n, m = a._array.size, b._array.size
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but "
            f"got {n} and {m} elements respectively"
        )
    if a.dtype.category == BOOL:
        raise not_implemented("dot", a.dtype)


def _dot(self: Tensor, tensor: Tensor) -> Tensor:
    _check_vectors("dot", self, tensor)
    if self._conj and tensor._conj:
        return _conjugated(_product(self.conj(), tensor.conj()))
    return _product(self, tensor)  # type: ignore[no-any-return]


def _vdot(self: Tensor, other: Tensor) -> Tensor:
    _check_vectors("dot", self, other)
    if other._conj and not self._conj:
        return _conjugated(_product(self, other.conj()))
    return kernel(lambda a, b: product(np.conj(a), b))(self, other)  # type: ignore[no-any-return]


def _conjugated(result: Tensor) -> Tensor:
    """A new tensor seen as its conjugate, as PyTorch leaves the product of two conjugates."""
    result._conj = True
    return result


dot = define(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    doc="The sum of the products of two vectors' elements.",
    run=_dot,
    out=Out(dtype_at_once=own_dtype),
    grads={
        "self": lambda grad, tensor: grad * conj(tensor),
        "tensor": lambda grad, self: grad * conj(self),
    },
    samples=[((4,), (4,))],
)
vdot = define(
    "vdot(Tensor self, Tensor other) -> Tensor",
    doc="The dot product with the conjugates of the first vector.",
    run=_vdot,
    out=Out(dtype_at_once=own_dtype),
    grads={
        "self": lambda grad, other: conj(grad) * other,
        "other": lambda grad, self: grad * self,
    },
    samples=[((4,), (4,))],
)

# ---- matmul ------------------------------------------------------------------------------------------------------


def _folds(a: Tensor, b: Tensor) -> bool:
    """Whether a batch times one matrix becomes one large matrix product (``should_fold``)."""
    turned = a._array.ndim < b._array.ndim
    big, small = (b.mT, a) if turned else (a, b)
    if big._array.ndim < 3 or small._array.ndim > 2:
        return False
    if small._requires_grad:
        return True  # one copy here saves a large temporary in the backward pass
    if a._array.ndim == 2:
        return False
    shape, strides = big._array.shape, big.strides
    flat = all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 2))
    return flat or not big._array.size


def _folded(a: Tensor, b: Tensor) -> Tensor:
    """The product of a batch and a matrix or vector, by one call of mm or mv."""
    turned = b._array.ndim > a._array.ndim
    big = b.mT if turned else a
    small = (a.t() if a._array.ndim == 2 else a) if turned else b
    shape = list(big.shape[:-1])
    flat = big.reshape((math.prod(shape), big.shape[-1]))
    if small._array.ndim == 2:
        result = unsafe_view(flat.mm(small), [*shape, small.shape[1]])
        return result.mT.contiguous() if turned else result
    return unsafe_view(flat.mv(small), shape)


def _check_folded(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Refuse an ``out`` that the one call of mm or mv refuses."""
    if b._array.ndim == 1:
        if a.shape[-1] == b.shape[0]:
            check_same_dtypes(out, a, b)
        return
    big, small = (b.mT, a.t() if a._array.ndim == 2 else a) if b._array.ndim > a._array.ndim else (a, b)
    if small._array.ndim == 2:
        check_matrices(big.reshape((math.prod(big.shape[:-1]), big.shape[-1])), small)
        need_dtype(out, big.dtype)


def unsafe_view(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """``_unsafe_view``: a fresh result in another shape."""
    from stridescope.engine.ops.views import unsafe_view as op

    return op.call(tensor, tuple(shape))  # type: ignore[no-any-return]


def _batched(a: Tensor, b: Tensor, multiply: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The product of two batches, which ``multiply`` does as ``bmm``."""
    n, m = (a.shape[-2] if a._array.ndim > 1 else 1), a.shape[-1]
    k, p = (b.shape[-2], b.shape[-1]) if b._array.ndim > 1 else (b.shape[0], 1)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = math.prod(batch)
    left = a.expand((*batch, n, m)).reshape((count, n, m))
    rows = [n] if a._array.ndim > 1 else []
    if b._array.ndim == 1:
        right = b.expand((*batch, k)).reshape((count, k)).unsqueeze(2)
        return unsafe_view(multiply(left, right).squeeze(-1), [*batch, *rows])
    right = b.expand((*batch, k, p)).reshape((count, k, p))
    return unsafe_view(multiply(left, right), [*batch, *rows, p])


def _squeezed_batch(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A batch of one that wants a gradient is taken as a plain matrix, which spares broadcasting it."""
    if a._array.ndim == b._array.ndim == 3 and a.shape[0] != b.shape[0]:
        if a.shape[0] == 1 and a._requires_grad:
            return a.squeeze(0), b
        if b.shape[0] == 1 and b._requires_grad:
            return a, b.squeeze(0)
    return a, b


def _matmul(self: Tensor, other: Tensor) -> Tensor:
    a, b = self._array.ndim, other._array.ndim
    if a == 2 and b == 2:
        return mm.call(self, other)  # type: ignore[no-any-return]
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return dot.call(self, other)  # type: ignore[no-any-return]
    if a == 2 and b == 1:
        return mv.call(self, other)  # type: ignore[no-any-return]
    if a == 1 and b == 2:
        return self.unsqueeze(0).mm(other).squeeze_(0)  # type: ignore[no-any-return]
    left, right = _squeezed_batch(self, other)
    return _folded(left, right) if _folds(left, right) else _batched(left, right, bmm.call)


def _row_into(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    """A vector times a matrix; ``out`` is made a matrix of one row for it, and a vector again."""
    row = _mm_into(self.unsqueeze(0), other, out)
    refuse_overlap(out, (self, other))
    if out._array.shape != row._array.shape:
        resized(out, *layout_for(row))
    out.squeeze_(0)
    return row.squeeze(0)  # type: ignore[no-any-return]


def _matmul_into(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    """What ``matmul(out=)`` writes; each way of computing it refuses other dtypes of ``out`` in its own words."""
    a, b = self._array.ndim, other._array.ndim
    if a == 1 and b == 1 and (refused := refusal("dot", self.dtype, out.dtype)) is not None:
        raise refused
    if a == 2 and b == 2:
        return _mm_into(self, other, out)
    if a == 1 and b == 2:
        return _row_into(self, other, out)
    if a == 2 and b == 1:
        _check_mv(self, other)
        need_dtype(out, self.dtype)
    elif a and b and _folds(self, other):
        _check_folded(self, other, out)
    elif min(a, b) and max(a, b) > 2:
        return _batched(self, other, lambda left, right: _bmm_into(left, right, out))
    return matmul.call(self, other)  # type: ignore[no-any-return]


matmul = define(
    "matmul(Tensor self, Tensor other) -> Tensor",
    doc="The matrix product, batched over leading dims.",
    composite=_matmul,
    out=Out(_matmul_into),
    samples=[((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (4, 5))],
)
