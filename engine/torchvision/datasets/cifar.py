"""CIFAR-10 and CIFAR-100, from their Python files."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np

from stridescope.engine.torchvision.datasets.vision import SplitDataset, not_there
from stridescope.engine.torchvision.images import picture_of


class _ArraysOnly(pickle.Unpickler):
    """Reads arrays, lists and texts; the files hold nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {"_reconstruct", "ndarray", "dtype", "scalar"}
        if module.split(".")[0] == "numpy" and name in allowed:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"a CIFAR file holds no {module}.{name}")


class CIFAR10(SplitDataset):
    """Colour pictures of 32 by 32 pixels in 10 classes; raises RuntimeError when the files are not there."""

    base_folder = "cifar-10-batches-py"
    train_files = tuple(f"data_batch_{number}" for number in range(1, 6))
    test_files: tuple[str, ...] = ("test_batch",)
    names_file, names_key, labels_key = "batches.meta", "label_names", "labels"

    def _load(self) -> None:
        batches = [self._read(name) for name in (self.train_files if self.train else self.test_files)]
        self.targets = [label for batch in batches for label in batch[self.labels_key]]
        self.data = np.vstack([batch["data"] for batch in batches]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.classes = self._read(self.names_file)[self.names_key]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}

    def _read(self, name: str) -> Any:
        path = os.path.join(self.root, self.base_folder, name)
        if not os.path.exists(path):
            raise not_there(type(self).__name__, self.root, f"the folder {self.base_folder}")
        with open(path, "rb") as file:
            return _ArraysOnly(file, encoding="latin1").load()

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.transformed(picture_of(self.data[index]), self.targets[index])


class CIFAR100(CIFAR10):
    """The same with 100 classes."""

    base_folder = "cifar-100-python"
    train_files = ("train",)
    test_files = ("test",)
    names_file, names_key, labels_key = "meta", "fine_label_names", "fine_labels"
