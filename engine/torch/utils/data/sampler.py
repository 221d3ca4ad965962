"""Samplers: in which order a DataLoader asks for samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from stridescope.engine import torch

T = TypeVar("T", covariant=True)
AT_ONCE = 32  # indices that are drawn together when they may repeat


class Sampler(Generic[T]):
    """Yields indices; subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """In order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """In random order, or drawn with replacement."""

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices one pass yields."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, generator = len(self.data_source), self.generator
        if generator is None:  # a generator of its own, so that drawing lazily is no matter
            seed = int(torch.empty((), dtype=torch.int64).random_().item())
            generator = torch.Generator()  # type: ignore[attr-defined]
            generator.manual_seed(seed)
        if self.replacement:
            whole, rest = divmod(self.num_samples, AT_ONCE)
            for count in (*itertools.repeat(AT_ONCE, whole), rest):
                yield from torch.randint(high=size, size=(count,), dtype=torch.int64, generator=generator).tolist()
        else:
            whole, rest = divmod(self.num_samples, size)
            for count in (*itertools.repeat(size, whole), rest):
                yield from torch.randperm(size, generator=generator).tolist()[:count]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices, in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given probabilities."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        _check_count("num_samples", num_samples)
        _check_flag("replacement", replacement)
        self.weights = torch.as_tensor(weights, dtype=torch.double)  # type: ignore[attr-defined]
        if self.weights.dim() != 1:
            shape = tuple(self.weights.shape)
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {shape}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = torch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of indices, from another sampler."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        _check_flag("drop_last", drop_last)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        total = len(self.sampler)  # type: ignore[arg-type]
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)


def _check_count(name: str, count: Any) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={count}")


def _check_flag(name: str, flag: Any) -> None:
    if not isinstance(flag, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={flag}")
