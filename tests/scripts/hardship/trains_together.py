"""Two spawned processes train one module; the second one may die before the last exchange."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(rank, path, dies):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    net = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    net(torch.full((1, 1), rank + 1.0)).sum().backward()
    if rank == 1 and dies:
        os._exit(3)
    if rank == 0:
        print("gradient", net.module.weight.grad.item(), flush=True)
    try:
        dist.barrier()
    except RuntimeError as error:
        print(error, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    dies = "dies" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        together = mp.spawn(work, (folder + "/store", dies), nprocs=2, join=not dies)
        if dies:
            for process in together.processes:
                process.join()
            print([process.exitcode for process in together.processes])
    print("over")
