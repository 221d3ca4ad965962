"""Elementwise functions of one tensor."""

from __future__ import annotations

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import pointwise
from stridescope.engine.ops.arithmetic import conj

exp = define(
    "exp(Tensor self) -> Tensor",
    doc="e to the power of each element.",
    run=pointwise(np.exp, to_float=True, through=True),
    grads={"self": lambda grad, result: grad * conj(result)},
    samples=[((3, 4),)],
    inplace=True,
)

log = define(
    "log(Tensor self) -> Tensor",
    doc="The natural logarithm of each element.",
    run=pointwise(np.log, to_float=True, through=True),
    grads={"self": lambda grad, self: grad / conj(self)},
    samples=[((3, 4),)],
    inplace=True,
)

sin = define(
    "sin(Tensor self) -> Tensor",
    doc="The sine of each element.",
    run=pointwise(np.sin, to_float=True, through=True),
    grads={"self": lambda grad, self: grad * conj(self.cos())},
    samples=[((3, 4),)],
    inplace=True,
)

cos = define(
    "cos(Tensor self) -> Tensor",
    doc="The cosine of each element.",
    run=pointwise(np.cos, to_float=True, through=True),
    grads={"self": lambda grad, self: grad * -conj(self.sin())},
    samples=[((3, 4),)],
    inplace=True,
)

tanh = define(
    "tanh(Tensor self) -> Tensor",
    doc="Squeezes each element into (-1, 1).",
    run=pointwise(np.tanh, to_float=True, through=True),
    grads={"self": lambda grad, result: grad * conj(1 - result * result)},
    samples=[((3, 4),)],
    inplace=True,
)

relu = define(
    "relu(Tensor self) -> Tensor",
    doc="Zero for negative elements, the element itself otherwise.",
    run=pointwise(lambda a: np.maximum(a, a.dtype.type(0))),
    grads={"self": lambda grad, result: grad * (result > 0)},
    samples=[((3, 4),)],
    inplace=True,
)
