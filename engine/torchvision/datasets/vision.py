"""``VisionDataset``: pictures with targets, and what is done to both."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from stridescope.engine.torch.utils.data.dataset import Dataset

Transform = Callable[[Any], Any] | None


class VisionDataset(Dataset[Any]):
    """A dataset below a folder ``root``."""

    def __init__(self, root: Any = None, transform: Transform = None, target_transform: Transform = None) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        self.transform, self.target_transform = transform, target_transform

    def transformed(self, picture: Any, target: Any) -> tuple[Any, Any]:
        """A sample as the user wants it."""
        picture = picture if self.transform is None else self.transform(picture)
        return picture, target if self.target_transform is None else self.target_transform(target)

    def __len__(self) -> int:
        raise NotImplementedError

    def __repr__(self) -> str:
        lines = [f"Dataset {type(self).__name__}", f"    Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"    Root location: {self.root}")
        return "\n".join(lines)


class SplitDataset(VisionDataset):
    """A dataset of pictures ``data`` with a part to train on and one to test on; ``_load`` reads the chosen part."""

    data: Any

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform)
        self.train = train
        self._load()

    def _load(self) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.data)


def not_there(name: str, folder: Any, files: str) -> RuntimeError:
    """The error for a dataset whose files are not on disk."""
    return RuntimeError(f"{name} is not in {folder}, and Stridescope downloads nothing: put {files} there")
