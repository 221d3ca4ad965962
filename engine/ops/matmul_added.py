"""Matrix products added to a summand: addmm, baddbmm, addbmm, addmv and addr, and the same in place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.out import warn_of_growth
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.overlap import refuse_lazy_overlap, refuse_overlap
from stridescope.engine.dispatch.promote import result_type
from stridescope.engine.dispatch.result_strides import blank, output_strides
from stridescope.engine.dispatch.run import FLOATS, cast, kernel, laid_out, resolved, store
from stridescope.engine.dtype import BOOL, INTEGER, cpp_name, scalar_name
from stridescope.engine.kernels.small_products import matrix_product
from stridescope.engine.layout import contiguous_format, view_strides
from stridescope.engine.ops.arithmetic import conj, scaled
from stridescope.engine.ops.blends import blended, wide
from stridescope.engine.ops.matmul import (
    check_batches,
    check_factors,
    check_one_type,
    check_same_dtypes,
    need_dtype,
    size_at,
)
from stridescope.engine.ops.matmul_grads import first_factor_grad, second_factor_grad
from stridescope.engine.ops.number_range import number_of
from stridescope.engine.ops.views import expand_
from stridescope.engine.tensor import Tensor, canonical, fresh


def _blend(name: str, compute: Callable[..., Any], check: Callable[..., None]) -> Callable[..., Tensor]:
    """``beta * self + alpha * product``; with beta 0 the summand is not read, not even its NaN."""

    def run(self: Tensor, first: Tensor, second: Tensor, beta: Any, alpha: Any) -> Tensor:
        check(self, first, second)
        alike = self._plain and first._plain and second._plain and self.dtype in FLOATS
        if alike and beta == 1 == alpha and first.dtype is second.dtype is self.dtype:
            result = compute(first._array, second._array)
            if result.size and result.flags.c_contiguous:
                return fresh(canonical(np.add(result, self._array, result)), self.dtype)
        return kernel(lambda c, a, b: blended(c, compute(wide(a), wide(b)), beta, alpha))(self, first, second)  # type: ignore[no-any-return]

    return run


def fits(summand: Tensor, shape: Sequence[int]) -> None:
    """Refuse a summand that cannot be stretched to the product's shape."""
    own = summand._array.shape
    if own and own == shape[-len(own) :]:
        return
    expand_.view(summand, shape, False)  # type: ignore[misc]


def _same(one: str, a: Tensor, other: str, b: Tensor) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{one} and {other} must have the same dtype, but got {scalar_name(a.dtype)} and {scalar_name(b.dtype)}"
        )


def _check_matrices(self: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    _same("self", self, "mat2", mat2)
    _same("mat1", mat1, "mat2", mat2)
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix._array.ndim}-D tensor")
    check_factors(mat1, mat2)


def _check_addmm(self: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    _check_matrices(self, mat1, mat2)
    fits(self, (mat1._array.shape[0], mat2._array.shape[1]))
    if self.dtype.category == BOOL:
        raise not_implemented("addmm_impl_cpu_", self.dtype)


def _check_batches(self: Tensor, batch1: Tensor, batch2: Tensor) -> None:
    fits(self, (size_at(batch1, 0), size_at(batch1, 1), size_at(batch2, 2)))
    if batch1.dtype is not self.dtype:
        kinds = f"{cpp_name(self.dtype)}, batch1: {cpp_name(batch1.dtype)}, batch2: {cpp_name(batch2.dtype)}"
        raise RuntimeError(f"Input dtypes must be the same, got: input {kinds}")
    check_batches(batch1, batch2)


def _check_baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor) -> None:
    _check_batches(self, batch1, batch2)
    if self.dtype.category == BOOL and self._array.size and batch1._array.size:
        raise not_implemented("baddbmm", self.dtype)
    check_one_type(batch1, batch2)


def _check_addmv(self: Tensor, mat: Tensor, vec: Tensor) -> None:
    a, b, c = mat._array, vec._array, self._array
    if a.ndim != 2 or b.ndim != 1 or c.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {c.ndim}, {a.ndim}, {b.ndim}")
    if a.shape[1] != b.shape[0] or (c.ndim and c.shape[0] not in (1, a.shape[0])):
        size = size_at(self, 0)
        raise RuntimeError(f"size mismatch, got input ({size}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})")
    check_same_dtypes(self, mat, vec)
    if self.dtype.category == BOOL and a.size:
        raise not_implemented("addmv_impl_cpu", self.dtype)


def _addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> Tensor:
    rows, columns = mat._array.shape if mat._array.ndim == 2 else (1, 1)
    if not rows or columns or not beta:
        return _blend_addmv(self, mat, vec, beta, alpha)
    _check_addmv(self, mat, vec)
    if self.shape != (rows,):  # the product of nothing: PyTorch stays with the summand's shape
        warn_of_growth((rows,), self.shape)
    return kernel(lambda summand: np.multiply(summand, number_of(beta, self.dtype)))(self)  # type: ignore[no-any-return]


_blend_addmv = _blend("addmv", np.matmul, _check_addmv)


