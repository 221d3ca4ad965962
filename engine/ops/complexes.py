"""Complex numbers: their parts, their conjugates, and the lazy conjugate and negative bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.one_device import one_device
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.overlap import refuse_internal_overlap
from stridescope.engine.dispatch.result_strides import output_strides
from stridescope.engine.dispatch.run import cast, laid_out, resolved
from stridescope.engine.dtype import FLOAT, complex_of, default_float, dtype, float16, float32, float64, scalar_name
from stridescope.engine.layout import Layout, broadcast_shapes, dense_strides_like
from stridescope.engine.ops.lookup import op_call, where
from stridescope.engine.tensor import Tensor, dense, fresh

# ---- the parts as views ------------------------------------------------------------------------------------------


def _as_real(layout: Layout, kind: dtype) -> tuple[Layout, dtype]:
    return Layout((*layout.sizes, 2), (*(2 * s for s in layout.strides), 1), layout.offset * 2), kind


def _as_complex(layout: Layout, kind: dtype) -> tuple[Layout, dtype]:
    if not layout.sizes:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if layout.sizes[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if layout.strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % 2 for stride in layout.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if layout.offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return Layout(layout.sizes[:-1], tuple(s // 2 for s in layout.strides[:-1]), layout.offset // 2), kind


_real_view = define(
    "_view_as_real(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    doc="The parts of complex numbers as a last dim of size 2, on the same storage.",
    view=_as_real,
    node="ViewAsRealBackward0",
    grads={"self": lambda grad: _view_as_complex(grad.contiguous())},
    method=False,
    function=False,
)
_complex_view = define(
    "_view_as_complex(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    doc="Pairs of real numbers as complex ones, on the same storage.",
    view=_as_complex,
    node="ViewAsComplexBackward0",
    grads={"self": lambda grad: _view_as_real(grad.contiguous().resolve_conj())},
    method=False,
    function=False,
)


def _view_as_real(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if self._conj:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    return _real_view.call(self, self.dtype.to_real())  # type: ignore[no-any-return]


def _view_as_complex(self: Tensor) -> Tensor:
    if self.dtype not in (float32, float64, float16):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{scalar_name(self.dtype)}"
        )
    return _complex_view.call(self, complex_of(self.dtype))  # type: ignore[no-any-return]


define(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    doc="The parts of complex numbers as a last dim of size 2, on the same storage.",
    composite=_view_as_real,
    method=False,
)
define(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    doc="Pairs of real numbers as complex ones, on the same storage.",
    composite=_view_as_complex,
    method=False,
)

for _name, _view in (("real", _view_as_real), ("complex", _view_as_complex)):
    define(
        f"view_as_{_name}_copy(Tensor self) -> Tensor",
        doc=f"A copy of what view_as_{_name} shows.",
        composite=lambda self, view=_view: view(self).clone(),
        method=False,
    )

# ---- the lazy bits -----------------------------------------------------------------------------------------------

_conj_view = define(
    "_conj(Tensor(a) self) -> Tensor(a)",
    doc="A view that reads conjugates: only a bit of the tensor is turned over.",
    view=lambda layout: layout,
    grads={"self": lambda grad: grad.conj()},
    function=False,
    method=False,
)
_neg_view = define(
    "_neg_view(Tensor(a) self) -> Tensor(a)",
    doc="A view that reads negatives: only a bit of the tensor is turned over.",
    view=lambda layout: layout,
    grads={"self": lambda grad: -grad},
    function=False,
    method=False,
)


def _conj(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return self
    result: Tensor = _conj_view.call(self)
    result._conj = not self._conj
    return result


def _negated(self: Tensor) -> Tensor:
    result: Tensor = _neg_view.call(self)
    result._neg = not self._neg
    return result


def _real(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return self
    parts = _view_as_real(_conj(self) if self._conj else self)
    return parts.select(self._array.ndim, 0)  # type: ignore[no-any-return]


def _imag(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if self._conj:
        return _negated(_view_as_real(_conj(self))).select(self._array.ndim, 1)  # type: ignore[no-any-return]
    return _view_as_real(self).select(self._array.ndim, 1)  # type: ignore[no-any-return]


for _name, _rule, _doc in (
    ("conj", _conj, "The complex conjugates, as a view; real tensors as they are."),
    ("real", _real, "The real parts, as a view."),
    ("imag", _imag, "The imaginary parts, as a view."),
):
    define(f"{_name}(Tensor(a) self) -> Tensor(a)", doc=_doc, composite=_rule, method=_name == "conj")

define(
    "resolve_conj(Tensor(a) self) -> Tensor(a)",
    doc="A copy without the conjugate bit, or the tensor itself when it has none.",
    composite=lambda self: self.clone() if self._conj else self,
)
define(
    "resolve_neg(Tensor(a) self) -> Tensor(a)",
    doc="A copy without the negative bit, or the tensor itself when it has none.",
    composite=lambda self: self.clone() if self._neg else self,
)


def _conj_copy(self: Tensor) -> Tensor:
    array = resolved(self)
    return fresh(laid_out(np.conj(array), dense_strides_like(array.shape, self.strides)), self.dtype, self.device)


_conj_kernel = define(
    "_conj_physical(Tensor self) -> Tensor",
    doc="The conjugates, computed.",
    run=_conj_copy,
    grads={"self": lambda grad: grad.conj_physical()},
    function=False,
    method=False,
)


def _conj_physical(self: Tensor) -> Tensor:
    return _conj_kernel.call(self) if self.dtype.is_complex else self


define(
    "conj_physical(Tensor self) -> Tensor",
    doc="The conjugates, computed; real tensors as they are.",
    composite=_conj_physical,
    out=Out(memory_first=True),
)


def _conj_into(self: Tensor) -> Tensor:
    if self.dtype.is_complex or self._neg:
        refuse_internal_overlap(self)
    if self.dtype.is_complex:
        np.conjugate(self._array, out=self._array)
    return self


define(
    "conj_physical_(Tensor(a!) self) -> Tensor(a!)",
    doc="The conjugates, written in place.",
    run=_conj_into,
    node="ConjPhysicalBackward1",
    grads={"self": lambda grad: grad.conj_physical()},
)

# ---- building ----------------------------------------------------------------------------------------------------


def _check_parts(a: Tensor, b: Tensor) -> None:
    if not all(t.dtype in (float32, float64, float16) for t in (a, b)):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{scalar_name(a.dtype)} and {scalar_name(b.dtype)}"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_name(a.dtype)} but got scalar type {scalar_name(b.dtype)} for "
            "second argument"
        )


def _joined(a: Tensor, b: Tensor, real: Any, imag: Any) -> Tensor:
    kind = complex_of(a.dtype)
    shape = broadcast_shapes(a._array.shape, b._array.shape)
    array = np.empty(shape, kind.np)
    array.real, array.imag = real, imag
    return fresh(laid_out(array, output_strides(shape, [a._array, b._array])), kind, one_device((a, b)))


def _complex(real: Tensor, imag: Tensor) -> Tensor:
    _check_parts(real, imag)
    return _joined(real, imag, resolved(real), resolved(imag))


def _polar(abs: Tensor, angle: Tensor) -> Tensor:
    _check_parts(abs, angle)
    broadcast_shapes(abs._array.shape, angle._array.shape)  # which refuses in PyTorch's words
    if abs.dtype is float16:
        raise not_implemented("polar_cpu", abs.dtype)
    size, turn = resolved(abs), resolved(angle)
    return _joined(abs, angle, size * np.cos(turn), size * np.sin(turn))


def _polar_grads(grad: Tensor, result: Tensor, needs: tuple[bool, ...]) -> tuple[Tensor, Tensor]:
    turned = grad.conj()
    return (turned * result.sgn()).real, (turned * (result * 1j)).real


define(
    "complex(Tensor real, Tensor imag) -> Tensor",
    doc="Complex numbers out of their parts.",
    run=_complex,
    out=Out(memory_first=True),
    grads={"real,imag": lambda grad, real, imag: (grad.real, grad.imag)},
    samples=[((3, 4), (4,))],
)
define(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    doc="Complex numbers out of sizes and angles.",
    run=_polar,
    out=Out(memory_first=True),
    grads={"abs,angle": _polar_grads},
    samples=[((3, 4), (4,))],
)


def _angle(self: Tensor) -> Tensor:
    array = resolved(self)
    if self.dtype.is_complex:
        kind = self.dtype.to_real()
        result = np.arctan2(array.imag, array.real)
    else:
        kind = self.dtype if self.dtype.category >= FLOAT else default_float()
        turned = np.where(np.less(array, 0), kind.np.type(np.pi), kind.np.type(0))
        result = np.where(np.isnan(array), array, turned) if self.dtype.category >= FLOAT else turned
    result = cast(np.asarray(result), kind)
    if self.dtype.is_complex:
        return fresh(dense(result), kind, self.device)
    return fresh(laid_out(result, output_strides(array.shape, [array])), kind, self.device)


def _angle_grad(grad: Tensor, self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return op_call("zeros_like")(self)  # type: ignore[no-any-return]
    turned = grad * self / self.abs().pow(2) * 1j
    return where(self == 0, self.new_zeros(()), turned)


define(
    "angle(Tensor self) -> Tensor",
    doc="The angle of each complex number; 0 or pi for real ones.",
    run=_angle,
    out=Out(memory_first=True),
    grads={"self": _angle_grad},
    samples=[((3, 4),)],
)


def _set_real(self: Tensor, value: Any) -> None:
    _real(self).copy_(value if isinstance(value, Tensor) else self.new_full((), value).real)


def _set_imag(self: Tensor, value: Any) -> None:
    _imag(self).copy_(value if isinstance(value, Tensor) else self.new_full((), value).real)


METHODS: dict[str, Any] = {"real": property(_real, _set_real), "imag": property(_imag, _set_imag)}
