"""What the ``reduction`` argument of losses means, and the arguments that stood in its place long ago."""

from __future__ import annotations

from stridescope.engine.warn import warn

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number that the ops take; raises ValueError for other words."""
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The word for the old ``size_average`` and ``reduce``."""
    averaged, reduced = size_average in (None, True), reduce in (None, True)
    word = ("mean" if averaged else "sum") if reduced else "none"
    if emit_warning:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{word}' instead.")
    return word


def chosen(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """``reduction``, unless one of the old arguments is given."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)
