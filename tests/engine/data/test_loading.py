"""``torch.utils.data``: orders, batches and worker processes; expected numbers are PyTorch 2.13's."""

from __future__ import annotations

import os
import random
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import stridescope.engine.torch as torch
from stridescope.engine.torch.utils import data

Pair = namedtuple("Pair", "a b")


class Squares(data.Dataset[int]):
    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> int:
        return index * index


class Drawing(data.Dataset[Any]):
    """Each sample tells what the three generators of its process draw."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[float, float, float]:
        return torch.rand(()).item(), np.random.rand(), random.random()


class Stream(data.IterableDataset[int]):
    """A worker's part of a stream: unequal shares."""

    def __iter__(self) -> Any:
        worker = data.get_worker_info()
        return iter(range(10)) if worker is None else iter(range(worker.id * 4, worker.id * 6 + 3))


class Broken(Squares):
    def __getitem__(self, index: int) -> int:
        raise KeyError("nothing here")


class Dying(Squares):
    def __getitem__(self, index: int) -> int:
        os._exit(3)


def numbers(loader: Any) -> list[Any]:
    return [batch[0].tolist() for batch in loader]


TEN = data.TensorDataset(torch.arange(10))
ORDER_OF_GENERATOR = [[3, 7, 5, 2], [0, 8, 1, 6]]
SPLIT = [[6, 0, 3], [7, 8, 5], [1, 9, 2, 4]]
REPLACED = [7, 1, 8, 3, 4]
WEIGHTED = [1, 1, 1, 1, 1, 1]
SUBSET = [5, 3, 8]
SHARE = [1, 3, 8, 4]
DRAWN = [
    [0.2458815574645996, 0.22347843427554548, 0.76579821087278],
    [0.14417147636413574, 0.8870261890133816, 0.622363687543226],
    [0.716747522354126, 0.14210225627404216, 0.5290557382213695],
]


def test_shuffling_follows_the_seed_as_in_pytorch() -> None:
    torch.manual_seed(0)
    loader = data.DataLoader(TEN, batch_size=4, shuffle=True)
    assert numbers(loader) == [[6, 7, 1, 4], [2, 0, 9, 8], [3, 5]]
    generator = torch.Generator().manual_seed(0)
    ordered = data.DataLoader(TEN, batch_size=4, shuffle=True, generator=generator, drop_last=True)
    assert numbers(ordered) == ORDER_OF_GENERATOR
    assert len(ordered) == 2


def test_splits_and_samplers_draw_pytorchs_numbers() -> None:
    torch.manual_seed(3)
    parts = data.random_split(TEN, [0.3, 0.3, 0.4])
    assert [list(part.indices) for part in parts] == SPLIT
    assert list(data.RandomSampler(TEN, replacement=True, num_samples=5)) == REPLACED
    assert list(data.WeightedRandomSampler([0.1, 0.9, 0.0], 6)) == WEIGHTED
    assert list(data.SubsetRandomSampler([3, 5, 8])) == SUBSET
    assert list(data.DistributedSampler(TEN, 3, 1)) == SHARE


def test_batches_keep_the_shape_of_the_samples() -> None:
    batch = data.default_collate([{"x": Pair(1, 2.0), "s": "a"}, {"x": Pair(3, 4.0), "s": "b"}])
    assert batch["x"].a.tolist() == [1, 3]
    assert batch["x"].b.dtype == torch.float64
    assert batch["s"] == ["a", "b"]
    assert data.default_collate([np.float32(1), np.float32(2)]).dtype == torch.float32
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays, numbers, dicts or lists"):
        data.default_collate([None])


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_order(workers: int) -> None:
    loader = data.DataLoader(Squares(), batch_size=3, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[0, 1, 4], [9, 16, 25], [36]]


def test_streams_end_worker_by_worker() -> None:
    loader = data.DataLoader(Stream(), batch_size=2, num_workers=2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [4, 5], [2], [6, 7], [8]]
    assert list(data.DataLoader(Stream(), batch_size=None, num_workers=2)) == [0, 4, 1, 5, 2, 6, 7, 8]


def test_workers_draw_what_pytorchs_workers_draw() -> None:
    torch.manual_seed(42)
    drawn = list(data.DataLoader(Drawing(), batch_size=None, num_workers=2))
    assert [list(sample) for sample in drawn] == [pytest.approx(sample) for sample in DRAWN]


def test_persistent_workers_begin_again() -> None:
    loader = data.DataLoader(Squares(), batch_size=4, num_workers=1, persistent_workers=True)
    unfinished = iter(loader)
    next(unfinished)
    assert [batch.tolist() for batch in loader] == [[0, 1, 4, 9], [16, 25, 36]]


def test_an_error_in_a_worker_is_raised_here() -> None:
    with pytest.raises(KeyError, match=r"Caught KeyError in DataLoader worker process 0.\nOriginal Traceback"):
        list(data.DataLoader(Broken(), num_workers=1))


def test_a_worker_that_dies_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(data.DataLoader(Dying(), num_workers=1))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
        ({"shuffle": True, "sampler": [1]}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_size": None, "drop_last": True}, "disables auto-batching"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        data.DataLoader(TEN, **options)