def _check_addbmm(self: Tensor, batch1: Tensor, batch2: Tensor) -> None:
    if grad_mode.enabled and any(t._requires_grad for t in (self, batch1, batch2)):
        size_at(batch1, 0)  # what the node keeps of it is asked for first
    fits(self, (size_at(batch1, 1), size_at(batch2, 2)))
    for name, tensor in (("batch1", batch1), ("batch2", batch2)):
        if tensor._array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    (b, n, m), (c, k, p) = batch1._array.shape, batch2._array.shape
    if b != c:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {b} and {c}")
    if m != k:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({n}x{m} and {k}x{p})")
    if b:  # without a product nothing looks at the dtypes
        _same("self", self, "mat2", batch2)
        _same("mat1", batch1, "mat2", batch2)
    if self.dtype.category == BOOL and batch1._array.size:
        raise not_implemented("addmm_impl_cpu_", self.dtype)


def _addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """One product after the other is added, each rounded to the dtype; without any the summand is scaled."""
    _check_addbmm(self, batch1, batch2)
    shape = (batch1._array.shape[1], batch2._array.shape[2])
    if not batch1._array.shape[0]:
        start = self.expand(shape).clone(memory_format=contiguous_format)
        start = start.mul_(beta) if beta != 0 else start.zero_()
        return fresh(start._array, start.dtype, start.device)

    def summed(total: Any, left: Any, right: Any) -> Any:
        total, share = np.broadcast_to(total, shape), beta
        for a, b in zip(left, right, strict=True):
            total, share = blended(total, matrix_product(wide(a), wide(b)), share, alpha), 1
        return total

    return kernel(summed)(self, batch1, batch2)  # type: ignore[no-any-return]


def _addmm_into(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any, out: Tensor) -> Tensor:
    _check_matrices(self, mat1, mat2)
    need_dtype(out, self.dtype)
    return addmm.call(self, mat1, mat2, beta, alpha)  # type: ignore[no-any-return]


def _baddbmm_into(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any, out: Tensor) -> Tensor:
    _check_batches(self, batch1, batch2)
    need_dtype(out, batch2.dtype)
    return baddbmm.call(self, batch1, batch2, beta, alpha)  # type: ignore[no-any-return]


def _addbmm_into(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any, out: Tensor) -> Tensor:
    """The summand is copied into ``out``, to which the products are added."""
    summand = fresh(cast(resolved(self), out.dtype), out.dtype, self.device)
    return addbmm.call(summand, batch1, batch2, beta, alpha)  # type: ignore[no-any-return]


addmm = define(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="A matrix product, times alpha, added to self times beta.",
    run=_blend("addmm", matrix_product, _check_addmm),
    out=Out(_addmm_into),
    grads={
        "self": lambda grad, beta: scaled(grad, conj(beta)),
        "mat1": lambda grad, mat2, mat1_sym_sizes, mat1_sym_strides, alpha: first_factor_grad(
            grad, mat2, mat1_sym_sizes, mat1_sym_strides, alpha
        ),
        "mat2": lambda grad, mat1, mat2_sym_sizes, mat2_sym_strides, alpha: second_factor_grad(
            grad, mat1, mat2_sym_sizes, mat2_sym_strides, alpha
        ),
    },
    samples=[((3, 5), (3, 4), (4, 5)), ((5,), (3, 4), (4, 5))],
)
baddbmm = define(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="Batched matrix products, times alpha, added to self times beta.",
    run=_blend("baddbmm", np.matmul, _check_baddbmm),
    out=Out(_baddbmm_into),
    grads={
        "self": lambda grad, beta: scaled(grad, conj(beta)),
        "batch1": lambda grad, batch2, alpha: scaled(grad.bmm(conj(batch2.transpose(1, 2))), conj(alpha)),
        "batch2": lambda grad, batch1, alpha: scaled(conj(batch1.transpose(1, 2)).bmm(grad), conj(alpha)),
    },
    samples=[((2, 3, 5), (2, 3, 4), (2, 4, 5))],
)
addbmm = define(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="The sum of batched matrix products, times alpha, added to self times beta.",
    run=_addbmm,
    out=Out(_addbmm_into),
    grads={
        "self": lambda grad, beta: scaled(grad, conj(beta)),
        "batch1": lambda grad, batch1, batch2, alpha: scaled(
            _over_batch(grad, batch1, batch2).bmm(conj(batch2.transpose(1, 2))), conj(alpha)
        ),
        "batch2": lambda grad, batch1, batch2, alpha: scaled(
            conj(batch1.transpose(1, 2)).bmm(_over_batch(grad, batch1, batch2)), conj(alpha)
        ),
    },
    samples=[((3, 5), (2, 3, 4), (2, 4, 5))],
)


def _over_batch(grad: Tensor, batch1: Tensor, batch2: Tensor) -> Tensor:
    return grad.unsqueeze(0).expand((batch1.shape[0], batch1.shape[1], batch2.shape[2]))  # type: ignore[no-any-return]


