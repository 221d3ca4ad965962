"""Batches come from worker processes of a DataLoader, then from a pool of multiprocessing."""

import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor([index, index * index])


def cube(number):
    return int((torch.tensor(number) ** 3).item())


if __name__ == "__main__":
    for batch in DataLoader(Squares(), batch_size=4, num_workers=2):
        print(batch.tolist())
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(cube, [1, 2, 3]))
