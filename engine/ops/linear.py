"""``linear`` and ``bilinear``: products with a learned weight, as composites of the matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import kernel
from stridescope.engine.dtype import BOOL, cpp_name
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

NAMESPACE = "torch._C._nn"


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    dims, weight_dims = input._array.ndim, weight._array.ndim
    if not dims or not weight_dims:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {dims}D and {weight_dims}D")
    if bias is not None and dims == 2:
        return op_call("addmm")(bias, input, op_call("t")(weight))
    if bias is not None and _is_row(bias) and input.is_contiguous():
        flat = input.reshape((math.prod(input._array.shape[:-1]), input._array.shape[-1]))
        return op_call("addmm")(bias, flat, weight.t()).view((*input._array.shape[:-1], weight._array.shape[0]))
    output = op_call("matmul")(input, weight.t())
    return output if bias is None else output.add_(bias)


def _is_row(bias: Tensor) -> bool:
    """Whether a bias is one number for each output, sizes of 1 aside."""
    return bias._array.ndim == 1 or sum(size != 1 for size in bias._array.shape) == 1


define(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    doc="Each row times the transposed weight, plus the bias.",
    composite=_linear,
    samples=[((4, 5), (3, 5), (3,)), ((2, 4, 5), (3, 5), (3,)), ((4, 5), (3, 5))],
    namespace=NAMESPACE,
    method=False,
)


def _trilinear(
    i1: Array, i2: Array, i3: Array, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int
) -> Array:
    letters = "abcdefgh"[: i1.ndim + len(expand1)]
    words = ["".join(c for i, c in enumerate(letters) if i not in left_out) for left_out in (expand1, expand2, expand3)]
    result = "".join(c for i, c in enumerate(letters) if i not in sumdim)
    wide = [a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in (i1, i2, i3)]
    return np.asarray(np.einsum(f"{','.join(words)}->{result}", *wide, optimize=True)).astype(i1.dtype)


trilinear = define(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor",
    doc="The product of three tensors, each stretched over dims that it lacks, added up along some dims.",
    run=kernel(_trilinear),
    grads={
        "i1": lambda grad, i2, i3, expand1, expand2, expand3, sumdim: trilinear.call(  # type: ignore[has-type]
            grad, i2, i3, sumdim, expand2, expand3, expand1
        ),
        "i2": lambda grad, i1, i3, expand1, expand2, expand3, sumdim: trilinear.call(  # type: ignore[has-type]
            i1, grad, i3, expand1, sumdim, expand3, expand2
        ),
        "i3": lambda grad, i1, i2, expand1, expand2, expand3, sumdim: trilinear.call(  # type: ignore[has-type]
            i1, i2, grad, expand1, expand2, sumdim, expand3
        ),
    },
    samples=[((2, 3), (4, 3, 5), (2, 5), [1, 3], [0], [1, 2], [2, 3])],
    method=False,
)


def _check_bilinear(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if a.dim() != b.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {a.dim()} and {b.dim()}")
    for i in range(a.dim() - 1):
        if a.shape[i] != b.shape[i]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {i}: got {a.shape[i]} and {b.shape[i]}"
            )
    for place, tensor in ((1, a), (2, b)):
        if tensor.shape[-1] != weight.shape[place]:
            raise RuntimeError(
                f"bilinear(): input{place} size does not match weight size: got {tensor.shape[-1]} but expected "
                f"{weight.shape[place]}"
            )
    parts = {"input1": a, "input2": b, "weight": weight} | ({} if bias is None else {"bias": bias})
    if len({tensor.dtype for tensor in parts.values()}) > 1:
        named = ", ".join(f"{name}: {cpp_name(tensor.dtype)}" for name, tensor in parts.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {named}")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )


def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    _check_bilinear(input1, input2, weight, bias)
    if weight.dtype.category == BOOL and weight._array.size:
        many = input1.numel() // input1.shape[-1] * weight.numel() >= 400
        raise not_implemented("addmm_impl_cpu_" if many else "bmm", weight.dtype)
    first, second = (t.reshape((-1, t._array.shape[-1])) for t in (input1, input2))
    output = trilinear.call(first, weight, second, (1, 3), (0,), (1, 2), (2, 3))
    output = output.reshape((*input1._array.shape[:-1], weight._array.shape[0]))
    return output if bias is None else output + bias


define(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    doc="Each pair of rows, joined by one learned matrix for every output.",
    composite=_bilinear,
    samples=[((2, 3), (2, 5), (4, 3, 5), (4,))],
    method=False,
)
