"""What the ranks of a job do together, in two and three processes."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def exchanges(rank, size):
    yield "all_reduce", lambda: (x := torch.arange(4.0) + rank, dist.all_reduce(x))[0]
    for op in ("PRODUCT", "MIN", "MAX", "AVG"):
        yield op, lambda: (x := torch.tensor([1.5, float("nan"), 3, 7]) + rank, dist.all_reduce(x, getattr(dist.ReduceOp, op)))[0]
    for op in ("BAND", "BOR", "BXOR", "PRODUCT"):
        yield op, lambda: (x := torch.tensor([1, 2, 3, 7]) + rank, dist.all_reduce(x, op=getattr(dist.ReduceOp, op)))[0]
    for dtype in (torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int32, torch.bool):
        yield dtype, lambda: (x := ((torch.arange(4) * 40 + rank) % 100).to(dtype), dist.all_reduce(x))[0]
    yield "complex", lambda: (x := torch.tensor([1 + 2j, rank]), dist.all_reduce(x))[0]
    yield "leaf", lambda: (x := torch.ones(2, requires_grad=True), dist.all_reduce(x))[0]
    yield "a result keeps its history", lambda: (x := torch.ones(2, requires_grad=True) * 2, dist.all_reduce(x))[0]
    yield "transposed", lambda: (x := torch.arange(6.0).view(2, 3).t() + rank, dist.all_reduce(x))[0]
    yield "broadcast", lambda: (x := torch.arange(3) * rank, dist.broadcast(x, 1))[0]
    yield "reduce", lambda: (x := torch.ones(2) * rank, dist.reduce(x, 1))[0] if rank == 1 else dist.reduce(torch.ones(2) * rank, 1)
    yield "all_gather", lambda: (x := [torch.zeros(2) for _ in range(size)], dist.all_gather(x, torch.ones(2) * rank))[0]
    yield "all_gather_single", lambda: (x := torch.zeros(2 * size), dist.all_gather_single(x, torch.ones(2) * rank))[0]
    yield "gather", lambda: (x := [torch.zeros(2) for _ in range(size)] if rank == 0 else None, dist.gather(torch.ones(2) * rank, x))[0]
    yield "scatter", lambda: (x := torch.zeros(2), dist.scatter(x, [torch.ones(2) * r for r in range(size)] if rank == 0 else None))[0]
    yield "reduce_scatter", lambda: (x := torch.zeros(2), dist.reduce_scatter(x, [torch.ones(2) * r + rank for r in range(size)]))[0]
    yield "reduce_scatter_single", lambda: (x := torch.zeros(2), dist.reduce_scatter_single(x, torch.arange(2.0 * size) + rank))[0]
    yield "all_to_all", lambda: (x := [torch.zeros(1) for _ in range(size)], dist.all_to_all(x, [torch.ones(1) * (10 * rank + r) for r in range(size)]))[0]
    yield "all_to_all_single", lambda: (x := torch.zeros(size), dist.all_to_all_single(x, torch.arange(float(size)) + 10 * rank))[0]
    yield "all_gather_object", lambda: (x := [None] * size, dist.all_gather_object(x, {"rank": rank}))[0]
    yield "gather_object", lambda: (x := [None] * size if rank == 0 else None, dist.gather_object(("of", rank), x))[0]
    yield "broadcast_object_list", lambda: (x := ["a", [1, 2]] if rank == 0 else [None, None], dist.broadcast_object_list(x, 0))[0]
    yield "scatter_object_list", lambda: (x := [None], dist.scatter_object_list(x, [f"for {r}" for r in range(size)] if rank == 0 else None))[0]
    yield "barriers", lambda: (dist.barrier(), dist.monitored_barrier())


def letters(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    x = torch.zeros(2)
    ops = [dist.P2POp(dist.isend, torch.ones(2) * rank, after), dist.P2POp(dist.irecv, x, before)]
    yield "round", lambda: ([work.wait() for work in dist.batch_isend_irecv(ops)], x)
    if rank == 0:
        yield "sends", lambda: (dist.send(torch.ones(1), 1, tag=1), dist.send(torch.ones(1) * 2, 1, tag=2), dist.send_object_list(["x", 1], 1))
        yield "for anyone", lambda: dist.send(torch.ones(1) * 3, 1)
    if rank == 1:
        y, z, o = torch.zeros(1), torch.zeros(1), [None, None]
        yield "receives", lambda: (dist.recv(y, 0, tag=1), dist.recv(z, 0, tag=2), y, z, dist.recv_object_list(o, 0), o)
        yield "from anyone", lambda: (dist.recv(y), y)
    yield "to itself", lambda: dist.send(x, rank)


def works(rank, size):
    x = torch.ones(1) * rank
    work = dist.all_reduce(x, async_op=True)
    yield "work", lambda: (work.wait(), work.is_completed(), x, work.get_future().value())
    then = dist.broadcast(x, 0, async_op=True).get_future().then(lambda done: done.value()[0] * 10)
    yield "then", then.wait
    later = [dist.all_reduce(torch.ones(1) * n, async_op=True) for n in range(3)]
    yield "backwards", lambda: [work.get_future().wait() for work in reversed(later)]
    yield "barrier", lambda: (work := dist.barrier(async_op=True), work.wait(), work.get_future().value())[1:]


def groups(rank, size):
    last = dist.new_group([size - 1])
    everyone = dist.new_group()
    yield "ranks", lambda: (dist.get_rank(last), dist.get_world_size(last), dist.get_process_group_ranks(everyone))
    yield "of all", lambda: (x := torch.ones(1), dist.all_reduce(x, group=everyone))[0]
    yield "of one", lambda: (x := torch.ones(1), dist.all_reduce(x, group=last))[0]
    yield "place", lambda: (dist.get_group_rank(last, size - 1), dist.get_global_rank(last, 0))
    if rank == size - 1:
        yield "root outside", lambda: dist.broadcast(torch.ones(1), src=7, group=everyone)
    own, parts = dist.new_subgroups_by_enumeration([[0], list(range(1, size))])
    yield "part", lambda: (x := torch.ones(1) * rank, dist.all_reduce(x, group=own), dist.get_rank(own), len(parts))
    yield "ends", lambda: (dist.destroy_process_group(own), dist.all_reduce(torch.ones(1), group=everyone))


def run(rank, size, path):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    told = []
    for part in (exchanges, letters, works, groups):
        for name, act in part(rank, size):
            try:
                told.append(f"{rank} {name}: {act()}")
            except Exception as error:
                told.append(f"{rank} {name}: {type(error).__name__} {str(error).splitlines()[0].split('<')[0]}")
    everyone = [None] * size if rank == 0 else None
    dist.gather_object(told, everyone)
    if rank == 0:
        print("\n".join(line for lines in everyone for line in lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    for size in (2, 3):
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(run, (size, folder + "/store"), nprocs=size)
