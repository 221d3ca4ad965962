"""Python's operators on tensors that need more than one op or another order of operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stridescope.engine.dispatch.call import number_first
from stridescope.engine.dispatch.converters import is_number
from stridescope.engine.dispatch.op import DECLARED, Op
from stridescope.engine.dtype import INTEGER
from stridescope.engine.tensor import Tensor


def _guarded(function: Callable[[Tensor, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """Operands that are no tensor and no number give NotImplemented, so that Python raises its own TypeError."""

    @functools.wraps(function)
    def method(self: Tensor, other: Any) -> Any:
        if not (isinstance(other, Tensor) or is_number(other)):
            return NotImplemented
        return function(self, other)

    return method


def _pair(tensor_op: str, number_op: str) -> Callable[[Tensor, Any], Any]:
    """The operator that calls one op for a tensor and another for a number."""

    def method(self: Tensor, other: Any) -> Any:
        return _op(tensor_op if isinstance(other, Tensor) else number_op)(self, other)

    return _guarded(method)


def _reflected(tensor_op: str, number_op: str) -> Callable[[Tensor, Any], Any]:
    """``other <op> self``; one op takes a tensor, another a number on its left."""

    def method(self: Tensor, other: Any) -> Any:
        if isinstance(other, Tensor):
            return _op(tensor_op)(other, self)
        if tensor_op == number_op:
            return number_first(_declared(number_op), (other, self))
        return _op(number_op)(other, self)

    return _guarded(method)


def _commuted(name: str) -> Callable[[Tensor, Any], Any]:
    """``other <op> self`` as PyTorch computes it: ``self`` comes first, and gives the result its strides."""
    return _pair(f"{name}.Tensor", f"{name}.Scalar")


@functools.cache
def _declared(name: str) -> Op:
    return next(op for op in DECLARED if op.qualified == name)


def _op(name: str) -> Callable[..., Any]:
    return _declared(name).call


def _rdiv(self: Tensor, other: Any) -> Any:
    return self.reciprocal() * other


def _rsub(self: Tensor, other: Any) -> Any:
    return _op("rsub.Tensor" if isinstance(other, Tensor) else "rsub.Scalar")(self, other)


def _rmatmul(self: Tensor, other: Any) -> Any:
    return _op("matmul")(other, self) if isinstance(other, Tensor) else NotImplemented


def _invert(self: Tensor) -> Any:
    if self.dtype.category > INTEGER:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return _op("bitwise_not")(self)


def _matmul(self: Tensor, other: Any) -> Any:
    return _op("matmul")(self, other) if isinstance(other, Tensor) else NotImplemented


METHODS: dict[str, Any] = {
    "__matmul__": _matmul,
    "__rtruediv__": _guarded(_rdiv),
    "__rdiv__": _guarded(_rdiv),
    "__rsub__": _guarded(_rsub),
    "__div__": _pair("div.Tensor", "div.Tensor"),
    "__floordiv__": _pair("floor_divide", "floor_divide"),
    "__ifloordiv__": _pair("floor_divide_", "floor_divide_"),
    "__rfloordiv__": _reflected("floor_divide", "floor_divide"),
    "__mod__": _pair("remainder.Tensor", "remainder.Scalar"),
    "__imod__": _pair("remainder_.Tensor", "remainder_.Scalar"),
    "__rmod__": _reflected("remainder.Tensor", "remainder.Scalar_Tensor"),
    "__pow__": _pair("pow.Tensor_Tensor", "pow.Tensor_Scalar"),
    "__ipow__": _pair("pow_.Tensor_Tensor", "pow_.Tensor_Scalar"),
    "__rpow__": _reflected("pow.Tensor_Tensor", "pow.Scalar"),
    "__rmatmul__": _rmatmul,
    "__invert__": _invert,
    "__abs__": lambda self: _op("abs")(self),
    "__pos__": lambda self: _op("positive")(self),
    **{
        f"__{mark}{symbol}__": method
        for symbol, name, plain in (
            ("and", "bitwise_and", "Scalar"),
            ("or", "bitwise_or", "Scalar"),
            ("xor", "bitwise_xor", "Scalar"),
            ("lshift", "bitwise_left_shift", "Tensor_Scalar"),
            ("rshift", "bitwise_right_shift", "Tensor_Scalar"),
        )
        for mark, method in (
            ("", _pair(f"{name}.Tensor", f"{name}.{plain}")),
            ("i", _pair(f"{name}_.Tensor", f"{name}_.{plain}")),
            (
                "r",
                _commuted(name)
                if symbol in ("and", "or", "xor")
                else _reflected(f"{name}.Tensor", f"{name}.Scalar_Tensor"),
            ),
        )
    },
}
