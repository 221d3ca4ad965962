"""Sampling gamma, Dirichlet and binomial numbers, and the gradients of the first two by their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.device import CPU
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import float64
from stridescope.engine.kernels import gamma_draws, gamma_grads
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.random_fill import host_stream
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh


def _need_float(self: Tensor, kernel: str) -> None:
    if not self.dtype.is_floating_point or self.dtype.itemsize < 4:
        raise not_implemented(kernel, self.dtype)


def _made(array: Array, like: Tensor) -> Tensor:
    return fresh(dense(array.astype(like.dtype.np)), like.dtype, like.device)


def _by_op(values: Array) -> Array:
    """digamma in float64, by the declared op."""
    return resolved(op_call("digamma")(fresh(np.ascontiguousarray(values), float64, CPU)))


def _standard_gamma(self: Tensor, generator: Any) -> Tensor:
    _need_float(self, "gamma_cpu")
    return _made(gamma_draws.gamma(host_stream(generator, self, "_standard_gamma"), resolved(self)), self)


def _sample_dirichlet(self: Tensor, generator: Any) -> Tensor:
    _need_float(self, "dirichlet")
    return _made(gamma_draws.dirichlet(host_stream(generator, self, "_sample_dirichlet"), resolved(self)), self)


def _binomial(count: Tensor, prob: Tensor, generator: Any) -> Tensor:
    _need_float(count, "binomial_cpu")
    if count.dtype is not prob.dtype:
        raise RuntimeError("Found dtype mismatch: binomial needs count and prob of one dtype")
    both = np.broadcast_arrays(resolved(count), resolved(prob))
    return _made(gamma_draws.binomial(host_stream(generator, count, "binomial"), *both), count)


def _gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    alpha, x = (each.astype(np.float64) for each in np.broadcast_arrays(resolved(self), resolved(output)))
    return _made(gamma_grads.gamma(alpha, x, _by_op), self)


def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    drawn, shape, whole = (
        np.asarray(each, np.float64) for each in np.broadcast_arrays(*map(resolved, (x, alpha, total)))
    )
    return _made(gamma_grads.dirichlet(drawn, shape, whole, _by_op), x)


gamma_grad = define(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    doc="How a gamma number moves with its shape parameter.",
    run=_gamma_grad,
    method=False,
)
define(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    doc="A gamma number with rate one for each shape parameter.",
    run=_standard_gamma,
    grads={"self": lambda grad, self, result: grad * gamma_grad.call(self, result)},
    method=False,
)
define(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    doc="A Dirichlet vector along the last dim.",
    run=_sample_dirichlet,
    method=False,
)
define(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    doc="How a part of a Dirichlet vector moves with its parameter.",
    run=_dirichlet_grad,
    method=False,
)
define(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    doc="How many of count trials succeed.",
    run=_binomial,
    grads={"prob": lambda prob: prob.new_zeros(prob._array.shape)},
    method=False,
)
