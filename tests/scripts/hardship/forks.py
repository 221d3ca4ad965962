"""Works in forked and spawned processes."""

import multiprocessing

import torch


def square(x):
    total = 0
    for _ in range(x):
        total += x
    return int(torch.tensor(total))


if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(square, range(4)))
