"""MNIST and FashionMNIST, from their own files."""

from __future__ import annotations

import gzip
import os
from typing import Any

import numpy as np

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torchvision.datasets.vision import SplitDataset, not_there
from stridescope.engine.torchvision.images import picture_of

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class MNIST(SplitDataset):
    """Digits of 28 by 28 pixels; raises RuntimeError when the files are not there."""

    classes = [
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven", "8 - eight",
        "9 - nine",
    ]  # fmt: skip

    def _load(self) -> None:
        part = "train" if self.train else "t10k"
        self.data = self._read(f"{part}-images-idx3-ubyte")
        self.targets = self._read(f"{part}-labels-idx1-ubyte").to(torch.int64)

    @property
    def raw_folder(self) -> str:
        """Where the files belong."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: number for number, name in enumerate(self.classes)}

    def _read(self, name: str) -> Tensor:
        path = os.path.join(self.raw_folder, name)
        for candidate, opener in ((path, open), (f"{path}.gz", gzip.open)):
            if os.path.exists(candidate):
                with opener(candidate, "rb") as file:
                    return _idx(file.read(), candidate)
        raise not_there(type(self).__name__, self.raw_folder, f"{name} (or {name}.gz)")

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.transformed(picture_of(self.data[index].numpy(), mode="L"), int(self.targets[index]))


class FashionMNIST(MNIST):
    """Clothes of 28 by 28 pixels."""

    classes = [
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ]  # fmt: skip


def _idx(data: bytes, path: str) -> Tensor:
    """The array of a file in the IDX format; raises ValueError for a damaged one."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise ValueError(f"{path} is no file in the IDX format")
    dims, kind = data[3], np.dtype(_TYPES[data[2]])
    shape = tuple(np.frombuffer(data, ">u4", dims, 4).tolist())
    if len(data) != 4 + 4 * dims + int(np.prod(shape)) * kind.itemsize:
        raise ValueError(f"{path} is cut off: it should hold {shape}")
    values = np.frombuffer(data, kind, -1, 4 + 4 * dims).reshape(shape)
    tensor: Tensor = torch.from_numpy(values.astype(kind.newbyteorder("=")))
    return tensor
