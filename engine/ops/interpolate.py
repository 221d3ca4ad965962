"""Resizing of sequences, images and volumes: nearest, linear, cubic, and with antialiasing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, uint8
from stridescope.engine.kernels import resampling as kernels
from stridescope.engine.ops.conv import formatted
from stridescope.engine.tensor import Tensor, fresh

NAMESPACE = "torch._C._nn"
Ints = Sequence[int]
# mix(size, out, scale, align_corners, kind): how one dim is resampled.
MODES: dict[str, Callable[..., kernels.Mix]] = {
    "nearest": lambda size, out, scale, align, kind: kernels.nearest(size, out, scale, False),
    "nearest_exact": lambda size, out, scale, align, kind: kernels.nearest(size, out, scale, True),
    "linear": kernels.linear,
    "cubic": kernels.cubic,
    "linear_aa": lambda size, out, scale, align, kind: kernels.smoothed(size, out, scale, align, False, kind),
    "cubic_aa": lambda size, out, scale, align, kind: kernels.smoothed(size, out, scale, align, True, kind),
}
# op name -> (dims, mode)
OPS = {f"upsample_nearest{d}d": (d, "nearest") for d in (1, 2, 3)} | {
    **{f"_upsample_nearest_exact{d}d": (d, "nearest_exact") for d in (1, 2, 3)},
    "upsample_linear1d": (1, "linear"),
    "upsample_bilinear2d": (2, "linear"),
    "upsample_trilinear3d": (3, "linear"),
    "upsample_bicubic2d": (2, "cubic"),
    "_upsample_bilinear2d_aa": (2, "linear_aa"),
    "_upsample_bicubic2d_aa": (2, "cubic_aa"),
}


def _mixes(mode: str, sizes: Ints, out: Ints, align: bool, scales: Sequence[float | None], kind: Any) -> list[Any]:
    scalar = np.float64 if np.dtype(kind) == np.float64 else np.float32
    parts = zip(sizes, out, scales, strict=True)
    return [MODES[mode](size, n, scale, align, scalar) for size, n, scale in parts]


def _check(shape: list[int], out: Ints, dims: int) -> None:
    words = {1: ("3D", "(N, C, L)"), 2: ("4D", ""), 3: ("5D", "")}
    if len(out) != dims:
        raise RuntimeError(f"It is expected output_size equals to {dims}, but got size {len(out)}")
    if len(shape) != dims + 2:
        raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {len(shape)}")
    if any(n <= 0 for n in (*shape[2:], *out)):
        names = "DHW"[-dims:]
        given = ", ".join(f"{c}: {n}" for c, n in zip(names, shape[2:], strict=True))
        made = ", ".join(f"{c}: {n}" for c, n in zip(names, out, strict=True))
        joint = " and" if dims == 1 else ""
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({given}){joint} output ({made})"
        )
    if 0 in shape[1:]:
        raise RuntimeError(f"Non-empty {words[dims][0]} data tensor expected but got a tensor with sizes {shape}")


def _kernel_of(dims: int, mode: str) -> str:
    """The kernel that PyTorch names when it has none for a dtype."""
    if mode.endswith("_aa"):
        return "compute_index_ranges_weights"
    shape = mode.removesuffix("_exact")
    in_plane = {"linear": "upsample_bilinear2d_channels_last", "nearest": "upsample_nearest2d_channels_last"}
    plain = f"compute_indices_weights_{shape}"
    return in_plane.get(shape, plain) if dims == 2 else plain


def _run(self: Tensor, out: Ints, align: bool, scales: Sequence[float | None], name: str) -> Tensor:
    dims, mode = OPS[name]
    _check(list(self.shape), out, dims)
    whole = self.dtype is uint8 and mode != "cubic_aa" and (dims == 2 or mode != "linear")
    if not whole and (self.dtype.category != FLOAT or (mode.endswith("_aa") and self.dtype.itemsize == 2)):
        raise not_implemented(_kernel_of(dims, mode), self.dtype)
    array = resolved(self)
    wide = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    result = kernels.mixed(wide, _mixes(mode, array.shape[2:], out, align, scales, wide.dtype))
    if whole:
        result = np.clip(np.rint(result), 0, 255)
    return fresh(formatted(result.astype(array.dtype, copy=False), self), self.dtype, self.device)


def _back(grad: Tensor, sizes: Ints, align: bool, scales: Sequence[float | None], name: str) -> Tensor:
    mode, array = OPS[name][1], resolved(grad)
    wide = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    mixes = _mixes(mode, sizes[2:], array.shape[2:], align, scales, wide.dtype)
    result = kernels.spread(wide, mixes, sizes[2:])
    return fresh(formatted(result.astype(array.dtype, copy=False), grad), grad.dtype, grad.device)


def _scale_names(dims: int) -> list[str]:
    return ["scales"] if dims == 1 else [f"scales_{c}" for c in "dhw"[-dims:]]


def _define(name: str) -> None:
    dims, mode = OPS[name]
    aligned = not mode.startswith("nearest")
    names = _scale_names(dims)
    tail = ("bool align_corners, " if aligned else "") + ", ".join(f"float? {n}=None" for n in names)

    def run(self: Tensor, output_size: Ints, *rest: Any) -> Tensor:
        return _run(self, output_size, rest[0] if aligned else False, rest[-dims:], name)

    def back(grad_output: Tensor, output_size: Ints, input_size: Ints, *rest: Any) -> Tensor:
        return _back(grad_output, input_size, rest[0] if aligned else False, rest[-dims:], name)

    define_back = _backward_of(name, dims, tail, back, aligned, names)
    passed = (["align_corners"] if aligned else []) + names
    source = f"lambda grad, self_sym_sizes, output_size, {', '.join(passed)}: " + (
        f"back(grad, output_size, self_sym_sizes, {', '.join(passed)})"
    )
    define(
        f"{name}(Tensor self, SymInt[{dims}] output_size, {tail}) -> Tensor",
        doc=f"Resized by {mode.replace('_', ' ')} interpolation.",
        run=run,
        grads={"self": eval(source, {"back": define_back})},
        method=False,
        namespace=NAMESPACE,
    )
    _define_vec(name, dims, aligned)


def _backward_of(name: str, dims: int, tail: str, back: Any, aligned: bool, names: list[str]) -> Callable[..., Any]:
    from stridescope.engine.ops.lookup import op_call

    passed = (["align_corners"] if aligned else []) + names
    source = f"lambda grad, output_size, {', '.join(passed)}: forward(name)(grad, output_size, {', '.join(passed)})"
    op = define(
        f"{name}_backward(Tensor grad_output, SymInt[{dims}] output_size, SymInt[{dims + 2}] input_size, {tail}) -> "
        "Tensor",
        doc="The gradients, given back to the elements that were mixed.",
        run=back,
        grads={"grad_output": eval(source, {"forward": op_call, "name": name})},
        method=False,
        function=False,
    )
    return op.call


def _define_vec(name: str, dims: int, aligned: bool) -> None:
    from stridescope.engine.ops.lookup import op_call

    def composite(input: Tensor, output_size: Any, *rest: Any) -> Any:
        factors = rest[-1]
        sizes = input._array.shape[2:]
        if output_size is not None and factors is not None:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        if output_size is None:
            if factors is None:
                raise RuntimeError("Must specify exactly one of output_size and scale_factors")
            if len(factors) != len(sizes):
                raise RuntimeError(f"It is expected scale_factors equals to {dims}, but got size {len(factors)}")
            output_size = tuple(int(size * factor) for size, factor in zip(sizes, factors, strict=True))
        scales = factors if factors is not None else (None,) * dims
        return op_call(name)(input, output_size, *rest[:-1], *scales)

    middle = "bool align_corners, " if aligned else ""
    define(
        f"{name}.vec(Tensor input, SymInt[]? output_size, {middle}float[]? scale_factors) -> Tensor",
        doc="Resized to a size or by factors.",
        composite=composite,
        method=False,
        namespace=NAMESPACE,
    )


for _name in OPS:
    _define(_name)
