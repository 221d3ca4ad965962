"""``torchvision.transforms``."""

from __future__ import annotations

import importlib
from typing import Any

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torchvision.transforms import augmentations, classes, colours, functional

# What both the old and the new transforms have.
SHARED: dict[str, Any] = {
    name: value
    for part in (classes, augmentations)
    for name, value in vars(part).items()
    if isinstance(value, type) and value.__module__ == part.__name__ and not name.startswith("_")
}
globals().update(SHARED)
for _name in (
    "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "gaussian_blur", "invert",
    "resized_crop", "rotate",
):  # fmt: skip
    setattr(functional, _name, getattr(colours, _name))
_missing = attribute_of("torchvision.transforms")


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{__name__}.v2") if name == "v2" else _missing(name)


__all__ = [*SHARED, "functional"]
