"""The larger, the smaller, and what lies between: maximum, minimum, fmax, fmin, clamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise, not_implemented
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.promote import common
from stridescope.engine.dispatch.result_strides import tensor_strides
from stridescope.engine.dispatch.run import Guarded, Pointwise, Run, into
from stridescope.engine.dtype import FLOAT, can_cast, cpp_name, float64, scalar_name
from stridescope.engine.ops.choice import where
from stridescope.engine.ops.number_range import check_number
from stridescope.engine.tensor import Tensor

_HALF = np.dtype(np.float16)
CLAMP_COMPLEX = (NotImplementedError, "clamp is not supported for complex types")


def larger(a: Any, b: Any) -> Any:
    """The larger of each pair, the second of equals: NumPy's choice between zeros but for float16."""
    return np.maximum(b, a) if b.dtype is _HALF else np.maximum(a, b)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of each pair, the second of equals."""
    return np.minimum(b, a) if b.dtype is _HALF else np.minimum(a, b)


def _pair(name: str, function: Callable[..., Any], doc: str, grads: dict[str, Callable[..., Any]]) -> None:
    define(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        doc=doc,
        run=elementwise(
            function,
            name,
            refuse={"c": (RuntimeError, f"{name} not implemented for complex tensors.")},
            through=False,
        ),
        grads=grads,
        samples=[((3, 4), (4,))],
    )


_pair("maximum", lambda a, b: larger(b, a), "The larger of each pair; NaN wins.", {
    "self": lambda grad, self, other: _shared(grad, self == other, self < other),
    "other": lambda grad, self, other: _shared(grad, self == other, self > other),
})  # fmt: skip
_pair("minimum", lambda a, b: smaller(b, a), "The smaller of each pair; NaN wins.", {
    "self": lambda grad, self, other: _shared(grad, self == other, self > other),
    "other": lambda grad, self, other: _shared(grad, self == other, self < other),
})  # fmt: skip
_pair("fmax", np.fmax, "The larger of each pair; NaN loses.", {
    "self": lambda grad, self, other: grad.masked_fill((self >= other).logical_or(other.isnan()).logical_not(), 0),
    "other": lambda grad, self, other: grad.masked_fill((self >= other).logical_or(other.isnan()), 0),
})  # fmt: skip
_pair("fmin", np.fmin, "The smaller of each pair; NaN loses.", {
    "self": lambda grad, self, other: grad.masked_fill((self <= other).logical_or(other.isnan()).logical_not(), 0),
    "other": lambda grad, self, other: grad.masked_fill((self <= other).logical_or(other.isnan()), 0),
})  # fmt: skip


def _shared(grad: Tensor, equal: Tensor, lost: Tensor) -> Tensor:
    """The whole gradient for the winner, half of it for each of two equals."""
    return where.call(equal, grad / 2, grad).masked_fill_(lost, 0)  # type: ignore[no-any-return]


# ---- clamp -------------------------------------------------------------------------------------------------------


def _clamp(a: Any, low: Any, high: Any) -> Any:
    return smaller(high, larger(low, a))


def _limited(function: Callable[..., Any], label: str, takes: str = "if") -> Pointwise:
    return elementwise(function, label, takes, {"c": CLAMP_COMPLEX}, through=False, strides=tensor_strides)


_both = _limited(_clamp, "clamp_cpu")
_both_numbers = _limited(_clamp, "clamp_scalar_cpu")
_low = _limited(lambda a, low: larger(low, a), "clamp_min_cpu", "bif")
_high = _limited(lambda a, high: smaller(high, a), "clamp_max_cpu", "bif")
_low_number = _limited(lambda a, low: larger(low, a), "clamp_min_scalar_cpu")
_high_number = _limited(lambda a, high: smaller(high, a), "clamp_max_scalar_cpu")


def _check_limits(self: Tensor, min: Any, max: Any) -> None:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    limits = [limit for limit in (min, max) if isinstance(limit, Tensor)]
    if limits and not self.dtype.is_complex and (kind := common((self, *limits))).is_complex:
        raise not_implemented(
            "clamp_cpu" if len(limits) == 2 else "maximum_cpu" if max is None else "minimum_cpu", kind
        )
    _check_clamp(self, min, max)


def _check_clamp(self: Tensor, *limits: Any) -> None:
    """Refuse complex numbers, and limits that the dtype cannot hold; floats stay what they are whatever the limits."""
    floating = self.dtype.category == FLOAT
    kind = self.dtype if floating and not any(isinstance(v, Tensor) for v in limits) else common((self, *limits))
    if kind.is_complex:
        raise CLAMP_COMPLEX[0](CLAMP_COMPLEX[1])
    for limit in limits:
        if isinstance(limit, complex):
            check_number(limit, float64)
        if limit is not None and not isinstance(limit, Tensor):
            check_number(limit, kind)


def _clamp_run(self: Tensor, min: Any, max: Any) -> Tensor:
    min, max = (v.real if isinstance(v, complex) else v for v in (min, max))
    if max is None:
        return (_low if isinstance(min, Tensor) else _low_number)(self, min)
    if min is None:
        return (_high if isinstance(max, Tensor) else _high_number)(self, max)
    if isinstance(min, Tensor):
        return _both(self, min, max)
    if min != min or max != max:
        return _both_numbers(self, float("nan"), float("nan"))
    return _both_numbers(self, min, max)


_clamped = Guarded(_check_limits, _clamp_run)


def _clamp_grad(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    if min is None and max is None:
        return grad
    if max is None:
        kept = self >= min
    elif min is None:
        kept = self <= max
    else:
        kept = (self >= min).logical_and_(self <= max)
    return where.call(kept, grad, 0)  # type: ignore[no-any-return]


def _limit_grads(grad: Tensor, self: Tensor, min: Any, max: Any, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    low = high = None
    if min is not None and needs[0]:
        below = self < min
        if max is not None:
            below = below.logical_and(min < max)
        low = where.call(below, grad, 0)
    if max is not None and needs[1]:
        above = self > max
        if min is not None:
            above = above.logical_or(max < min)
        high = where.call(above, grad, 0)
    return low, high


clamp_tensor = define(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    doc="Cuts off what lies below min or above max, each element by limits of its own.",
    run=_clamped,
    out=Out(casts=lambda *_: True),
    node="ClampBackward0",
    grads={"self": _clamp_grad, "min,max": _limit_grads},
    samples=[((3, 4), (4,), (4,))],
    inplace=True,
)


def _check_one_sided(self: Tensor, limit: Any) -> None:
    if isinstance(limit, complex):
        raise CLAMP_COMPLEX[0](CLAMP_COMPLEX[1])
    _check_clamp(self, limit)


def _by_numbers(schema: str, doc: str, run: Guarded, node: str, grad: Callable[..., Any], *sample: float) -> Op:
    """Declare a clamp between numbers, and its in-place form, whose error names dtypes as C++ does."""
    written = into(run)

    def write(target: Tensor, *limits: Any) -> Tensor:
        kind = common((target, *limits))
        if len(limits) == 1 or target.dtype.category == FLOAT:  # clamp_ looks at whole numbers' dtype first
            run.admit(target, *limits)
        if not can_cast(kind, target.dtype):
            raise RuntimeError(
                f"result type {scalar_name(kind)} can't be cast to the desired output type {cpp_name(target.dtype)}"
            )
        return written(target, *limits)  # type: ignore[no-any-return]

    parts: dict[str, Any] = {"node": node, "grads": {"self": grad}, "samples": [((3, 4), *sample)]}
    op = define(f"{schema} -> Tensor", doc=doc, run=run, **parts)
    in_place = schema.replace("(Tensor self", "_(Tensor(a!) self", 1)
    define(f"{in_place} -> Tensor(a!)", doc=f"{doc} Written in place.", run=write, **parts)
    return op


clamp = _by_numbers(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None)",
    "Cuts off what lies below min or above max.",
    _clamped,
    "ClampBackward1",
    _clamp_grad,
    -0.5,
    0.5,
)


def _one_sided(name: str, argument: str, run: Run, pairs: Run, doc: str) -> None:
    """clamp_min and clamp_max, with a number and with a tensor."""
    self_grad: Callable[..., Any]
    limit_grad: Callable[..., Any]
    if argument == "min":
        self_grad = lambda grad, self, min: where.call(self >= min, grad, 0)  # noqa: E731
        limit_grad = lambda grad, self, min: where.call(self < min, grad, 0)  # noqa: E731
    else:
        self_grad = lambda grad, self, max: where.call(self <= max, grad, 0)  # noqa: E731
        limit_grad = lambda grad, self, max: where.call(self > max, grad, 0)  # noqa: E731
    node = "".join(word.capitalize() for word in name.split("_"))
    define(
        f"{name}.Tensor(Tensor self, Tensor {argument}) -> Tensor",
        doc=doc,
        run=pairs,
        out=Out(casts=lambda *_: True),
        node=f"{node}Backward1",
        grads={"self": self_grad, argument: limit_grad},
        samples=[((3, 4), (4,))],
        inplace=True,
    )
    checked = Guarded(_check_one_sided, run)
    _by_numbers(f"{name}(Tensor self, Scalar {argument})", doc, checked, f"{node}Backward0", self_grad, 0.1)


_one_sided(
    "clamp_min",
    "min",
    _low_number,
    elementwise(lambda a, b: larger(b, a), "maximum_cpu", "bif", through=False),
    "Cuts off what lies below min.",
)
_one_sided(
    "clamp_max",
    "max",
    _high_number,
    elementwise(lambda a, b: smaller(b, a), "minimum_cpu", "bif", through=False),
    "Cuts off what lies above max.",
)
