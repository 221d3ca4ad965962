"""Padding: constant, reflected, replicated and circular edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import BOOL
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.ops.conv import formatted
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh

NAMESPACE = "torch._C._nn"
Ints = Sequence[int]


def pairs(pad: Ints) -> list[tuple[int, int]]:
    """(before, after) of the last dims, the last first."""
    return [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]


def _constant(self: Tensor, pad: Ints, value: Any) -> Tensor:
    dims, shape = self.dim(), list(self.shape)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) // 2 > dims:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {dims}dimensions."
        )
    array = resolved(self)
    wanted = list(shape)
    inner: list[slice] = [slice(None)] * dims
    taken: list[slice] = [slice(None)] * dims
    for place, (low, high) in enumerate(pairs(pad), 1):
        dim = dims - place
        wanted[dim] = shape[dim] + low + high
        if shape[dim] + min(low, 0) + min(high, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if wanted[dim] < 0:
            raise RuntimeError(
                f"The input size {shape[dim]}, plus negative padding {low} and {high} resulted in a negative output "
                f"size, which is invalid. Check dimension {dim} of your input."
            )
        start = max(low, 0)
        count = max(shape[dim] + min(low, 0) + min(high, 0), 0)
        taken[dim] = slice(max(-low, 0), max(-low, 0) + count)
        inner[dim] = slice(start, start + count)
    if all(amount <= 0 for amount in pad):  # what is left of the tensor, copied as clone() copies it
        left = array[tuple(taken)].copy()
        return fresh(laid_out(left, dense_strides_like(left.shape, self.strides)), self.dtype, self.device)
    result = np.full(tuple(wanted), value, array.dtype)
    result[tuple(inner)] = array[tuple(taken)]
    return fresh(formatted(result, self), self.dtype, self.device)


constant_pad = define(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    doc="One value around the last dims; negative amounts cut off.",
    run=_constant,
    grads={"self": lambda grad, pad: constant_pad.call(grad, tuple(-p for p in pad), 0)},  # type: ignore[has-type]
    samples=[((2, 3), [1, 2]), ((2, 3), [1, -1, 2, 0])],
    method=False,
)

# ---- reflected and replicated edges ----------------------------------------------------------------------------------


def _sources(size: int, low: int, high: int, reflect: bool) -> Array:
    """Which element of a dim stands at each place of the padded one."""
    at = np.arange(-low, size + high)
    if reflect:
        at = np.abs(at)
        return np.where(at >= size, 2 * (size - 1) - at, at)
    return np.clip(at, 0, size - 1)


def _taken(array: Array, padding: Ints, reflect: bool) -> Array:
    for place, (low, high) in enumerate(pairs(padding), 1):
        array = np.take(array, _sources(array.shape[-place], low, high, reflect), axis=-place)
    return array


def _given_back(grad: Array, shape: tuple[int, ...], padding: Ints, reflect: bool) -> Array:
    """The transpose of ``_taken``: every copy's gradient is added to its source."""
    for place, (low, high) in enumerate(pairs(padding), 1):
        size = shape[-place]
        moved = np.moveaxis(grad, -place, 0)
        total = np.zeros((size, *moved.shape[1:]), grad.dtype)
        np.add.at(total, _sources(size, low, high, reflect), moved)
        grad = np.moveaxis(total, 0, -place)
    return grad


def _check_edges(self: Tensor, padding: Ints, dims: int, reflect: bool) -> None:
    shape = list(self.shape)
    if len(padding) != 2 * dims:
        raise RuntimeError(f"padding size is expected to be {2 * dims}, but got: {len(padding)}")
    if len(shape) not in (dims + 1, dims + 2) or 0 in shape[-dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {shape}"
        )
    for place, (low, high) in enumerate(pairs(padding), 1):
        dim = len(shape) - place
        size = shape[dim]
        if reflect and (low >= size or high >= size):
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({low}, {high}) at dimension {dim} of input {shape}"
                if dims == 1
                else f"Argument #{2 + 2 * place}: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({low}, {high}) at dimension {dim} of input {shape}"
            )
    out = [shape[-p] + low + high for p, (low, high) in enumerate(pairs(padding), 1)]
    if any(n < 1 for n in out):
        given = " ".join(f"{c}: {n}" for c, n in zip("DHW"[-dims:], shape[-dims:], strict=True))
        made = " ".join(f"{c}: {n}" for c, n in zip("DHW"[-dims:], reversed(out), strict=True))
        raise RuntimeError(f"input ({given}) is too small. Calculated output {made}")


