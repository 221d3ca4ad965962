"""What pooling refuses, with PyTorch's texts (``aten/src/ATen/native/Pool.h``, ``MaxPooling.h``, ``Pooling.cpp``)."""

from __future__ import annotations

from collections.abc import Sequence

from stridescope.engine.kernels.pooling import Windows, output_sizes
from stridescope.engine.tensor import Tensor

Ints = Sequence[int]
WORDS = {1: "one int", 2: "two ints", 3: "three ints"}


def _listed(name: str, part: str, values: Ints, dims: int, optional: bool) -> Ints:
    if len(values) == 1:
        return (values[0],) * dims
    if len(values) == dims:
        return tuple(values)
    if name == "avg_pool3d":
        be = "must be omitted," if optional else "must be"
    elif part == "dilation":
        be = "must be either"
    else:
        be = "must either be omitted," if optional else "must either be"
    raise RuntimeError(f"{name}: {part} {be} a single int, or a tuple of {WORDS[dims]}")


def windows_of(
    name: str, dims: int, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Windows:
    """The windows with every number given for every dim; raises RuntimeError for lists of another length."""
    size = _listed(name, "kernel_size", kernel, dims, False)
    step = _listed(name, "stride", stride, dims, True) if len(stride) else size
    pad = _listed(name, "padding", padding, dims, False)
    return Windows(size, step, pad, _listed(name, "dilation", dilation, dims, False), ceil_mode)


def check_input(input: Tensor, how: Windows, name: str) -> None:
    """Raise for inputs and windows that do not go together, in PyTorch's order."""
    dims = len(how.kernel)
    _check_count(input, dims, name)
    _check_steps(how)
    _check_sizes(how)
    _check_empty(input, dims, name)
    _check_padding(how)
    _check_output(input, how, name)


def _check_count(input: Tensor, dims: int, name: str) -> None:
    count = input._array.ndim
    if name == "avg_pool2d":
        if count < 3:
            low = max(count, 1)
            raise IndexError(f"Dimension out of range (expected to be in range of [{-low}, {low - 1}], but got -3)")
    elif count not in (dims + 1, dims + 2):
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")


def _check_empty(input: Tensor, dims: int, name: str) -> None:
    shape = list(input.shape)
    if dims == 2 and (len(shape) not in (3, 4) or 0 in shape[-3:]):
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{shape}"
        )
    if dims == 3 and 0 in shape[-4:]:
        where = "max_pool3d_with_indices_out_cpu_template()" if name.startswith("max") else f"{name}()"
        raise RuntimeError(
            f"{where}: Expected input's non-batch dimensions to have positive length, but input has a shape of {shape} "
            "and non-batch dimension 0 has length zero!"
        )


def _check_steps(how: Windows) -> None:
    parts = zip(how.stride, how.padding, how.kernel, how.dilation, strict=True)
    for stride, pad, kernel, dilation in parts:
        if stride == 0:
            raise RuntimeError("stride should not be zero")
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > max((kernel - 1) * dilation + 1, 0) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={kernel} and "
                f"dilation={dilation}"
            )


def _check_sizes(how: Windows) -> None:
    letters = "THW"[-len(how.kernel) :]
    sizes = (("kernel size", "k", how.kernel), ("stride", "d", how.stride), ("dilation", "dilation", how.dilation))
    for word, short, values in sizes:
        if any(v <= 0 for v in values):
            named = " ".join(f"{short}{c}: {v}" for c, v in zip(letters, values, strict=True))
            raise RuntimeError(f"{word} should be greater than zero, but got {named}")


def _check_padding(how: Windows) -> None:
    if all(pad <= kernel // 2 for pad, kernel in zip(how.padding, how.kernel, strict=True)):
        return
    if len(how.kernel) == 2:
        (high, wide), (rows, columns) = how.padding, how.kernel
        got = f"padW = {wide}, padH = {high}, kW = {columns}, kH = {rows}"
    else:
        kernel, pad = (dict(zip("THW", values, strict=True)) for values in (how.kernel, how.padding))
        got = " ".join([*(f"k{c}: {kernel[c]}" for c in "TWH"), *(f"pad{c}: {pad[c]}" for c in "TWH")])
    raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {got}")


def _check_output(input: Tensor, how: Windows, name: str) -> None:
    dims = len(how.kernel)
    sizes = input._array.shape[-dims:]
    out = output_sizes(sizes, how)
    if all(n > 0 for n in out):
        return
    if name == "avg_pool3d":
        got = " ".join(f"{c}: {n}" for c, n in zip("THW", sizes, strict=True))
        wanted = " ".join(f"k{c}: {k}" for c, k in zip("THW", how.kernel, strict=True))
        raise RuntimeError(f"input image ({got}) smaller than kernel size ({wanted})")
    planes = input._array.shape[-dims - 1]
    given, made = ("x".join(map(str, (planes, *part))) for part in (sizes, out))
    raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small")


def check_1d(input: Tensor, name: str) -> None:
    """Raise RuntimeError unless the input has 2 or 3 dims."""
    if input._array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input._array.ndim}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )


def check_max_1d(input: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> None:
    """``max_pool1d`` has checks of its own."""
    shape = list(input.shape)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{shape}"
        )
    words = (("kernel_size", kernel, "an int, list of ints or tuple of ints"),
             ("stride", stride, "None, an int, list of ints, or tuple of ints"),
             ("padding", padding, "an int, list of ints, or tuple of ints"),
             ("dilation", dilation, "an int, list of ints or tuple of ints"))  # fmt: skip
    for name, values, what in words:
        if len(values) > 1:
            raise RuntimeError(f"max_pool1d() {name} must be {what} of size 1 but got size {len(values)}")
    _check_max_numbers(shape[-1], kernel[0], (stride or kernel)[0], padding[0], dilation[0], ceil_mode)


def _check_max_numbers(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> None:
    if kernel <= 0:
        raise RuntimeError(f"max_pool1d() kernel_size must be greater than zero, but got {kernel}")
    if stride <= 0:
        raise RuntimeError(f"max_pool1d() stride must be greater than zero, but got {stride}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")
    made = output_sizes((size,), Windows((kernel,), (stride,), (padding,), (dilation,), ceil_mode))[0]
    if made <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {made}")


def check_adaptive_grad(name: str, grad: Tensor) -> None:
    """Refuse a gradient without elements that is not only of no images."""
    shape = list(grad.shape)
    if 0 in shape[1:]:
        raise RuntimeError(
            f"{name}(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes "
            f"{shape} with dimension {shape.index(0, 1)} being empty"
        )
