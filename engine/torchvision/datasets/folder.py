"""Datasets from a folder of pictures, and from nothing at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch._pillow import pillow
from stridescope.engine.torchvision.datasets.vision import Transform, VisionDataset
from stridescope.engine.torchvision.images import picture_of

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def default_loader(path: str) -> Any:
    """A picture in three channels."""
    with pillow().open(path) as picture:
        return picture.convert("RGB")


class ImageFolder(VisionDataset):
    """Pictures in one folder for each class; raises FileNotFoundError when there are none."""

    def __init__(
        self,
        root: Any,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Callable[[str], Any] = default_loader,
    ) -> None:
        super().__init__(root, transform, target_transform)
        self.loader = loader
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"Couldn't find any class folder in {self.root}.")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.samples = self.imgs = [
            (os.path.join(folder, name), number)
            for number, kind in enumerate(self.classes)
            for folder, _, names in sorted(os.walk(os.path.join(self.root, kind), followlinks=True))
            for name in sorted(names)
            if name.lower().endswith(ENDINGS)
        ]
        if empty := sorted(set(self.class_to_idx.values()) - {number for _, number in self.samples}):
            missing = ", ".join(self.classes[number] for number in empty)
            raise FileNotFoundError(f"Found no valid file for the classes {missing}. Supported: {', '.join(ENDINGS)}")
        self.targets = [number for _, number in self.samples]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self.transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class FakeData(VisionDataset):
    """Random pictures with random classes; the same index gives the same picture."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform = None,
        target_transform: Transform = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(None, transform, target_transform)
        self.size, self.num_classes, self.image_size = size, num_classes, image_size
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        before = torch.get_rng_state()  # type: ignore[attr-defined]
        torch.manual_seed(index + self.random_offset)  # type: ignore[attr-defined]
        values = torch.randn(*self.image_size)
        target = torch.randint(0, self.num_classes, size=(1,), dtype=torch.long)[0]
        torch.set_rng_state(before)  # type: ignore[attr-defined]
        return self.transformed(picture_of(values), target.item())

    def __len__(self) -> int:
        return self.size
