"""Random transforms; from the same seed they draw what torchvision's draw."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from stridescope.engine import torch
from stridescope.engine.ops.from_data import tensor as tensor_of
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torchvision.images import size_of
from stridescope.engine.torchvision.transforms import colours
from stridescope.engine.torchvision.transforms import functional as F
from stridescope.engine.torchvision.transforms.classes import InterpolationMode


def _uniform(low: Any, high: Any) -> float:
    return float(torch.empty(1).uniform_(float(low), float(high)).item())


def _place(room: int) -> int:
    return int(torch.randint(0, room + 1, size=(1,)).item())


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[-1])


class RandomResizedCrop(Module):
    """A part of random size and shape, in one size."""

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: Any = True,
    ) -> None:
        super().__init__()
        self.size, self.scale, self.ratio = _pair(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Where to cut: ten tries, then the middle."""
        rows, columns = size_of(img)
        logarithms = torch.log(tensor_of(list(ratio)))
        for _ in range(10):
            area = rows * columns * _uniform(*scale)
            shape = float(torch.exp(torch.empty(1).uniform_(logarithms[0].item(), logarithms[1].item())).item())
            width, height = int(round(math.sqrt(area * shape))), int(round(math.sqrt(area / shape)))
            if 0 < width <= columns and 0 < height <= rows:
                return _place(rows - height), _place(columns - width), height, width
        shape = min(max(columns / rows, min(ratio)), max(ratio))
        width = columns if columns / rows <= max(ratio) else int(round(rows * shape))
        height = rows if columns / rows >= min(ratio) else int(round(columns / shape))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def forward(self, img: Any) -> Any:
        """The part in the wanted size."""
        where = self.get_params(img, self.scale, self.ratio)
        return colours.resized_crop(img, *where, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        rounded = [tuple(round(value, 4) for value in pair) for pair in (self.scale, self.ratio)]
        way = getattr(self.interpolation, "value", self.interpolation)
        return (
            f"RandomResizedCrop(size={self.size}, scale={rounded[0]}, ratio={rounded[1]}, interpolation={way}, "
            f"antialias={self.antialias})"
        )


class RandomRotation(Module):
    """Turned by up to ``degrees``, or between two angles."""

    def __init__(self, degrees: Any, interpolation: Any = InterpolationMode.NEAREST, fill: Any = 0) -> None:
        super().__init__()
        self.degrees = [-float(degrees), float(degrees)] if isinstance(degrees, (int, float)) else list(degrees)
        self.interpolation, self.fill = interpolation, fill

    def forward(self, img: Any) -> Any:
        """The turned picture."""
        return colours.rotate(img, _uniform(*self.degrees), self.interpolation, self.fill)

    def __repr__(self) -> str:
        way = getattr(self.interpolation, "value", self.interpolation)
        return f"RandomRotation(degrees={self.degrees}, interpolation={way}, expand=False, fill={self.fill})"


class ColorJitter(Module):
    """Random brightness, contrast, saturation and hue, in random order."""

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        super().__init__()
        self.brightness = _range("brightness", brightness)
        self.contrast = _range("contrast", contrast)
        self.saturation = _range("saturation", saturation)
        self.hue = _range("hue", hue, middle=0.0, bounds=(-0.5, 0.5))

    def forward(self, img: Any) -> Any:
        """The changed picture."""
        order = torch.randperm(4).tolist()
        ranges = (self.brightness, self.contrast, self.saturation, self.hue)
        drawn = [None if bounds is None else _uniform(*bounds) for bounds in ranges]
        for which in order:
            if drawn[which] is not None:
                img = _ADJUST[which](img, drawn[which])
        return img

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in ("brightness", "contrast", "saturation", "hue"))
        return f"ColorJitter({shown})"


_ADJUST: tuple[Any, ...] = (
    colours.adjust_brightness, colours.adjust_contrast, colours.adjust_saturation, colours.adjust_hue,
)  # fmt: skip


