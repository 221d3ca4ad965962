"""Activation functions of ``torch.nn.functional``; relu, sigmoid and tanh stand with the elementwise functions.

The formulas are PyTorch's (``aten/src/ATen/native/Activation.cpp``); half precisions are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise, not_implemented
from stridescope.engine.dispatch.op import define, node_name
from stridescope.engine.dispatch.result_strides import like_strides, row_major, tensor_strides
from stridescope.engine.dispatch.run import Strides, into
from stridescope.engine.dtype import FLOAT, FROM_NUMPY, scalar_name
from stridescope.engine.layout import wrap_dim
from stridescope.engine.ops.grad_layouts import by_grad
from stridescope.engine.ops.lanes import in_float, or_nan_in_lanes
from stridescope.engine.ops.lookup import chosen_in_kernel, concatenated, op_call
from stridescope.engine.ops.number_range import largest, number_of
from stridescope.engine.tensor import Tensor

NAMESPACE = "torch._C._nn"
FLOATS = "f"
_SQRT_HALF = math.sqrt(0.5)
_GELU_BETA = math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715  # the constant of the tanh approximation


def _activation(
    schema: str,
    doc: str,
    function: Callable[..., Any],
    grad: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    *samples: tuple[Any, ...],
    label: str | None = None,
    takes: str = FLOATS,
    node: str | None = None,
    inplace: bool = True,
    namespace: str = NAMESPACE,
    by_result: Callable[..., Any] | None = None,
    refuse: Mapping[str, tuple[type[Exception], str]] | None = None,
    strides: Strides | None = None,
    method: bool = False,
    through: bool = True,
) -> None:
    """Declare an activation; where its in-place form has another gradient, ``by_result`` is that."""
    name = schema.split("(")[0]
    op = define(
        f"{schema} -> Tensor",
        doc=doc,
        run=elementwise(function, label or f"{name}_cpu", takes, refuse, through=through, count=1, strides=strides),
        grads=grad if isinstance(grad, Mapping) else {"self": grad},
        node=node,
        samples=samples or (((3, 4),),),
        method=method,
        namespace=namespace,
        inplace=inplace and by_result is None,
    )
    if by_result is not None:
        define(
            schema.replace(name, f"{name}_", 1).replace("Tensor self", "Tensor(a!) self", 1) + " -> Tensor(a!)",
            doc=f"{doc} Written in place.",
            run=into(op.run, lenient=name == "threshold"),
            grads={"self": by_result},
            node=node_name(name).replace("Backward0", "Backward1"),
            method=False,
            namespace=namespace,
        )


def _inside(grad: Tensor, kept: Tensor) -> Tensor:
    """The gradient where the element counts; NaN does not."""
    return chosen_in_kernel(kept, grad, 0)


def _without(grad: Tensor, self: Tensor, dropped: Tensor) -> Tensor:
    """The gradient, and zero where the element does not count; NaN does, where it is read alone."""
    return by_grad(chosen_in_kernel(or_nan_in_lanes(dropped, grad, self), 0, grad), grad, self)


def _sigmoid(a: Any) -> Any:
    from scipy import special  # its import costs more than the rest of the engine's

    return special.expit(a)


def _leaky(a: Any, slope: Any) -> Any:
    return np.where(a > 0, a, a * a.dtype.type(slope))


_activation(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01)",
    "The element itself where positive, else a small share of it.",
    _leaky,
    lambda grad, self, negative_slope: chosen_in_kernel(self > 0, grad, grad * negative_slope),
    ((3, 4), 0.1),
    by_result=lambda grad, result, negative_slope: chosen_in_kernel(result > 0, grad, grad * negative_slope),
)


def _elu(a: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    number = a.dtype.type
    negative = np.expm1(np.minimum(a, 0) * number(input_scale)) * number(alpha * scale)
    return np.where(a > 0, a * number(scale), negative)


def _elu_grad(grad: Tensor, self: Tensor, alpha: Any, scale: Any, input_scale: Any) -> Tensor:
    low = grad * (input_scale * alpha * scale) * (self * input_scale).exp()
    negative = or_nan_in_lanes(self <= 0, grad, self)
    return by_grad(chosen_in_kernel(negative, low, grad * scale), grad, self)


def _elu_grad_by_result(grad: Tensor, result: Tensor, alpha: Any, scale: Any, input_scale: Any) -> Tensor:
    negative = or_nan_in_lanes(result <= 0, grad, result)
    low = grad * input_scale * (result + alpha * scale)
    return by_grad(chosen_in_kernel(negative, low, grad * scale), grad, result)


_activation(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)",
    "The element where positive, else an exponential that levels off at -alpha.",
    _elu,
    _elu_grad,
    ((3, 4), 1.5),
    by_result=lambda grad, result, alpha, scale, input_scale: _elu_grad_by_result(
        grad, result, alpha, scale, input_scale
    ),
)


# Abramowitz and Stegun 7.1.26, which PyTorch's vectorised gelu uses in single precision: good to seven digits.
_ERF_REACH = 0.3275911
_ERF_TERMS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def _erf(x: Any) -> Any:
    if x.dtype != np.float32:
        from scipy import special

        return special.erf(x)
    step = np.float32(1) / (np.float32(_ERF_REACH) * np.abs(x) + np.float32(1))
    total = np.float32(0)
    for term in _ERF_TERMS:
        total = total * step + np.float32(term)
    return np.copysign(np.float32(1) - total * step * np.exp(-x * x), x)


def _gelu(a: Any, approximate: str) -> Any:
    number = a.dtype.type
    if approximate == "none":
        return number(0.5) * a * (1 + _erf(a * number(_SQRT_HALF)))
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    inner = number(_GELU_BETA) * (a + number(_GELU_CUBIC) * a * a * a)
    return number(0.5) * a * (1 + np.tanh(inner))


def _gelu_slope(grad: Tensor, self: Tensor, approximate: str) -> Tensor:
    if approximate == "none":
        cdf = 0.5 * (1 + (self * _SQRT_HALF).erf())
        density = (self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return grad * (cdf + self * density)  # type: ignore[no-any-return]
    inner = _GELU_BETA * (self + _GELU_CUBIC * self * self * self)
    wave = inner.tanh()
    slope = _GELU_BETA * (1 + 3 * _GELU_CUBIC * self * self)
    return grad * (0.5 * (1 + wave) + 0.5 * self * (1 - wave * wave) * slope)  # type: ignore[no-any-return]


_activation(
    "gelu(Tensor self, *, str approximate='none')",
    "Each element times the share of a normal distribution below it.",
    _gelu,
    lambda grad, self, approximate: in_float(lambda grad, self: _gelu_slope(grad, self, approximate), grad, self),
    ((3, 4),),
    label="GeluKernelImpl",
)


def _silu_slope(grad: Tensor, self: Tensor) -> Tensor:
    gate = self.sigmoid()
    return grad * gate * (1 + self * (1 - gate))  # type: ignore[no-any-return]


_activation(
    "silu(Tensor self)",
    "Each element times its sigmoid.",
    lambda a: a * _sigmoid(a) if a.dtype.kind != "c" else a / (1 + np.exp(-a)),
    lambda grad, self: in_float(_silu_slope, grad, self),
    takes="fc",
)
_activation(
    "mish(Tensor self)",
    "Each element times the tanh of its softplus.",
    lambda a: a * np.tanh(np.logaddexp(a, a.dtype.type(0))),
    lambda grad, self: in_float(_mish_slope, grad, self),
)


def _mish_slope(grad: Tensor, self: Tensor) -> Tensor:
    wave = self.exp().log1p().tanh()
    return grad * (wave + self * self.sigmoid() * (1 - wave * wave))  # type: ignore[no-any-return]


def _softplus(a: Any, beta: Any, threshold: Any) -> Any:
    scaled = a * a.dtype.type(beta)
    return np.where(scaled > threshold, a, np.log1p(np.exp(scaled)) / a.dtype.type(beta))


_activation(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20)",
    "The smooth form of relu; linear above the threshold.",
    _softplus,
    lambda grad, self, beta, threshold: by_grad(
        chosen_in_kernel(self * beta > threshold, grad, grad * (self * beta).sigmoid()), grad, self
    ),
    inplace=False,
)


def _held(a: Any, low: Any, high: Any) -> Any:
    kind = FROM_NUMPY[a.dtype]
    if a.dtype.kind == "u" and (int(low) < 0 or int(high) < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if a.dtype.kind == "u":
        low, high = int(low), int(high)
    return np.clip(a, number_of(low, kind), number_of(high, kind))


_activation(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)",
    "Each element, held between two bounds.",
    _held,
    lambda grad, self, min_val, max_val: _without(grad, self, (self <= min_val).logical_or(self >= max_val)),
    takes="if",
    strides=like_strides,
    refuse={
        "b": (RuntimeError, "Bool inputs not supported for hardtanh"),
        "c": (NotImplementedError, "clamp is not supported for complex types"),
    },
)
_SIXTH = float(np.float32(1 / 6))  # in single precision for doubles, too, as in PyTorch's kernel


_activation(
    "hardsigmoid(Tensor self)",
    "A sigmoid of three straight lines.",
    lambda a: np.clip(a + a.dtype.type(3), a.dtype.type(0), a.dtype.type(6)) / a.dtype.type(6),
    lambda grad, self: by_grad(_inside(grad * _SIXTH, (self > -3).logical_and(self < 3)), grad, self),
)
_activation(
    "hardswish(Tensor self)",
    "Each element times its hard sigmoid.",
    lambda a: a * np.clip(a + a.dtype.type(3), a.dtype.type(0), a.dtype.type(6)) / a.dtype.type(6),
    lambda grad, self: _hardswish_grad(grad, self),
)


def _hardswish_grad(grad: Tensor, self: Tensor) -> Tensor:
    curved = or_nan_in_lanes(self < 3, grad, self)
    inside = chosen_in_kernel(curved, in_float(lambda grad, self: grad * (self / 3 + 0.5), grad, self), grad)
    return by_grad(chosen_in_kernel(self <= -3, 0, inside), grad, self)


def _above(a: Any, threshold: Any, value: Any) -> Any:
    """Half precision is compared as float32 with a threshold that is not rounded; the value is."""
    kind = FROM_NUMPY[a.dtype]
    wide = a.astype(np.float32) if kind.itemsize == 2 and kind.is_floating_point else a
    return np.where(wide <= number_of(threshold, FROM_NUMPY[wide.dtype]), number_of(value, kind), a)


_activation(
    "threshold(Tensor self, Scalar threshold, Scalar value)",
    "Each element above the threshold, a value elsewhere.",
    _above,
    lambda grad, self, threshold: chosen_in_kernel(self <= threshold, 0, grad),
    ((3, 4), 0.1, 20.0),
    takes="if",
    namespace="torch",
    through=False,
    by_result=lambda grad, self, threshold: chosen_in_kernel(self <= threshold, 0, grad),
)


def _outside(grad: Tensor, self: Tensor, lambd: Any) -> Tensor:
    return _without(grad, self, (self >= -lambd).logical_and(self <= lambd))


def _shrink(a: Any, lambd: Any) -> Any:
    limit = a.dtype.type(lambd)
    if lambd < 0:
        kind = FROM_NUMPY[a.dtype]
        raise RuntimeError(
            f"lambda must be in range [0, {largest(kind):g}] for input dtype {scalar_name(kind)}, but found {lambd:g}"
        )
    return np.where(a > limit, a - limit, np.where(a < -limit, a + limit, a * 0))


_activation(
    "softshrink(Tensor self, Scalar lambd=0.5)",
    "Each element moved towards zero, and zero near it.",
    _shrink,
    lambda grad, self, lambd: _outside(grad, self, lambd),
    label="softshrink_check",
    inplace=False,
)
_activation(
    "hardshrink(Tensor self, Scalar lambd=0.5)",
    "Each element, and zero near zero.",
    lambda a, lambd: np.where((a >= -lambd) & (a <= lambd), a.dtype.type(0), a),
    lambda grad, self, lambd: _outside(grad, self, lambd),
    namespace="torch",
    inplace=False,
    method=True,
)
_log_sigmoid_kernel = elementwise(
    lambda a: np.minimum(a, 0) - np.log1p(np.exp(-np.abs(a))), "log_sigmoid_cpu", FLOATS, strides=row_major
)
_decay_kernel = elementwise(lambda a: np.exp(-np.abs(a)), "log_sigmoid_cpu", FLOATS, strides=row_major)
_log_sigmoid_forward = define(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    doc="The logarithm of the sigmoid, and the exponential that its gradient takes.",
    run=lambda self: (_log_sigmoid_kernel(self), _decay_kernel(self)),
    grads={
        "self": lambda grad, self, buffer: (grad.contiguous() if 0 in grad._array.strides else grad) * (-self).sigmoid()
    },
    node="LogSigmoidBackward0",
    differentiable_outputs=(0,),
    samples=[((3, 4),)],
    method=False,
    namespace=NAMESPACE,
)
define(
    "log_sigmoid(Tensor self) -> Tensor",
    doc="The logarithm of the sigmoid.",
    composite=lambda self: _log_sigmoid_forward.call(self)[0],
    samples=[((3, 4),)],
    method=False,
    namespace=NAMESPACE,
)


def _glu(self: Tensor, dim: int) -> Tensor:
    if not self.dim():
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, self.dim())
    size = self._array.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    if self.dtype.category != FLOAT:
        raise not_implemented("glu_cpu", self.dtype)

    return _gated(self.narrow(dim, 0, size // 2), self.narrow(dim, size // 2, size // 2))


_gated = elementwise(lambda a, b: np.multiply(a, _sigmoid(b)), "glu_cpu", "f", strides=tensor_strides)


def _glu_grad(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    first, second = self.chunk(2, dim)
    gate = second.sigmoid()
    slope = in_float(_gate_slope, grad, first, gate)
    return concatenated([grad * gate, slope], dim)


def _gate_slope(grad: Tensor, first: Tensor, gate: Tensor) -> Tensor:
    return grad * first * gate * (1 - gate)  # type: ignore[no-any-return]


define(
    "glu(Tensor self, int dim=-1) -> Tensor",
    doc="The first half of a dim, gated by the sigmoid of the second half.",
    run=_glu,
    grads={"self": _glu_grad},
    samples=[((3, 4),)],
    method=False,
    namespace=NAMESPACE,
)


def _prelu_weight(weight: Tensor, self: Tensor) -> Tensor:
    if weight.dim() == self.dim():
        return weight
    shape = [1] * self.dim()
    if self.dim() > 1:
        shape[1] = weight.numel()
    return weight.reshape(shape if self.dim() else ())  # type: ignore[no-any-return]


def _prelu(self: Tensor, weight: Tensor) -> Tensor:
    if self.dtype is not weight.dtype:
        kinds = f"{scalar_name(self.dtype)} and {scalar_name(weight.dtype)}"
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kinds}")
    if weight.numel() != 1:
        if not self.dim():
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self._array.shape[1] if self.dim() > 1 else 1
        if channels != weight.numel():
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{weight.numel()} and channel size = {channels}.")  # fmt: skip
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    return prelu_kernel.call(self, _prelu_weight(weight, self))  # type: ignore[no-any-return]


prelu_kernel = define(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    doc="The element where positive, else its share by a learned weight.",
    run=elementwise(lambda a, w: np.where(a > 0, a, w * a), "prelu_cpu", FLOATS, strides=like_strides),
    grads={
        "self,weight": lambda grad, self, weight: (
            chosen_in_kernel(self > 0, grad, grad * weight),
            chosen_in_kernel(self > 0, grad.new_zeros(()), grad * self),
        )
    },
    samples=[((3, 4), (1, 4))],
    method=False,
    function=False,
)
define(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    doc="Leaky relu whose slope is learned, one for all or one per channel.",
    composite=_prelu,
    samples=[((3, 4), (4,))],
)


# ---- compositions ------------------------------------------------------------------------------------------------

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _celu(a: Any, alpha: Any) -> Any:
    number = a.dtype.type
    return np.where(a > 0, a, np.expm1(np.minimum(a, 0) / number(alpha)) * number(alpha))


def _celu_grad(grad: Tensor, self: Tensor, alpha: Any) -> Tensor:
    negative = or_nan_in_lanes(self <= 0, grad, self)
    return by_grad(chosen_in_kernel(negative, grad * (self / alpha).exp(), grad), grad, self)


def _celu_grad_by_result(grad: Tensor, result: Tensor, alpha: Any) -> Tensor:
    negative = or_nan_in_lanes(result <= 0, grad, result)
    return by_grad(chosen_in_kernel(negative, grad * (result + alpha) / alpha, grad), grad, result)


_celu_kernel = elementwise(_celu, "elu_cpu", FLOATS, count=1)


def _run_celu(self: Tensor, alpha: Any) -> Tensor:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _celu_kernel(self, alpha)


define(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    doc="The element where positive, else an exponential with a continuous slope.",
    run=_run_celu,
    grads={"self": _celu_grad},
    samples=[((3, 4), 1.5)],
    method=False,
)
define(
    "celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)",
    doc="celu, written in place.",
    run=into(_run_celu),
    grads={"self": _celu_grad_by_result},
    node="CeluBackward1",
    method=False,
)
for _mark, _alias in (("", ""), ("_", "(a!)")):
    define(
        f"selu{_mark}(Tensor{_alias} self) -> Tensor{_alias}",
        doc="elu with the numbers that keep mean and variance.",
        composite=lambda self, mark=_mark: op_call(f"elu{mark}")(self, SELU_ALPHA, SELU_SCALE),
        method=False,
    )
    define(
        f"relu6{_mark}(Tensor{_alias} self) -> Tensor{_alias}",
        doc="Each element, held between 0 and 6.",
        composite=lambda self, mark=_mark: op_call(f"hardtanh{mark}")(self, 0, 6),
        method=False,
        namespace=NAMESPACE,
    )
