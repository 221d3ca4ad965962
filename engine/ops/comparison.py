"""Comparisons and logic: results are bool and carry no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import pointwise
from stridescope.engine.dtype import bool_


def _compare(name: str, function: Callable[..., Any], words: str) -> None:
    run = pointwise(function, gives=bool_)
    for overload, kind in (("Scalar", "Scalar"), ("Tensor", "Tensor")):
        define(
            f"{name}.{overload}(Tensor self, {kind} other) -> Tensor",
            doc=f"Whether each element is {words} other's.",
            run=run,
            samples=[((3, 4), (4,))] if kind == "Tensor" else [((3, 4), 0.5)],
            inplace=True,
        )


for _name, _function, _words in (
    ("eq", np.equal, "equal to"),
    ("ne", np.not_equal, "not equal to"),
    ("lt", np.less, "less than"),
    ("le", np.less_equal, "at most"),
    ("gt", np.greater, "greater than"),
    ("ge", np.greater_equal, "at least"),
):
    _compare(_name, _function, _words)

for _name, _function, _words in (
    ("logical_and", np.logical_and, "and"),
    ("logical_or", np.logical_or, "or"),
    ("logical_xor", np.logical_xor, "exclusive or"),
):
    define(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        doc=f"Logical {_words}; every value but zero is true.",
        run=pointwise(_function, gives=bool_),
        samples=[((3, 4), (4,))],
        inplace=True,
    )

logical_not = define(
    "logical_not(Tensor self) -> Tensor",
    doc="Whether each element is zero.",
    run=pointwise(np.logical_not, gives=bool_),
    samples=[((3, 4),)],
    inplace=True,
)