def _edge_op(dims: int, reflect: bool) -> None:
    name = f"{'reflection' if reflect else 'replication'}_pad{dims}d"
    words = "mirrored at its edges" if reflect else "with its edge elements repeated"

    def run(self: Tensor, padding: Ints) -> Tensor:
        _check_edges(self, padding, dims, reflect)
        if self.dtype.category == BOOL:
            raise not_implemented(name, self.dtype)
        return fresh(formatted(_taken(resolved(self), padding, reflect), self), self.dtype, self.device)

    def back(grad_output: Tensor, self: Tensor, padding: Ints) -> Tensor:
        array = resolved(grad_output)
        small = array.dtype.itemsize == 2
        wide = array.astype(np.float32) if small else array
        result = _given_back(wide, self._array.shape, padding, reflect)
        return fresh(formatted(result.astype(array.dtype, copy=False), self), self.dtype, self.device)

    backward = define(
        f"{name}_backward(Tensor grad_output, Tensor self, SymInt[{2 * dims}] padding) -> Tensor",
        doc="Every copy's gradient, added to its source.",
        run=back,
        grads={"grad_output": lambda grad, padding: op.call(grad, padding), "self": lambda self: zeros_like(self)},
        method=False,
        function=False,
    )
    op = define(
        f"{name}(Tensor self, SymInt[{2 * dims}] padding) -> Tensor",
        doc=f"The tensor {words}.",
        run=run,
        grads={"self": lambda grad, self, padding: backward.call(grad, self, padding)},
        samples=[((1, 2, *(4,) * dims), [1, 2] * dims)],
        method=False,
        namespace=NAMESPACE,
    )


for _dims in (1, 2, 3):
    _edge_op(_dims, True)
    _edge_op(_dims, False)

# ---- circular, and the choice by name --------------------------------------------------------------------------------


def _circular(self: Tensor, pad: Ints) -> Any:
    ndim = len(pad) // 2
    lead = self.dim() - ndim
    shape = list(self.shape)
    out_shape = list(shape)
    for place in range(ndim):
        low, high = pad[2 * (ndim - place) - 2], pad[2 * (ndim - place) - 1]
        size = shape[lead + place]
        out_shape[lead + place] = size + low + high
        if low > size or high > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if out_shape[lead + place] < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    out = self.new_empty(tuple(out_shape))
    target, source = out, self
    for place, (low, high) in enumerate(pairs(pad), 1):
        dim = self.dim() - place
        target = target.narrow(dim, max(low, 0), out_shape[dim] - max(low, 0) - max(high, 0))
        source = source.narrow(dim, max(-low, 0), shape[dim] - max(-low, 0) - max(-high, 0))
    target.copy_(source)
    for place, (low, high) in enumerate(pairs(pad), 1):
        dim, size = self.dim() - place, out_shape[self.dim() - place]
        if low > 0:
            out.narrow(dim, 0, low).copy_(out.narrow(dim, size - low - max(high, 0), low))
        if high > 0:
            out.narrow(dim, size - high, high).copy_(out.narrow(dim, max(low, 0), high))
    return out


define(
    "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
    doc="The tensor, going on at its other end.",
    composite=_circular,
    method=False,
    function=False,
)
_NAMES = {"reflect": "reflection", "replicate": "replication"}


def _pad(self: Tensor, pad: Ints, mode: str, value: Any) -> Any:
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * self.dim():
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got "
                           f"padding length {len(pad)} and input of dimension {self.dim()}")  # fmt: skip
    if mode == "constant":
        return constant_pad.call(self, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    dims = len(pad) // 2
    if dims in (1, 2, 3) and self.dim() in (dims + 1, dims + 2):
        if mode in _NAMES:
            return op_call(f"{_NAMES[mode]}_pad{dims}d")(self, pad)
        if mode == "circular":
            return _circular(self, pad)
    if mode in (*_NAMES, "circular"):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {self.dim()}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    raise NotImplementedError(f"Unrecognised padding mode {mode}")


define(
    'pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor',
    doc="Padding of the last dims in a named mode.",
    composite=_pad,
    samples=[((2, 3), [1, 2])],
    method=False,
    namespace=NAMESPACE,
)
