"""The transforms as objects that are called with a picture, for use in ``Compose``."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torchvision.images import size_of
from stridescope.engine.torchvision.transforms import functional as F


class InterpolationMode(enum.Enum):
    """How pixels between pixels are found."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


class Compose:
    """One transform after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        """Apply them all."""
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        lines = "".join(f"\n    {transform}" for transform in self.transforms)
        return f"{type(self).__name__}({lines}\n)"


class _Plain:
    """A transform without options."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToTensor(_Plain):
    """Channels first, bytes as floats from 0 to 1."""

    def __call__(self, pic: Any) -> Any:
        """The tensor of a picture."""
        return F.to_tensor(pic)


class PILToTensor(_Plain):
    """Channels first, numbers as they are."""

    def __call__(self, pic: Any) -> Any:
        """The tensor of a picture."""
        return F.pil_to_tensor(pic)


class ToPILImage:
    """A tensor or an array as a picture."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        """The picture."""
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return "ToPILImage()" if self.mode is None else f"ToPILImage(mode={self.mode})"


class Lambda:
    """Any function; raises TypeError for what can't be called."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        """Call it."""
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Normalize(Module):
    """Subtract a mean and divide by a deviation for each channel."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Any) -> Any:
        """The normalised tensor."""
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class ConvertImageDtype(Module):
    """The same picture in another dtype."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Any) -> Any:
        """The converted tensor."""
        return F.convert_image_dtype(image, self.dtype)


class Resize(Module):
    """Another size: (height, width), or one number for the shorter side."""

    def __init__(
        self,
        size: Any,
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: Any = True,
    ) -> None:
        super().__init__()
        self.size, self.interpolation, self.max_size, self.antialias = size, interpolation, max_size, antialias

    def forward(self, img: Any) -> Any:
        """The resized picture."""
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        way = getattr(self.interpolation, "value", self.interpolation)
        return f"Resize(size={self.size}, interpolation={way}, max_size={self.max_size}, antialias={self.antialias})"


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[-1])


class CenterCrop(Module):
    """The middle of a picture."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = _pair(size)

    def forward(self, img: Any) -> Any:
        """The middle."""
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"CenterCrop(size={self.size})"


class Pad(Module):
    """A border around a picture."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        """The larger picture."""
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return f"Pad(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class RandomCrop(Module):
    """A part of a picture at a random place."""

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        self.size, self.padding, self.pad_if_needed = _pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Where to cut; raises ValueError when the picture is smaller than the cut."""
        (rows, columns), (height, width) = size_of(img), output_size
        if rows < height or columns < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {(rows, columns)}")
        if (rows, columns) == (height, width):
            return 0, 0, rows, columns
        top = torch.randint(0, rows - height + 1, size=(1,)).item()
        left = torch.randint(0, columns - width + 1, size=(1,)).item()
        return top, left, height, width

    def forward(self, img: Any) -> Any:
        """The part."""
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            (rows, columns), (height, width) = size_of(img), self.size
            if columns < width:
                img = F.pad(img, [width - columns, 0], self.fill, self.padding_mode)
            if rows < height:
                img = F.pad(img, [0, height - rows], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"RandomCrop(size={self.size}, padding={self.padding})"


class _RandomFlip(Module):
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    flip: Callable[[Any], Any]

    def forward(self, img: Any) -> Any:
        """The picture, flipped or not."""
        return type(self).flip(img) if torch.rand(1) < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomHorizontalFlip(_RandomFlip):
    """Left becomes right, with probability ``p``."""

    flip = staticmethod(F.hflip)


class RandomVerticalFlip(_RandomFlip):
    """Top becomes bottom, with probability ``p``."""

    flip = staticmethod(F.vflip)


class Grayscale(Module):
    """Brightness alone."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        """The grey picture."""
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self) -> str:
        return f"Grayscale(num_output_channels={self.num_output_channels})"
