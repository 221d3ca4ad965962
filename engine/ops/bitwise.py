"""Bits: and, or, exclusive or, not, shifts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import LEAVES


def _logic(name: str, function: Callable[..., Any], words: str) -> None:
    run = elementwise(function, f"{name}_cpu", "bi")
    for overload, arguments, inplace in (
        ("Tensor", "Tensor self, Tensor other", True),
        ("Scalar_Tensor", "Scalar self, Tensor other", False),
        ("Scalar", "Tensor self, Scalar other", True),
    ):
        define(
            f"{name}.{overload}({arguments}) -> Tensor",
            doc=f"The bits of both, combined by {words}.",
            run=run,
            out=LEAVES,
            method=inplace,
            inplace=inplace,
        )


for _name, _function, _words in (
    ("bitwise_and", np.bitwise_and, "and"),
    ("bitwise_or", np.bitwise_or, "or"),
    ("bitwise_xor", np.bitwise_xor, "exclusive or"),
):
    _logic(_name, _function, _words)

define(
    "bitwise_not(Tensor self) -> Tensor",
    doc="All bits turned over; for bool the opposite.",
    run=elementwise(np.invert, "bitwise_not_cpu", "bi"),
    out=LEAVES,
    inplace=True,
)


def _left(a: Any, b: Any) -> Any:
    bits = np.asarray(a).dtype.itemsize * 8
    outside = np.less(b, 0) | np.greater_equal(b, bits)
    return np.where(outside, np.asarray(a).dtype.type(0), np.left_shift(a, np.where(outside, 0, b).astype(a.dtype)))


def _right(a: Any, b: Any) -> Any:
    bits = np.asarray(a).dtype.itemsize * 8
    last = bits - (1 if np.asarray(a).dtype.kind == "i" else 0)
    outside = np.less(b, 0) | np.greater_equal(b, bits)
    shift = np.where(outside, last if last < bits else 0, b).astype(np.asarray(a).dtype)
    shifted = np.right_shift(a, shift)
    return shifted if last < bits else np.where(outside, np.asarray(a).dtype.type(0), shifted)


def _shift(name: str, function: Callable[..., Any], label: str, words: str) -> None:
    run = elementwise(function, label, "i")
    for overload, arguments, inplace in (
        ("Tensor", "Tensor self, Tensor other", True),
        ("Scalar_Tensor", "Scalar self, Tensor other", False),
        ("Tensor_Scalar", "Tensor self, Scalar other", True),
    ):
        define(
            f"{name}.{overload}({arguments}) -> Tensor",
            doc=f"The bits moved to the {words}.",
            run=run,
            out=LEAVES,
            method=inplace,
            inplace=inplace,
        )


_shift("bitwise_left_shift", _left, "lshift_cpu", "left")
_shift("bitwise_right_shift", _right, "rshift_cpu", "right")
