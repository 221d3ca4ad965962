"""``ReduceOp``: how the values of several ranks become one, and the arithmetic of it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

_SUPPORTED = frozenset({"float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"})


class RedOpType(enum.Enum):
    """The kinds of reductions."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """How the values of several ranks become one; ``ReduceOp.SUM`` and its like are :class:`RedOpType`."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op: RedOpType | ReduceOp = RedOpType.SUM) -> None:
        self.op = kind_of(op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (ReduceOp, RedOpType)) and self.op is kind_of(other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return f"<torch.distributed.distributed_c10d.ReduceOp object at {id(self):#x}>"


ReduceOp.RedOpType = RedOpType  # type: ignore[attr-defined]
ReduceOp.__module__ = "torch.distributed.distributed_c10d"
RedOpType.__module__, RedOpType.__qualname__ = "torch._C._distributed_c10d", "ReduceOp.RedOpType"


class _OldReduceOp:
    """``reduce_op``, as it was called once."""

    def __getattribute__(self, key: str) -> Any:
        from stridescope.engine.warn import warn

        warn("`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
             FutureWarning)  # fmt: skip
        return getattr(ReduceOp, key)


reduce_op = _OldReduceOp()


def kind_of(op: Any) -> RedOpType:
    """The kind that is meant; raises TypeError for anything but a ReduceOp."""
    if isinstance(op, ReduceOp):
        return op.op
    if not isinstance(op, RedOpType):
        raise TypeError(f"op must be a torch.distributed.ReduceOp such as ReduceOp.SUM, but got {op!r}")
    return op


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex tensors can be reduced so: real and imaginary parts each by themselves."""
    return kind_of(reduceOp) in (RedOpType.SUM, RedOpType.AVG)


_STEPS: dict[RedOpType, Any] = {
    RedOpType.SUM: np.add,
    RedOpType.AVG: np.add,
    RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum,
    RedOpType.MAX: np.maximum,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}
_TITLES = {"int64": "Long", "int32": "Int", "int8": "Char", "uint8": "Byte", "bool": "Bool"}


def check_dtype(name: str) -> None:
    """Raise RuntimeError for a dtype that does not travel between processes."""
    if name not in _SUPPORTED and not name.startswith("complex"):
        raise RuntimeError("Invalid scalar type")


def check_reduction(op: Any, name: str) -> None:
    """Raise RuntimeError when values of this dtype cannot be reduced so."""
    kind = kind_of(op)
    check_dtype(name)
    if kind is RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if kind in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and ("float" in name or "complex" in name):
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
    if kind is RedOpType.AVG and name in _TITLES:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {_TITLES[name]}")


def reduced(op: Any, arrays: Sequence[Any]) -> Any:
    """One array of the arrays of all ranks, taken in the order of the ranks."""
    kind, result = kind_of(op), arrays[0]
    step = _STEPS[kind]
    with np.errstate(all="ignore"):
        for array in arrays[1:]:
            result = step(result, array)
        if kind is RedOpType.AVG:
            result = (result / np.asarray(len(arrays), dtype=result.dtype)).astype(result.dtype)
    return result