addmv = define(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="A matrix-vector product, times alpha, added to self times beta.",
    run=_addmv,
    grads={
        "self": lambda grad, beta: scaled(grad, conj(beta)),
        "mat": lambda grad, vec, alpha: scaled(grad.outer(conj(vec)), conj(alpha)),
        "vec": lambda grad, mat, alpha: scaled(conj(mat).t().mv(grad), conj(alpha)),
    },
    samples=[((3,), (3, 4), (4,))],
)


def _addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> Tensor:
    for name, vec in (("vec1", vec1), ("vec2", vec2)):
        if vec._array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vec._array.ndim}-D")
    shape = (vec1._array.shape[0], vec2._array.shape[0])
    fits(self, shape)
    full = self if self._array.ndim else fresh(np.zeros(1, self.dtype.np), self.dtype)  # a number counts as a matrix
    kind = result_type(full, vec1, vec2)
    for word, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool) and kind.category != BOOL:
            raise RuntimeError(f"Boolean {word} only supported for Boolean results.")
        if isinstance(factor, float) and kind.category <= INTEGER:
            raise RuntimeError(f"For integral input tensors, argument {word} must not be a floating point number.")
    outer = np.multiply.outer(cast(resolved(vec1), kind), cast(resolved(vec2), kind))
    summand = cast(resolved(self), kind)
    if kind.category == BOOL:
        array = np.logical_and(outer, bool(alpha))
        array = np.logical_or(array, np.logical_and(summand, bool(beta)))
    else:
        array = outer if alpha == 1 else outer * number_of(alpha, kind)
        if beta != 0:
            array = array + (summand if beta == 1 else summand * number_of(beta, kind))
    return fresh(laid_out(array.astype(kind.np, copy=False), _addr_strides(self, vec1, vec2)), kind, self.device)


def _addr_strides(self: Tensor, vec1: Tensor, vec2: Tensor) -> tuple[int, ...]:
    """The strides of a pointwise result of the summand at full size, a column and a row."""
    rows = vec1._array.shape[0]
    shape = (rows, vec2._array.shape[0])
    column = view_strides(vec1._array.shape, vec1.strides, (rows, 1)) or (1, 1)
    stretched = expand_.view(self, shape, False).strides  # type: ignore[misc]
    return output_strides(shape, [blank(shape, stretched), blank((rows, 1), column), vec2._array])


addr = define(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="An outer product, times alpha, added to self times beta.",
    run=_addr,
    grads={
        "self": lambda grad, beta: scaled(grad, conj(beta)),
        "vec1": lambda grad, vec2, alpha: scaled(grad.mv(conj(vec2)), conj(alpha)),
        "vec2": lambda grad, vec1, alpha: scaled(grad.t().mv(conj(vec1)), conj(alpha)),
    },
    samples=[((3, 4), (3,), (4,))],
)

# ---- the same in place -------------------------------------------------------------------------------------------


def _misfit(name: str, target: Tensor, shape: Sequence[int], args: Sequence[Any]) -> str:
    if name != "addr":
        sizes = f"input tensor size {list(target.shape)} and output tensor size {list(shape)}"
        return f"Bad in-place call: {sizes} should match"
    if target._array.ndim != 2:
        return f"2D tensor expected, got {target._array.ndim}D tensor for input"
    return f"size mismatch, input: {list(target.shape)}, v1: {list(args[0].shape)}, v2: {list(args[1].shape)}"


def _shape_of_product(name: str, target: Tensor, first: Tensor, second: Tensor) -> tuple[int, ...] | None:
    """What addmm_ and addr_ compare the summand with before they stretch it; None for what they refuse otherwise."""
    a, b = first._array.shape, second._array.shape
    if name == "addmm" and len(a) == len(b) == 2 and a[1] == b[0] and target.dtype is first.dtype is second.dtype:
        return a[0], b[1]
    return (*a, *b) if name == "addr" and len(a) == len(b) == 1 else None


def _written(op: Op, target: Tensor, *args: Any) -> Tensor:
    """Write the result over the summand; only ``addbmm_`` lets a smaller summand grow."""
    shape = _shape_of_product(op.name, target, *args[:2])
    if shape is not None and shape != target._array.shape:
        raise RuntimeError(_misfit(op.name, target, shape, args))
    result = op.run(target, *args)  # type: ignore[misc]
    if result._array.shape != target._array.shape:
        if op.name != "addbmm":
            raise RuntimeError(_misfit(op.name, target, result._array.shape, args))
        from stridescope.engine.dispatch.out import layout_for, reshaped

        reshaped(target, *layout_for(result))
    refuse_overlap(target, args)
    refuse_lazy_overlap(target)
    store(target, result)
    return target


for _op in (addmm, baddbmm, addbmm, addmv, addr):
    _text = _op.schema.text.replace(_op.name, f"{_op.name}_", 1).replace("Tensor self", "Tensor(a!) self", 1)
    define(
        f"{_text.rpartition('->')[0]}-> Tensor(a!)",
        doc=f"{_op.doc} Written in place.",
        run=functools.partial(_written, _op),
        node=_op.derivative.name if _op.derivative else None,
        grads={
            ",".join(formula.inputs): formula.function for formula in _op.derivative.formulas
        } if _op.derivative else None,
        function=_op.name == "addmv",
    )  # fmt: skip
