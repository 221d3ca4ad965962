"""``torchvision.transforms``."""

from __future__ import annotations

import importlib
from typing import Any

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torchvision.transforms import functional
from stridescope.engine.torchvision.transforms.classes import (
    CenterCrop,
    Compose,
    ConvertImageDtype,
    Grayscale,
    InterpolationMode,
    Lambda,
    Normalize,
    Pad,
    PILToTensor,
    RandomCrop,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    Resize,
    ToPILImage,
    ToTensor,
)

_missing = attribute_of("torchvision.transforms")


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{__name__}.v2") if name == "v2" else _missing(name)


__all__ = [
    "CenterCrop", "Compose", "ConvertImageDtype", "Grayscale", "InterpolationMode", "Lambda", "Normalize",
    "PILToTensor", "Pad", "RandomCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "Resize", "ToPILImage",
    "ToTensor", "functional",
]  # fmt: skip
