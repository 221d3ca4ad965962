"""``torchvision.transforms.v2``: the newer transforms, as far as they work on tensors and pictures."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torchvision.images import is_picture
from stridescope.engine.torchvision.transforms import SHARED, functional

globals().update({name: kind for name, kind in SHARED.items() if name != "ConvertImageDtype"})


class ToImage(Module):
    """A picture as a tensor, channels first, numbers as they are."""

    def forward(self, image: Any) -> Any:
        """The tensor."""
        if isinstance(image, Tensor):
            return image
        return functional.pil_to_tensor(image) if is_picture(image) else functional.to_tensor(image)


class ToDtype(Module):
    """Another dtype; with ``scale``, bytes from 0 to 255 are floats from 0 to 1."""

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def forward(self, image: Any) -> Any:
        """The converted tensor."""
        return functional.convert_image_dtype(image, self.dtype) if self.scale else image.to(self.dtype)


__getattr__ = attribute_of("torchvision.transforms.v2")

__all__ = [*SHARED, "ToDtype", "ToImage"]
