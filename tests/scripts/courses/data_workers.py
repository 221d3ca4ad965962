"""Datasets of one's own: workers, collating, samplers, iterable datasets, splits, a seeded order."""

import random

import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)


class Sentences(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"tokens": torch.arange(index % 5 + 1), "label": index % 2, "name": f"s{index}"}


def pad_collate(batch):
    lengths = torch.tensor([len(item["tokens"]) for item in batch])
    tokens = torch.nn.utils.rnn.pad_sequence([item["tokens"] for item in batch], batch_first=True, padding_value=-1)
    return tokens, lengths, torch.tensor([item["label"] for item in batch]), [item["name"] for item in batch]


def seed_worker(worker_id):
    random.seed(torch.initial_seed() % 2**32)


class Stream(IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        info = get_worker_info()
        step, first = (1, 0) if info is None else (info.num_workers, info.id)
        return iter(range(self.start + first, self.end, step))


class Noisy(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand(2), random.random()


def main():
    torch.manual_seed(0)
    loader = DataLoader(Sentences(10), batch_size=4, shuffle=True, num_workers=2, collate_fn=pad_collate)
    for tokens, lengths, labels, names in loader:
        print(tuple(tokens.shape), lengths.tolist(), labels.tolist(), names)
    for batch in DataLoader([(i, float(i), {"k": [i, str(i)]}) for i in range(4)], batch_size=2):
        print(batch)
    print(list(DataLoader(Stream(0, 7), batch_size=3, num_workers=2)))
    generator = torch.Generator().manual_seed(5)
    for values in DataLoader(Noisy(), batch_size=2, num_workers=1, worker_init_fn=seed_worker, generator=generator):
        print(values)
    train, valid, test = random_split(range(10), [0.6, 0.2, 0.2], generator=torch.Generator().manual_seed(42))
    print(list(train), valid.indices, list(test))
    weights = torch.tensor([0.1, 0.9, 0.1, 0.9])
    print(list(WeightedRandomSampler(weights, 8, generator=torch.Generator().manual_seed(1))))
    print(list(BatchSampler(RandomSampler(range(7), generator=torch.Generator().manual_seed(2)), 3, drop_last=True)))
    both = ConcatDataset([Subset(range(100), [5, 6]), range(3)])
    print(len(both), [both[i] for i in range(len(both))], both.cumulative_sizes)
    loader = DataLoader(range(6), batch_size=2, num_workers=1, persistent_workers=True, prefetch_factor=1)
    for _ in range(2):
        print([batch.tolist() for batch in loader], len(loader))
    try:
        DataLoader(range(3), batch_size=2, sampler=RandomSampler(range(3)), shuffle=True)
    except ValueError as error:
        print(error)
    try:
        next(iter(DataLoader([torch.zeros(1), torch.zeros(2)], batch_size=2)))
    except RuntimeError as error:
        print(error)


if __name__ == "__main__":
    main()
