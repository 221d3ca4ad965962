"""Finding declared ops for formulas that use ops declared later."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.dispatch.op import DECLARED
from stridescope.engine.tensor import Tensor, canonical


@functools.cache
def op_call(qualified: str) -> Callable[..., Any]:
    """The callable of a declared op by its name with overload; for formulas that use ops declared later."""
    return next(op.call for op in DECLARED if op.qualified == qualified)


def concatenated(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """``torch.cat``."""
    return op_call("cat")(list(tensors), dim)  # type: ignore[no-any-return]


def where(condition: Tensor, chosen: Any, other: Any) -> Tensor:
    """``torch.where``."""
    return op_call("where.self")(condition, chosen, other)  # type: ignore[no-any-return]


def chosen_in_kernel(condition: Tensor, chosen: Any, other: Any) -> Tensor:
    """``where`` as a part of what PyTorch computes in one kernel: without elements, no number gives it a layout."""
    found = where(condition, chosen, other)
    if not found._array.size:
        found._array = canonical(found._array)
    return found
