"""Brightness, contrast, saturation, hue, blur and rotation of tensors and pictures."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from stridescope.engine import torch
from stridescope.engine.ops.from_data import tensor as tensor_of
from stridescope.engine.torch._pillow import pillow
from stridescope.engine.torchvision.images import is_picture, picture_of, pixels, size_of
from stridescope.engine.torchvision.transforms.functional import convert_image_dtype, crop, resize, rgb_to_grayscale


def _functional() -> Any:
    return importlib.import_module("stridescope.engine.torch.nn.functional")


def _blended(img: Any, other: Any, ratio: float) -> Any:
    most = 1.0 if img.is_floating_point() else 255
    return (ratio * img + (1.0 - ratio) * other).clamp(0, most).to(img.dtype)


def _enhanced(img: Any, what: str, factor: float) -> Any:
    pillow()  # says how to get Pillow when it is not there
    return getattr(importlib.import_module("PIL.ImageEnhance"), what)(img).enhance(factor)


def _check(name: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Darker below 1, brighter above."""
    _check("brightness_factor", brightness_factor)
    if is_picture(img):
        return _enhanced(img, "Brightness", brightness_factor)
    return _blended(img, torch.zeros_like(img), brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Towards the mean grey below 1, away from it above."""
    _check("contrast_factor", contrast_factor)
    if is_picture(img):
        return _enhanced(img, "Contrast", contrast_factor)
    grey = rgb_to_grayscale(img) if img.shape[-3] == 3 else img
    grey = grey if grey.is_floating_point() else grey.to(torch.float32)
    return _blended(img, torch.mean(grey, dim=(-3, -2, -1), keepdim=True), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Towards grey below 1, away from it above."""
    _check("saturation_factor", saturation_factor)
    if is_picture(img):
        return _enhanced(img, "Color", saturation_factor)
    return img if img.shape[-3] == 1 else _blended(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turn the colour circle by a share of -0.5 to 0.5; raises ValueError outside of that."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if is_picture(img):
        return _turned_picture(img, hue_factor)
    if img.shape[-3] == 1:
        return img
    hue, saturation, value = _to_hsv(convert_image_dtype(img, torch.float32)).unbind(dim=-3)
    turned = torch.stack([(hue + hue_factor) % 1.0, saturation, value], dim=-3)
    return convert_image_dtype(_from_hsv(turned), img.dtype)


def _turned_picture(img: Any, hue_factor: float) -> Any:
    if img.mode in ("L", "1", "I", "F"):
        return img
    hue, saturation, value = img.convert("HSV").split()
    turned = np.array(hue, dtype=np.uint8) + np.array(int(hue_factor * 255)).astype(np.uint8)
    return pillow().merge("HSV", (pillow().fromarray(turned, "L"), saturation, value)).convert(img.mode)


def _to_hsv(img: Any) -> Any:
    red, green, blue = img.unbind(dim=-3)
    most, least = torch.max(img, dim=-3).values, torch.min(img, dim=-3).values
    grey, ones = most == least, torch.ones_like(most)
    span = most - least
    saturation = span / torch.where(grey, ones, most)
    divided = torch.where(grey, ones, span)
    from_red, from_green, from_blue = ((most - part) / divided for part in (red, green, blue))
    hue = (most == red) * (from_blue - from_green)
    hue = hue + ((most == green) & (most != red)) * (2.0 + from_red - from_blue)
    hue = hue + ((most != green) & (most != red)) * (4.0 + from_green - from_red)
    return torch.stack((torch.fmod(hue / 6.0 + 1.0, 1.0), saturation, most), dim=-3)


def _from_hsv(img: Any) -> Any:
    hue, saturation, value = img.unbind(dim=-3)
    sixth = torch.floor(hue * 6.0)
    rest = hue * 6.0 - sixth
    low = torch.clamp(value * (1.0 - saturation), 0.0, 1.0)
    falling = torch.clamp(value * (1.0 - saturation * rest), 0.0, 1.0)
    rising = torch.clamp(value * (1.0 - saturation * (1.0 - rest)), 0.0, 1.0)
    place = (sixth.to(torch.int64) % 6).unsqueeze(-3)
    orders = (
        (value, falling, low, low, rising, value), (rising, value, value, falling, low, low),
        (low, low, rising, value, value, falling),
    )  # fmt: skip
    channels = [torch.gather(torch.stack(parts, dim=-3), -3, place).squeeze(-3) for parts in orders]
    return torch.stack(channels, dim=-3)


def invert(img: Any) -> Any:
    """Light becomes dark."""
    if is_picture(img):
        return importlib.import_module("PIL.ImageOps").invert(img)
    return (1.0 if img.is_floating_point() else 255) - img


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = "bilinear",
    antialias: Any = True,
) -> Any:  # fmt: skip
    """A part of the picture in another size."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def _bell(size: int, sigma: float) -> Any:
    half = (size - 1) * 0.5
    values = torch.exp(-0.5 * (torch.linspace(-half, half, size) / sigma).pow(2))
    return values / values.sum()


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Blurred by a normal curve; by default a wide one for a large kernel. Raises ValueError for even sizes."""
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size) * (2 // len(kernel_size))
    if any(size % 2 == 0 or size < 0 for size in sizes):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    given = [sigma] if isinstance(sigma, (int, float)) else sigma
    sigmas = [size * 0.15 + 0.35 for size in sizes] if given is None else [float(s) for s in given] * (2 // len(given))
    if is_picture(img):
        return picture_of(gaussian_blur(pixels(img), sizes, sigmas), img.mode)
    across, down = _bell(sizes[0], sigmas[0]), _bell(sizes[1], sigmas[1])
    whole = img if img.ndim == 4 else img[None]
    channels = whole.shape[-3]
    kernel = torch.mm(down[:, None], across[None, :]).expand(channels, 1, sizes[1], sizes[0])
    around = [sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2]
    F = _functional()
    blurred = F.conv2d(F.pad(whole.to(torch.float32), around, mode="reflect"), kernel, groups=channels)
    blurred = blurred if img.is_floating_point() else torch.round(blurred)
    return (blurred if img.ndim == 4 else blurred[0]).to(img.dtype)


def rotate(img: Any, angle: float, interpolation: Any = "nearest", fill: Any = 0) -> Any:
    """Turned by degrees against the clock, around the middle, in the same size."""
    mode = getattr(interpolation, "value", interpolation)
    if is_picture(img):
        return img.rotate(angle, pillow().Resampling[mode.upper()], fillcolor=fill)
    rows, columns = size_of(img)
    turn = math.radians(-angle)
    matrix = tensor_of([[math.cos(turn), math.sin(turn), 0.0], [-math.sin(turn), math.cos(turn), 0.0]])
    grid = torch.ones(1, rows, columns, 3)
    grid[..., 0] = torch.linspace(-columns * 0.5 + 0.5, columns * 0.5 - 0.5, columns)
    grid[..., 1] = torch.linspace(-rows * 0.5 + 0.5, rows * 0.5 - 0.5, rows).unsqueeze(-1)
    scaled = matrix.unsqueeze(0).transpose(1, 2) / tensor_of([0.5 * columns, 0.5 * rows])
    places = grid.view(1, rows * columns, 3).bmm(scaled).view(1, rows, columns, 2)
    whole = (img if img.ndim == 4 else img[None]).to(torch.float32)
    masked = torch.cat([whole, torch.ones_like(whole[:, :1])], dim=1)
    out = _functional().grid_sample(
        masked, places.expand(len(whole), -1, -1, -1), mode=mode, padding_mode="zeros", align_corners=False
    )
    inside, out = out[:, -1:], out[:, :-1]
    out = out * inside + (1.0 - inside) * fill if mode != "nearest" else torch.where(inside < 0.5, float(fill), out)
    out = out if img.is_floating_point() else torch.round(out)
    return (out if img.ndim == 4 else out[0]).to(img.dtype)
