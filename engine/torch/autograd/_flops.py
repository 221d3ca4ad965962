"""How many floating point operations a call makes, for the ops of which PyTorch's profiler says so.

The formulas are those of the textbook: a product of n x k by k x m takes 2 n k m, elementwise ops one for each result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.dispatch.op import Op
from stridescope.engine.tensor import Tensor


def _product(args: Sequence[Any], out: Tensor) -> int:
    return 2 * out._array.size * int(args[0]._array.shape[-1])


def _added_product(args: Sequence[Any], out: Tensor) -> int:
    return 2 * out._array.size * int(args[1]._array.shape[-1])


def _convolution(args: Sequence[Any], out: Tensor) -> int:
    weight = args[1]._array.shape
    return int(2 * out._array.size * math.prod(weight[1:]))


def _elementwise(args: Sequence[Any], out: Tensor) -> int:
    return int(out._array.size)


COUNTED: dict[str, Callable[[Sequence[Any], Tensor], int]] = {
    "mm": _product, "bmm": _product, "addmm": _added_product, "baddbmm": _added_product, "conv2d": _convolution,
    "add": _elementwise, "mul": _elementwise,
}  # fmt: skip


def flops_of(op: Op, args: Sequence[Any], out: Any) -> int:
    """The operations of a call that has given ``out``; 0 where nothing is known of the op."""
    count = COUNTED.get(op.schema.name)
    return count(args, out) if count is not None and isinstance(out, Tensor) else 0
