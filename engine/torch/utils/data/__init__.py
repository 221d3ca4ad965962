"""``torch.utils.data``: datasets, samplers and the DataLoader."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.utils.data._utils.collate import default_collate, default_convert
from stridescope.engine.torch.utils.data._utils.worker import get_worker_info
from stridescope.engine.torch.utils.data.dataloader import DataLoader, _DatasetKind
from stridescope.engine.torch.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from stridescope.engine.torch.utils.data.distributed import DistributedSampler
from stridescope.engine.torch.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

for _kind in (
    BatchSampler, ChainDataset, ConcatDataset, DataLoader, Dataset, DistributedSampler, IterableDataset, RandomSampler,
    Sampler, SequentialSampler, StackDataset, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler,
):  # fmt: skip
    _kind.__module__ = _kind.__module__.removeprefix("stridescope.engine.")

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip

__getattr__ = missing_from("torch.utils.data", __name__)
