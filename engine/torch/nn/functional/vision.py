"""Resizing and sampling of images, windows as columns, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH
from stridescope.engine.warn import warn

pad = NATIVE["pad"]
pixel_shuffle, pixel_unshuffle, channel_shuffle = (
    TORCH[n] for n in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
)
_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _given(input: Tensor, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """One size and one factor for each dim, of which one is None."""
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    shape = list(input.shape[2:])
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * dims, None
        if len(size) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                "dimensions "
                f"of {shape} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
                "and "
                "output size in (o1, o2, ...,oK) format."
            )
        return size, None
    if not isinstance(scale_factor, (list, tuple)):
        return None, [scale_factor] * dims
    if len(scale_factor) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {shape} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, "
            "d1, "
            "d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    return None, scale_factor


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize a sequence, an image or a volume."""
    if mode in ("nearest", "area", "nearest-exact"):
        _check_mode(input, mode, align_corners, False)
    sizes, factors = _given(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if (recompute_scale_factor or mode == "area") and sizes is None:
        sizes = [int(input.size(i + 2) * factor) for i, factor in enumerate(factors)]
        factors = None
    _check_mode(input, mode, None, antialias)
    return _resized(input, sizes, factors, mode, bool(align_corners), antialias)  # type: ignore[no-any-return]


def _resized(input: Tensor, sizes: Any, factors: Any, mode: str, align: bool, antialias: bool) -> Any:
    dims = input.dim() - 2
    if dims in (1, 2, 3):
        if mode in ("nearest", "nearest-exact"):
            name = f"upsample_nearest{dims}d" if mode == "nearest" else f"_upsample_nearest_exact{dims}d"
            return NATIVE[name](input, sizes, factors)
        if mode == "area":
            return (TORCH if dims == 1 else NATIVE)[f"adaptive_avg_pool{dims}d"](input, sizes)
        if mode in _LINEAR and _LINEAR[mode] == input.dim():
            name = f"upsample_{mode}{dims}d"
            return NATIVE[f"_{name}_aa" if antialias else name](input, sizes, align, factors)
        if mode == "bicubic" and dims == 2:
            return NATIVE["_upsample_bicubic2d_aa" if antialias else "upsample_bicubic2d"](input, sizes, align, factors)
        if mode in _LINEAR:
            raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_LINEAR[mode]}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | "
        "linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Tensor:
    """The old name of ``interpolate``."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` to the nearest element."""
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Bilinear ``interpolate`` with aligned corners."""
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- grids -----------------------------------------------------------------------------------------------------------

_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
        )
    return bool(align_corners)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The elements at the places of a grid."""
    if mode not in _GRID_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _GRID_PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    aligned = _aligned(align_corners)
    return TORCH["grid_sampler"](input, grid, _GRID_MODES[mode], _GRID_PADDING[padding_mode], aligned)  # type: ignore[no-any-return]


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places that affine maps give to the elements of an image."""
    aligned = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    dims = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if aligned and min(size[-dims:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is "
            "not an intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return TORCH["affine_grid_generator"](theta, size, aligned)  # type: ignore[no-any-return]


# ---- windows as columns ---------------------------------------------------------------------------------------------


def _pair(value: Any) -> Any:
    return (value, value) if isinstance(value, int) else value


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of an image as columns."""
    return NATIVE["im2col"](input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))  # type: ignore[no-any-return]


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Columns of windows, added up into an image."""
    return NATIVE["col2im"](  # type: ignore[no-any-return]
        input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    )
