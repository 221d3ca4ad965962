"""``torchvision.utils``: many pictures in one."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Tensor
from stridescope.engine.torchvision.images import picture_of


@no_grad()
def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Pictures of one size side by side, ``nrow`` in a row; raises TypeError for what is no tensor."""
    if not (isinstance(tensor, Tensor) or (isinstance(tensor, list) and all(isinstance(t, Tensor) for t in tensor))):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    pictures = _as_batch(torch.stack(tensor, dim=0) if isinstance(tensor, list) else tensor)
    if normalize:
        pictures = pictures.clone()
        for part in pictures if scale_each else [pictures]:
            low, high = value_range or (float(part.min()), float(part.max()))
            part.clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))
    if pictures.size(0) == 1:
        return pictures.squeeze(0)  # type: ignore[no-any-return]
    return _laid_out(pictures, nrow, padding, pad_value)


def _as_batch(tensor: Tensor) -> Tensor:
    """Four dims and, for grey pictures, three equal channels."""
    tensor = tensor.unsqueeze(0) if tensor.dim() == 2 else tensor
    if tensor.dim() == 3:
        tensor = torch.cat((tensor, tensor, tensor), 0) if tensor.size(0) == 1 else tensor
        return tensor.unsqueeze(0)  # type: ignore[no-any-return]
    return torch.cat((tensor, tensor, tensor), 1) if tensor.size(1) == 1 else tensor


def _laid_out(pictures: Tensor, nrow: int, padding: int, pad_value: float) -> Tensor:
    count = pictures.size(0)
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = pictures.size(2) + padding, pictures.size(3) + padding
    shape = (pictures.size(1), height * rows + padding, width * columns + padding)
    grid: Tensor = pictures.new_full(shape, pad_value)
    for number in range(count):
        row, column = divmod(number, columns)
        place = grid.narrow(1, row * height + padding, height - padding)
        place.narrow(2, column * width + padding, width - padding).copy_(pictures[number])
    return grid


@no_grad()
def save_image(tensor: Any, fp: Any, format: str | None = None, **options: Any) -> None:
    """Write a grid of pictures to a file."""
    grid = make_grid(tensor, **options)
    picture = picture_of(grid.mul(255).add_(0.5).clamp_(0, 255).to("cpu", torch.uint8))
    picture.save(fp, format=format)