def _range(
    name: str, value: Any, middle: float = 1.0, bounds: tuple[float, float] = (0.0, math.inf)
) -> tuple[float, float] | None:
    """The range to draw from; None when nothing would change. Raises ValueError outside of the bounds."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low, high = middle - value, middle + value
        low = max(low, 0.0) if middle == 1.0 else low
    else:
        low, high = value
    if not bounds[0] <= low <= high <= bounds[1]:
        raise ValueError(f"{name} values should be between {bounds}, but got {[low, high]}.")
    return None if low == high == middle else (float(low), float(high))


class RandomGrayscale(Module):
    """Grey with probability ``p``."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """The picture, grey or not."""
        channels = len(img.getbands()) if hasattr(img, "getbands") else img.shape[-3]
        return F.rgb_to_grayscale(img, channels) if torch.rand(1) < self.p else img

    def __repr__(self) -> str:
        return f"RandomGrayscale(p={self.p})"


class RandomInvert(Module):
    """Inverted with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """The picture, inverted or not."""
        return colours.invert(img) if torch.rand(1).item() < self.p else img

    def __repr__(self) -> str:
        return f"RandomInvert(p={self.p})"


class GaussianBlur(Module):
    """Blurred by a normal curve of random width."""

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = _pair(kernel_size)
        self.sigma = (sigma, sigma) if isinstance(sigma, (int, float)) else tuple(sigma)

    def forward(self, img: Any) -> Any:
        """The blurred picture."""
        width = _uniform(*self.sigma)
        return colours.gaussian_blur(img, self.kernel_size, [width, width])

    def __repr__(self) -> str:
        return f"GaussianBlur(kernel_size={self.kernel_size}, sigma={self.sigma})"


class RandomErasing(Module):
    """A random rectangle of a tensor erased, with probability ``p``."""

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    def _rectangle(self, img: Any) -> tuple[int, int, int, int, Any]:
        channels, rows, columns = img.shape[-3:]
        logarithms = torch.log(tensor_of(list(self.ratio)))
        for _ in range(10):
            area = rows * columns * _uniform(*self.scale)
            shape = float(torch.exp(torch.empty(1).uniform_(logarithms[0].item(), logarithms[1].item())).item())
            height, width = int(round(math.sqrt(area * shape))), int(round(math.sqrt(area / shape)))
            if not (height < rows and width < columns):
                continue
            if self.value == "random":
                value = torch.empty([channels, height, width], dtype=torch.float32).normal_()
            else:
                given = self.value if isinstance(self.value, (list, tuple)) else [self.value]
                value = tensor_of([float(each) for each in given])[:, None, None]
            return _place(rows - height), _place(columns - width), height, width, value
        return 0, 0, rows, columns, img

    def forward(self, img: Any) -> Any:
        """The tensor, with or without the rectangle."""
        if not torch.rand(1) < self.p:
            return img
        top, left, height, width, value = self._rectangle(img)
        out = img if self.inplace else img.clone()
        out[..., top : top + height, left : left + width] = value
        return out

    def __repr__(self) -> str:
        return (
            f"RandomErasing(p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, "
            f"inplace={self.inplace})"
        )


class RandomApply(Module):
    """Transforms applied with probability ``p``, all or none."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img: Any) -> Any:
        """The picture, transformed or not."""
        if self.p < torch.rand(1):
            return img
        for transform in self.transforms:
            img = transform(img)
        return img


class RandomChoice:
    """One of several transforms."""

    def __init__(self, transforms: Sequence[Any], p: Sequence[float] | None = None) -> None:
        self.transforms, self.p = transforms, p

    def __call__(self, *args: Any) -> Any:
        """Apply one, drawn by Python's ``random``."""
        return random.choices(self.transforms, weights=self.p)[0](*args)


class RandomOrder:
    """Transforms in random order."""

    def __init__(self, transforms: Sequence[Any]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        """Apply all, in an order drawn by Python's ``random``."""
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for index in order:
            img = self.transforms[index](img)
        return img


class FiveCrop(Module):
    """The four corners and the middle."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = _pair(size)

    def forward(self, img: Any) -> Any:
        """The five parts."""
        (rows, columns), (height, width) = size_of(img), self.size
        if width > columns or height > rows:
            raise ValueError(f"Requested crop size {self.size} is bigger than input size {(rows, columns)}")
        corners = [(0, 0), (0, columns - width), (rows - height, 0), (rows - height, columns - width)]
        return (*(F.crop(img, *corner, height, width) for corner in corners), F.center_crop(img, self.size))
