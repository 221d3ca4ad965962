"""``torchvision.transforms.functional``: what is done to one picture or tensor."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._pillow import pillow
from stridescope.engine.torchvision.images import is_picture, picture_of, pixels, size_of

to_pil_image = picture_of


def to_tensor(pic: Any) -> Tensor:
    """Channels first, bytes as floats from 0 to 1; raises TypeError for what is no picture."""
    if isinstance(pic, np.ndarray):
        array = pic[:, :, None] if pic.ndim == 2 else pic
        tensor = torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))
    elif is_picture(pic):
        tensor = pixels(pic)
    else:
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    scaled: Tensor = tensor.to(torch.get_default_dtype()).div(255) if tensor.dtype == torch.uint8 else tensor
    return scaled


def pil_to_tensor(pic: Any) -> Tensor:
    """Channels first, numbers as they are; raises TypeError for what is no picture."""
    if not is_picture(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return pixels(pic)


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """Subtract a mean and divide by a deviation for each channel."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
        )
    out = tensor if inplace else tensor.clone()
    means, deviations = (torch.as_tensor(v, dtype=out.dtype, device=out.device) for v in (mean, std))  # type: ignore[attr-defined]
    if (deviations == 0).any():
        raise ValueError(f"std evaluated to zero after conversion to {out.dtype}, leading to division by zero.")
    means, deviations = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (means, deviations))
    return out.sub_(means).div_(deviations)  # type: ignore[no-any-return]


def convert_image_dtype(image: Tensor, dtype: Any = torch.float32) -> Tensor:
    """The same picture in another dtype: bytes from 0 to 255 are floats from 0 to 1."""
    if image.dtype == dtype:
        return image
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)  # type: ignore[no-any-return]
        return image.mul(torch.iinfo(dtype).max + 1.0 - 1e-3).to(dtype)  # type: ignore[no-any-return]
    if dtype.is_floating_point:
        return image.to(dtype) / torch.iinfo(image.dtype).max  # type: ignore[no-any-return]
    return image.to(dtype)  # type: ignore[no-any-return]


def hflip(img: Any) -> Any:
    """Left becomes right."""
    return img.transpose(pillow().Transpose.FLIP_LEFT_RIGHT) if is_picture(img) else img.flip(-1)


def vflip(img: Any) -> Any:
    """Top becomes bottom."""
    return img.transpose(pillow().Transpose.FLIP_TOP_BOTTOM) if is_picture(img) else img.flip(-2)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of the picture; what lies outside of it is zero."""
    if is_picture(img):
        return img.crop((left, top, left + width, top + height))
    rows, columns = size_of(img)
    bottom, right = top + height, left + width
    part = img[..., max(top, 0) : bottom, max(left, 0) : right]
    around = [max(-left, 0), max(-top, 0), max(right - columns, 0), max(bottom - rows, 0)]
    return pad(part, around) if any(around) else part


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of the picture, with zeros around it where it is too small."""
    height, width = (output_size, output_size) if isinstance(output_size, int) else (output_size[0], output_size[-1])
    rows, columns = size_of(img)
    if width > columns or height > rows:
        horizontal, vertical = max(width - columns, 0), max(height - rows, 0)
        img = pad(img, [horizontal // 2, vertical // 2, (horizontal + 1) // 2, (vertical + 1) // 2])
        rows, columns = size_of(img)
    return crop(img, int(round((rows - height) / 2.0)), int(round((columns - width) / 2.0)), height, width)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Add a border: one number, (left and right, top and bottom), or (left, top, right, bottom)."""
    sides = [padding] * 4 if isinstance(padding, int) else list(padding) * (4 // len(padding))
    left, top, right, bottom = sides
    if not is_picture(img):
        functional = importlib.import_module("stridescope.engine.torch.nn.functional")
        mode = {"edge": "replicate"}.get(padding_mode, padding_mode)
        return functional.pad(img, [left, right, top, bottom], mode=mode, value=float(fill))
    array = np.asarray(img)
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
    options = {"constant_values": fill} if padding_mode == "constant" else {}
    return pillow().fromarray(np.pad(array, widths, padding_mode, **options))  # type: ignore[call-overload]


def resize(img: Any, size: Any, interpolation: Any = "bilinear", max_size: Any = None, antialias: Any = True) -> Any:
    """Another size: (height, width), or one number for the shorter side."""
    rows, columns = size_of(img)
    if isinstance(size, int) or len(size) == 1:
        short = size if isinstance(size, int) else size[0]
        scale = short / min(rows, columns)
        height, width = (short, int(columns * scale)) if rows <= columns else (int(rows * scale), short)
    else:
        height, width = size
    if (height, width) == (rows, columns):
        return img
    mode = getattr(interpolation, "value", interpolation)
    if is_picture(img):
        return img.resize((width, height), pillow().Resampling[mode.upper()])
    functional = importlib.import_module("stridescope.engine.torch.nn.functional")
    whole = img if img.ndim == 4 else img[None]
    smooth = {} if mode == "nearest" else {"align_corners": False, "antialias": bool(antialias)}
    out = functional.interpolate(whole.to(torch.float32), (height, width), mode=mode, **smooth)
    out = out if img.is_floating_point() else out.round().clamp(0, 255)
    return (out if img.ndim == 4 else out[0]).to(img.dtype)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Brightness alone."""
    if is_picture(img):
        grey = img.convert("L")
        return grey if num_output_channels == 1 else pillow().merge("RGB", [grey] * 3)
    red, green, blue = img.unbind(dim=-3)
    grey = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    return grey if num_output_channels == 1 else grey.expand(img.shape)
