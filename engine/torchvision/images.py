"""Pictures as Pillow has them, and as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._pillow import pillow


def is_picture(value: Any) -> bool:
    """Whether a value is one of Pillow's images."""
    return type(value).__module__.startswith("PIL.")


def pixels(picture: Any) -> Tensor:
    """A picture as a tensor of channels, rows and columns, in its own numbers."""
    array = np.array(picture, np.int32 if picture.mode == "I" else None, copy=True)
    if picture.mode == "1":
        array = array.astype(np.uint8) * 255
    tensor: Tensor = torch.from_numpy(array if array.ndim == 3 else array[:, :, None])
    return tensor.permute(2, 0, 1).contiguous()  # type: ignore[no-any-return]


def picture_of(pic: Any, mode: str | None = None) -> Any:
    """A tensor of channels, rows and columns, or an array of rows, columns and channels, as a picture."""
    if isinstance(pic, Tensor):
        if pic.is_floating_point() and mode != "F":
            pic = pic.mul(255).byte()
        pic = (pic if pic.dim() == 3 else pic.unsqueeze(0)).permute(1, 2, 0).numpy()
    array = pic[:, :, 0] if pic.ndim == 3 and pic.shape[2] == 1 else pic
    image = pillow().fromarray(array)
    return image if mode is None or image.mode == mode else image.convert(mode)


def size_of(image: Any) -> tuple[int, int]:
    """Height and width."""
    if is_picture(image):
        return image.height, image.width
    return image.shape[-2], image.shape[-1]
