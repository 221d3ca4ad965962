"""``DistributedSampler``: one process's share of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.utils.data.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index, from ``rank`` on; all shares have the same length.

    Both are by default those of the process group, which must be there then (ValueError).
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from stridescope.engine.torch import distributed  # a loader without it does without it

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.seed, self.shuffle, self.drop_last = 0, seed, shuffle, drop_last
        uneven = drop_last and len(dataset) % num_replicas != 0
        self.num_samples = math.ceil((len(dataset) - (num_replicas if uneven else 0)) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = torch.Generator()  # type: ignore[attr-defined]
            generator.manual_seed(self.seed + self.epoch)
            order = torch.randperm(len(self.dataset), generator=generator).tolist()
        if not self.drop_last:
            missing = self.total_size - len(order)
            order += (order * math.ceil(missing / len(order)))[:missing]
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle differently from now on; all processes must do it."""
        self.epoch = epoch
