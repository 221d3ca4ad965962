"""Random tensors: rand, randn, randint, randperm, and the in-place distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.leaf import require_grad
from stridescope.engine.device import device
from stridescope.engine.devices.cuda_generator import CudaGenerator
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import FACTORY
from stridescope.engine.dispatch.overlap import is_lazy, refuse_internal_overlap
from stridescope.engine.dispatch.run import on_copy
from stridescope.engine.dtype import BOOL, COMPLEX, INTEGER, cpp_name, default_float, dtype, int64
from stridescope.engine.kernels import draws
from stridescope.engine.ops import random_fill
from stridescope.engine.ops.copying import strides_of
from stridescope.engine.ops.creation import checked, made, place_of, zeros_like
from stridescope.engine.ops.generator import source_for
from stridescope.engine.ops.number_range import check_number
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn

_TAIL = (
    "*, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=False, bool? requires_grad=False"
)
_LIKE = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, "
    "bool? requires_grad=False, MemoryFormat? memory_format=None"
)
Filler = Callable[[Tensor], Tensor]


def _new(size: Sequence[int], kind: dtype, on: device | None, grad: bool | None, filler: Filler) -> Tensor:
    tensor = made(np.zeros(checked(size), kind.np), kind, on, False)
    filler(tensor)
    if grad:
        require_grad(tensor)
    return tensor


def _new_like(
    self: Tensor, kind: dtype | None, on: device | None, grad: bool | None, asked: Any, filler: Filler
) -> Tensor:
    kind = kind or self.dtype
    strides = tuple(s * kind.itemsize for s in strides_of(self._array.shape, self.strides, asked))
    memory = np.zeros(self._array.size, kind.np)
    array = np.ndarray(self._array.shape, kind.np, memory if memory.size else bytearray(), 0, strides)
    tensor = fresh(array, kind, place_of(on) if on else self.device)
    filler(tensor)
    if grad:
        require_grad(tensor)
    return tensor


def _uniform(generator: Any = None) -> Filler:
    return lambda tensor: random_fill.uniform(tensor, 0.0, 1.0, generator)


def _normal(generator: Any = None) -> Filler:
    return lambda tensor: random_fill.normal(tensor, 0.0, 1.0, generator)


for _name, _filler, _doc in (("rand", _uniform, "Uniform numbers in [0, 1)."), ("randn", _normal, "Normal numbers.")):
    define(
        f"{_name}(SymInt[] size, {_TAIL}) -> Tensor",
        doc=_doc,
        run=lambda size, generator, dtype, layout, device, pin, grad, filler=_filler: _new(
            size, dtype or default_float(), device, grad, filler(generator)
        ),
        out=FACTORY,
    )
    define(
        f"{_name}_like(Tensor self, {_LIKE}) -> Tensor",
        doc=f"{_doc[:-1]}, in the shape, dtype and layout of another tensor.",
        run=lambda self, dtype, layout, device, pin, grad, memory_format, filler=_filler: _new_like(
            self, dtype, device, grad, memory_format, filler()
        ),
        method=False,
    )


# ---- integers --------------------------------------------------------------------------------------------------------

_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "int64_t",
            "bool": "bool"}  # fmt: skip


def _check_bounds(low: int, high: int, kind: dtype) -> None:
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )  # fmt: skip
    if kind.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    for name, value in (("from", low), ("to - 1", high - 1)):
        if kind.is_floating_point:
            _warn_of_precision(name, value, kind)
            continue
        least, most = (0, 1) if kind.category == 0 else (np.iinfo(kind.np).min, np.iinfo(kind.np).max)
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES.get(kind.name, kind.name)}")


def _warn_of_precision(name: str, value: int, kind: dtype) -> None:
    digits = _DIGITS[kind.name]
    if abs(value) > 1 << digits:
        c_name = {"float32": "float", "float64": "double"}.get(kind.name, kind.name)
        warn(
            internal(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {c_name} can "
                "support discrete uniform distribution only within this range. This warning will become an error in "
                "version 1.7 release, please fix the code in advance",
                "aten/src/ATen/native/DistributionTemplates.h:111",
            )
        )


def _between(low: int, high: int, generator: Any = None) -> Filler:
    def filler(tensor: Tensor) -> Tensor:
        _check_bounds(low, high, tensor.dtype)
        return random_fill.integers(tensor, low, high, generator)

    return filler


define(
    f"randint(SymInt high, SymInt[] size, {_TAIL}) -> Tensor",
    doc="Integers from 0 up to high.",
    run=lambda high, size, generator, dtype, layout, device, pin, grad: _new(
        size, dtype or int64, device, grad, _between(0, high, generator)
    ),
    out=FACTORY,
)
define(
    f"randint.low(SymInt low, SymInt high, SymInt[] size, {_TAIL}) -> Tensor",
    doc="Integers from low up to high.",
    run=lambda low, high, size, generator, dtype, layout, device, pin, grad: _new(
        size, dtype or int64, device, grad, _between(low, high, generator)
    ),
    out=FACTORY,
)
define(
    f"randint_like(Tensor self, SymInt high, {_LIKE}) -> Tensor",
    doc="Integers from 0 up to high, in the shape of another tensor.",
    run=lambda self, high, dtype, layout, device, pin, grad, memory_format: _new_like(
        self, dtype, device, grad, memory_format, _between(0, high)
    ),
    method=False,
)
define(
    f"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, {_LIKE}) -> Tensor",
    doc="Integers from low up to high, in the shape of another tensor.",
    run=lambda self, low, high, dtype, layout, device, pin, grad, memory_format: _new_like(
        self, dtype, device, grad, memory_format, _between(low, high)
    ),
    method=False,
)


def _randperm(n: int, generator: Any, kind: dtype, on: device | None, grad: bool | None) -> Tensor:
    checked((n,))
    if kind.category in (BOOL, COMPLEX):
        raise not_implemented("randperm", kind)
    if kind.category == INTEGER:
        check_number(n, kind)
    tensor = made(np.zeros(n, kind.np), kind, on, grad)
    if n:
        source = source_for(generator, tensor.device)
        order = source.permutation(n) if isinstance(source, CudaGenerator) else draws.permutation(source, n)
        tensor._array[...] = order.astype(kind.np)
    return tensor


define(
    "randperm(SymInt n, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor",
    doc="The numbers below n in random order.",
    run=lambda n, generator, dtype, layout, device, pin, grad: _randperm(n, generator, dtype or int64, device, grad),
    out=FACTORY,
)


# ---- in place --------------------------------------------------------------------------------------------------------


def _zeros(grad: Tensor) -> Tensor:
    return zeros_like.call(grad)  # type: ignore[no-any-return]


def _in_place(schema: str, doc: str, node: str, run: Callable[..., Tensor]) -> Any:
    def checked_run(self: Tensor, *args: Any) -> Tensor:
        if is_lazy(self):
            return on_copy(self, run, *args)
        try:
            refuse_internal_overlap(self)
        except RuntimeError:
            if not schema.startswith("random_"):
                run(self.new_empty((0,)), *args)  # arguments that fit no tensor are refused first
            if schema.startswith("normal_"):
                random_fill.need_float("normal_kernel_cpu", random_fill.pairs(self))
            raise
        return run(self, *args)

    return define(schema, doc=doc, run=checked_run, grads={"self": _zeros}, node=node, function=False)


_in_place(
    "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)",
    "Uniform numbers in [from, to).",
    "UniformBackward0",
    random_fill.uniform,
)
normal_ = _in_place(
    "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)",
    "Normal numbers.",
    "NormalBackward0",
    random_fill.normal,
)


def _random_any(self: Tensor, generator: Any) -> Tensor:
    return random_fill.any_value(self, _end(None, self.dtype), generator) if self._array.size else self


_in_place(
    "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
    "Integers from one number up to another.",
    "RandomBackward0",
    lambda self, low, high, generator: _between(low, _end(high, self.dtype), generator)(self),
)
_in_place(
    "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
    "Integers from 0 up to a number.",
    "RandomBackward1",
    lambda self, high, generator: _between(0, high, generator)(self),
)
_in_place(
    "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    "Any whole numbers that the dtype holds exactly and that are not negative.",
    "RandomBackward2",
    _random_any,
)


def _end(high: int | None, kind: dtype) -> int:
    if high is not None:
        return high
    if kind.is_complex:
        raise not_implemented("random_kernel_cpu", kind)
    if kind.is_floating_point:
        return (1 << _DIGITS[kind.name]) + 1
    return 2 if kind.category == 0 else int(np.iinfo(kind.np).max) + 1


_in_place(
    "exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
    "Exponential numbers.",
    "ExponentialBackward0",
    random_fill.exponential,
)


def _cauchy(self: Tensor, median: float, sigma: float, generator: Any) -> Tensor:
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not self.dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {cpp_name(self.dtype)}"
        )
    return random_fill.cauchy(self, median, sigma, generator)


_in_place(
    "cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)",
    "Cauchy numbers.",
    "CauchyBackward0",
    _cauchy,
)


def _geometric(self: Tensor, p: float, generator: Any) -> Tensor:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self.dtype.category in (BOOL, COMPLEX) and self._array.size:
        raise not_implemented("geometric_cpu", self.dtype)
    return random_fill.geometric(self, p, generator)


_in_place(
    "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
    "How many tries the first success takes.",
    "GeometricBackward0",
    _geometric,
)


def _log_normal(self: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    random_fill.need_float("log_normal_cpu", self)
    return random_fill.log_normal(self, mean, std, generator)


_in_place(
    "log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)",
    "Exponentials of normal numbers.",
    "LogNormalBackward0",
    _log_normal,
)
