"""Choosing by a condition: where, masked_fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.one_device import one_device
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.overlap import MASKED_FILL, is_lazy, warn_of_expanded, writable
from stridescope.engine.dispatch.promote import common, result_type
from stridescope.engine.dispatch.result_strides import output_strides
from stridescope.engine.dispatch.run import laid_out, on_copy, operand_array, resolved
from stridescope.engine.dtype import bool_, cpp_name, default_float, dtype, scalar_name, uint8
from stridescope.engine.layout import broadcast_shapes, dense_strides_like
from stridescope.engine.ops.number_range import number_of
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn_once


def _where(condition: Tensor, self: Any, other: Any) -> Tensor:
    if condition.dtype not in (bool_, uint8):
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{scalar_name(condition.dtype)}"
        )
    if condition.dtype is uint8:
        warn_once(
            internal(
                "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
                "version of PyTorch. Use a boolean condition instead.",
                "aten/src/ATen/native/TensorCompare.cpp:621",
            )
        )
    if (chosen := _of_alike(condition, self, other)) is not None:
        return chosen
    kind = common((self, other)) if isinstance(self, Tensor) or isinstance(other, Tensor) else _of_numbers(self, other)
    a, b = (operand_array(o, kind) if isinstance(o, Tensor) else number_of(o, kind) for o in (self, other))
    test = resolved(condition)
    shape = broadcast_shapes(test.shape, a.shape, b.shape)
    array = np.asarray(np.where(test if condition.dtype is bool_ else test != 0, a, b))
    strides = output_strides(shape, (test, _converted(self, a), _converted(other, b)))
    return fresh(laid_out(array, strides), kind, one_device((condition, self, other)))


def _of_alike(condition: Tensor, self: Any, other: Any) -> Tensor | None:
    """The result, the short way: of row-major tensors on the CPU in one shape and dtype; else None."""
    if not (isinstance(self, Tensor) and isinstance(other, Tensor) and self.dtype is other.dtype):
        return None
    test, a, b = condition._array, self._array, other._array
    plain = condition._plain and self._plain and other._plain and condition.dtype is bool_
    if not plain or not test.shape == a.shape == b.shape or 1 in a.shape or not a.size or not a.ndim:
        return None
    if not (test.flags.c_contiguous and a.flags.c_contiguous and b.flags.c_contiguous):
        return None
    return fresh(np.where(test, a, b), self.dtype)


def _converted(operand: Any, array: Any) -> Any:
    """An operand laid out as ``to(dtype)`` gives it: PyTorch brings both to one dtype before it walks them."""
    if not isinstance(operand, Tensor) or operand.dtype.np == array.dtype:
        return array
    return laid_out(array, dense_strides_like(array.shape, operand.strides))


def _of_numbers(self: Any, other: Any) -> dtype:
    return result_type(self, other) if not isinstance(self, float) else default_float()


define(
    "where(Tensor condition) -> Tensor[]",
    doc="Where the condition holds: the indices, one tensor per dim.",
    composite=lambda condition: condition.nonzero(as_tuple=True),
    method=False,
)

where: Op = define(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    doc="Takes from self where the condition holds, else from other.",
    run=_where,
    out=Out(memory_first=True, dtype_at_once=lambda _, self, other: result_type(self, other)),
    node="WhereBackward0",
    grads={
        "self": lambda grad, condition: where.call(condition, grad, 0),
        "other": lambda grad, condition: where.call(condition, 0, grad),
    },
    method=False,
)


def _where_numbers(condition: Tensor, self: Any, other: Any) -> Tensor:
    """With a number, the tensor is converted first, in a node of its own."""
    tensors = isinstance(self, Tensor) or isinstance(other, Tensor)
    kind = common((self, other)) if tensors else _of_numbers(self, other)
    operands = (o.to(kind) if isinstance(o, Tensor) and o.dtype is not kind else o for o in (self, other))
    return where.call(condition, *operands)  # type: ignore[no-any-return]


for _overload, _types in (("ScalarSelf", "Scalar self, Tensor other"), ("ScalarOther", "Tensor self, Scalar other"),
                          ("Scalar", "Scalar self, Scalar other")):  # fmt: skip
    define(
        f"where.{_overload}(Tensor condition, {_types}) -> Tensor",
        doc="Takes from self where the condition holds, else from other.",
        composite=_where_numbers,
        method=False,
    )


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """``self.where(condition, other)``."""
    return where.call(condition, self, other)  # type: ignore[no-any-return]


define(
    "where.method(Tensor self, Tensor condition, Tensor other) -> Tensor",
    doc="Takes from self where the condition holds, else from other.",
    composite=where_method,
    function=False,
)
define(
    "where.method_scalar(Tensor self, Tensor condition, Scalar other) -> Tensor",
    doc="Takes from self where the condition holds, else the number.",
    composite=where_method,
    function=False,
)


# ---- masked_fill -------------------------------------------------------------------------------------------------


def _check_mask(mask: Tensor) -> None:
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {cpp_name(mask.dtype)}")


def _check_value(value: Any) -> None:
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )


def _number(value: Any, kind: dtype) -> Any:
    """The value as the tensor's dtype holds it; raises RuntimeError when it cannot."""
    return number_of(resolved(value).item() if isinstance(value, Tensor) else value, kind)


def _fill_into(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    if is_lazy(self):
        return on_copy(self, _fill_into, mask, value)
    _check_value(value)
    _check_mask(mask)
    broadcast_shapes(self._array.shape, mask._array.shape)
    number = _number(value, self.dtype)
    if broadcast_shapes(self._array.shape, mask._array.shape) != self._array.shape:
        raise RuntimeError(
            f"output with shape {list(self._array.shape)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(self._array.shape, mask._array.shape))}"
        )
    warn_of_expanded(self, *MASKED_FILL)
    np.copyto(writable(self), number, where=mask._array)
    return self


def _filled(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    alike = mask._array.shape == self._array.shape
    shape = self._array.shape if alike else broadcast_shapes(mask._array.shape, self._array.shape)
    _check_value(value)
    _check_mask(mask)
    number = _number(value, self.dtype)
    array = resolved(self)
    target = np.array(array if alike else np.broadcast_to(array, shape), order="C")
    np.copyto(target, number, where=mask._array)
    return fresh(target, self.dtype, one_device((self, mask)))


def _kept(grad: Tensor, mask: Tensor) -> Tensor:
    result: Tensor = grad.masked_fill(mask, 0)
    return result


def _value_grad(grad: Tensor, mask: Tensor) -> Tensor:
    result: Tensor = where.call(mask, grad, 0).sum()
    return result


for _overload, _kind, _node in (
    ("Tensor", "Tensor", "MaskedFillBackward1"),
    ("Scalar", "Scalar", "MaskedFillBackward0"),
):
    _grads: dict[str, Any] = {"self": _kept}
    if _kind == "Tensor":
        _grads["value"] = _value_grad
    define(
        f"masked_fill.{_overload}(Tensor self, Tensor mask, {_kind} value) -> Tensor",
        doc="One value where the mask holds.",
        run=_filled,
        node=_node,
        grads=_grads,
    )
    define(
        f"masked_fill_.{_overload}(Tensor(a!) self, Tensor mask, {_kind} value) -> Tensor(a!)",
        doc="Writes one value where the mask holds.",
        run=_fill_into,
        node=_node,
        grads=_grads,
        function=False,
    )
