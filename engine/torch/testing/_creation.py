"""``torch.testing.make_tensor``: random tensors for tests."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine.dtype import BOOL, INTEGER, dtype
from stridescope.engine.layout import memory_format
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.numeric_limits import finfo, iinfo

_empty, _randint, _view_as_real = (FUNCTIONS["torch"][name] for name in ("empty", "randint", "view_as_real"))


def make_tensor(
    *shape: Any,
    dtype: dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """A tensor of values drawn uniformly from [``low``, ``high``).

    Args:
        shape: its sizes, as ints or one sequence.
        dtype: its dtype; without ``low`` and ``high`` bools lie in {0, 1}, uint8 in [0, 10), other integers in
            [-9, 10), and floating-point numbers (and both parts of complex ones) in [-9, 9).
        device: where it lies.
        low: the smallest value, moved to the dtype's range.
        high: the end of the range.
        requires_grad: for floating-point and complex dtypes.
        noncontiguous: elements are two apart in the last dim.
        exclude_zero: zeros become the smallest positive value (1 for integers).
        memory_format: of the result; not together with ``noncontiguous``.

    Raises:
        ValueError: the range is empty or NaN, or the options exclude each other.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and dtype.category <= INTEGER:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    apart = noncontiguous and math.prod(sizes) > 1
    wide = (*sizes[:-1], 2 * sizes[-1]) if apart else sizes
    result = _drawn(wide, dtype, device, *_range(dtype, low, high))
    if apart:
        result = result[..., 1::2]  # with an offset, too
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if dtype.category <= INTEGER else finfo(dtype).tiny
    return result.requires_grad_(requires_grad)  # type: ignore[no-any-return]


def _range(kind: dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """The range to draw from, inside what the dtype can hold."""
    least: float
    most: float
    if kind.category == BOOL:
        least, most, low_default, high_default = 0, 2, 0, 2
    elif kind.category <= INTEGER:
        least, most = iinfo(kind).min, iinfo(kind).max + 1
        low_default, high_default = (-9, 10) if kind.is_signed else (0, 10)
    else:
        least, most, low_default, high_default = finfo(kind).min, finfo(kind).max, -9, 9
    low, high = low_default if low is None else low, high_default if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    return max(low, least), min(high, most)


def _drawn(sizes: tuple[int, ...], kind: dtype, on: Any, low: float, high: float) -> Tensor:
    if kind.category <= INTEGER:
        return _randint(math.ceil(low), math.ceil(high), sizes, dtype=kind, device=on)  # type: ignore[no-any-return]
    result: Tensor = _empty(sizes, dtype=kind, device=on)
    (_view_as_real(result) if kind.is_complex else result).uniform_(low, high)
    return result
