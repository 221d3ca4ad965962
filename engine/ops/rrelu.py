"""Leaky relu whose slopes are drawn anew for every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, float16, float64
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor, dense, fresh


def _sloped(self: Tensor, lower: Any, upper: Any, training: bool, generator: Any) -> tuple[Tensor, Tensor]:
    """The result and the slopes: drawn for elements that are not positive while training, the middle otherwise."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if self.dtype.category != FLOAT or (training and self.dtype is float16):
        raise not_implemented("rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu", self.dtype)
    array = resolved(self)
    if training:
        slopes = np.ones(array.shape, array.dtype)
        low = array <= 0
        count = int(low.sum())
        blank = fresh(np.empty(count, np.float64), float64, self.device)
        op_call("uniform_")(blank, lower, upper, generator)
        slopes[low] = blank._array.astype(array.dtype)
    else:
        slopes = np.where(array <= 0, array.dtype.type((lower + upper) / 2), array.dtype.type(1))
    return fresh(dense(array * slopes), self.dtype, self.device), fresh(dense(slopes), self.dtype, self.device)


_core = define(
    "_rrelu_with_noise(Tensor self, Scalar lower, Scalar upper, bool training, Generator? generator) -> "
    "(Tensor output, Tensor noise)",
    doc="Leaky relu with a slope for every element, and the slopes.",
    run=_sloped,
    grads={"self": lambda grad, self, noise, lower, upper, training: grad * noise},
    node="RreluWithNoiseBackward0",
    differentiable_outputs=(0,),
    method=False,
    function=False,
)
define(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    doc="Leaky relu with a slope drawn anew for every element while training.",
    composite=lambda self, lower, upper, training, generator: _rrelu(self, lower, upper, training, generator),
    method=False,
)


def _rrelu(self: Tensor, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    return _core.call(self, lower, upper, training, generator)[0]


def _rrelu_inplace(self: Tensor, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    if not training:
        return op_call("leaky_relu_")(self, (lower + upper) / 2)
    _, slopes = _sloped(self.detach(), lower, upper, True, generator)
    return self.mul_(slopes)


define(
    "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor(a!)",
    doc="Leaky relu with slopes drawn anew, in place.",
    composite=_rrelu_inplace,
    method=False,
)
