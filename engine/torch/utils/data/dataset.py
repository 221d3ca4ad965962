"""Datasets: what a DataLoader draws its samples from."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from stridescope.engine import torch
from stridescope.engine.ops.generator import default_generator
from stridescope.engine.tensor import Tensor

T = TypeVar("T", covariant=True)


def _require(holds: bool, complaint: str) -> None:
    """Datasets answer bad arguments with AssertionError, as PyTorch's do."""
    if not holds:
        raise AssertionError(complaint)


class Dataset(Generic[T]):
    """Samples by index; subclasses define ``__getitem__`` and mostly ``__len__``."""

    def __getitem__(self, index: Any) -> T:
        """One sample."""
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Samples from a stream; subclasses define ``__iter__``."""

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A sample is a tuple of rows, one of each tensor."""

    def __init__(self, *tensors: Tensor) -> None:
        rows = [tensor.size(0) for tensor in tensors]
        _require(all(count == rows[0] for count in rows), "Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """A sample is a tuple (or a dict) of samples, one of each dataset.

    Raises ValueError when the datasets differ in length or both forms are used at once.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not (args or kwargs):
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in (args or kwargs.values())]
        if any(length != lengths[0] for length in lengths):
            raise ValueError("Size mismatch between datasets")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {key: dataset[index] for key, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Several samples; a dataset that can give them all at once is asked once."""
        named = isinstance(self.datasets, dict)
        columns = [_several(dataset, indices) for dataset in (self.datasets.values() if named else self.datasets)]
        rows = zip(*columns, strict=True)
        return [dict(zip(self.datasets, row, strict=True)) if named else row for row in rows]

    def __len__(self) -> int:
        return self._length


def _several(dataset: Any, indices: list[int]) -> list[Any]:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items: list[Any] = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset[Any]):
    """One dataset after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        _require(len(self.datasets) > 0, "datasets should not be an empty iterable")
        for dataset in self.datasets:
            _require(not isinstance(dataset, IterableDataset), "ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each dataset ends."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx = len(self) + idx
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """One stream after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            _require(isinstance(dataset, IterableDataset), "ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[T]):
    """Some of a dataset's samples."""

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your "
                "custom logic. A simple implementation:\n\ndef __getitems__(self, indices):\n    return "
                "[self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Several samples."""
        chosen = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            found: list[Any] = self.dataset.__getitems__(chosen)  # type: ignore[attr-defined]
            return found
        return [self.dataset[index] for index in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = default_generator) -> list[Subset[Any]]:
    """Split a dataset at random into parts of given lengths, or of given shares that sum to 1.

    Raises ValueError when the lengths don't sum to the dataset's.
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _from_shares(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    counts = [int(length) for length in lengths]
    order = torch.randperm(sum(counts), generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def _from_shares(total: int, shares: Sequence[float]) -> list[int]:
    """Each share rounded down; what is left goes to the first parts, one each."""
    for number, share in enumerate(shares):
        if share < 0 or share > 1:
            raise ValueError(f"Fraction at index {number} is not between 0 and 1")
    counts = [math.floor(total * share) for share in shares]
    for number in range(total - sum(counts)):
        counts[number % len(counts)] += 1
    for number, count in enumerate(counts):
        if count == 0:
            text = f"Length of split at index {number} is 0. This might result in an empty dataset."
            warnings.warn(text, stacklevel=3)
    return counts
