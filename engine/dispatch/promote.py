"""Type promotion of an op's operands, as PyTorch's TensorIterator does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.dtype import (
    BOOL,
    PYTHON_TYPES,
    category_result,
    default_float,
    dtype,
    of_number,
    promote_types,
)
from stridescope.engine.events import DtypePromoted, journal
from stridescope.engine.tensor import Tensor


def result_type(*operands: Any) -> dtype:
    """``torch.result_type`` of tensors and numbers."""
    dimensioned: dtype | None = None
    zero_dim: dtype | None = None
    number: dtype | None = None
    for operand in operands:
        if isinstance(operand, Tensor):
            if operand._array.ndim:
                dimensioned = operand.dtype if dimensioned is None else promote_types(dimensioned, operand.dtype)
            else:
                zero_dim = operand.dtype if zero_dim is None else promote_types(zero_dim, operand.dtype)
        elif operand is not None:
            kind = of_number(operand)
            number = kind if number is None else promote_types(number, kind)
    result = category_result(dimensioned, zero_dim, number)
    if result is None:
        raise TypeError("result_type needs a tensor or a number")
    return result


def common(operands: Sequence[Any], to_float: bool = False) -> dtype:
    """The dtype in which these operands are computed; integers become the default float when ``to_float``."""
    first = operands[0]
    if all(isinstance(o, Tensor) and o.dtype is first.dtype for o in operands):
        result: dtype = first.dtype
    elif (
        isinstance(first, Tensor)
        and len(operands) == 2
        and PYTHON_TYPES.get(type(operands[1]), 9) <= first.dtype.category
    ):
        result = first.dtype
    else:
        result = result_type(*operands)
        _announce(operands, result)
    if to_float and result.category <= BOOL + 1:
        result = default_float()
        _announce(operands, result)
    return result


def _announce(operands: Sequence[Any], result: dtype) -> None:
    emit = journal.emit
    if emit is not None:
        kinds = tuple(o.dtype.name if isinstance(o, Tensor) else type(o).__name__ for o in operands)
        if any(kind != result.name for kind in kinds):
            emit((DtypePromoted.code, kinds, result.name))
