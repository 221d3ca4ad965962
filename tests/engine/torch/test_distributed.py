"""Ranks that find each other as under a launcher, and what they say when one of them does something else, or dies."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

import stridescope.engine.torch as torch

ENTER = """\
import datetime, os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def told(act, *args, **options):
    try:
        act(*args, **options)
    except RuntimeError as error:
        return str(error)

def enter(rank, port, lines):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(port))
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # the launcher serves the store
    dist.init_process_group()
    for line in act(rank):
        lines.put((rank, line))

def go():
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    lines = mp.get_context("spawn").SimpleQueue()
    together = mp.spawn(enter, (store.port, lines), nprocs=2, join=False)
    for process in together.processes:
        process.join()
    while not lines.empty():
        print(*lines.get())
    print([process.exitcode for process in together.processes])
"""
DIFFERENT = """
def act(rank):
    if rank == 0:
        yield told(dist.all_reduce, torch.ones(1))
    else:
        dist.broadcast(torch.ones(1), 1)
    dist.barrier()
    if rank == 0:
        yield told(dist.all_reduce, torch.ones(2))
    else:
        told(dist.all_reduce, torch.ones(3))
"""
LATE = """
def act(rank):
    short = datetime.timedelta(milliseconds=50)
    if rank == 0:
        work = dist.barrier(async_op=True)
        yield work.is_completed()
        yield told(work.wait, short)
        yield told(dist.monitored_barrier, timeout=short)
        dist.send(torch.ones(1), 1)
    else:
        dist.recv(torch.zeros(1), 0)
        dist.barrier()
"""
DEAD = """
def act(rank):
    if rank == 1:
        os._exit(3)
    yield told(dist.all_reduce, torch.ones(1))
    yield told(dist.recv, torch.ones(1), 1)
    yield told(dist.recv, torch.ones(1))
    yield told(torch.nn.parallel.DistributedDataParallel, torch.nn.Linear(1, 1))
"""
GONE = "Connection closed by peer [127.0.0.1]: rank 1 has ended or left the process group"
LATER = "Timed out waiting 50ms for recv operation to complete"
SAID = {
    "different": (
        DIFFERENT,
        [
            "0 the ranks do not do the same: rank 1 called broadcast of 1 float32 values, while this rank called "
            "all_reduce(RedOpType.SUM) of 1 float32 values",
            "0 the ranks do not do the same: rank 1 called all_reduce(RedOpType.SUM) of 3 float32 values, while this "
            "rank called all_reduce(RedOpType.SUM) of 2 float32 values",
            "[0, 0]",
        ],
    ),
    "late": (
        LATE,
        [
            "0 False",
            f"0 {LATER}",
            "0 [Rank 0]: Rank 1 failed to pass monitoredBarrier in 50 ms",
            " Original exception: ",
            LATER,
            "[0, 0]",
        ],
    ),
    "dead": (DEAD, [f"0 {GONE}"] * 4 + ["[0, 3]"]),
}


@pytest.mark.parametrize("case", SAID)
def test_ranks_say_what_keeps_them_apart(case: str, tmp_path: pathlib.Path) -> None:
    source, expected = SAID[case]
    script = tmp_path / "script.py"
    script.write_text(f"{ENTER}{source}\nif __name__ == '__main__':\n    go()\n")
    command = [sys.executable, "-P", "-m", "stridescope.app.cli", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.stdout.splitlines() == expected, done.stderr


def test_what_is_not_here_says_so_by_name() -> None:
    for name in ("rpc", "fsdp", "elastic", "tensor", "checkpoint", "optim", "init_device_mesh"):
        with pytest.raises(NotImplementedError, match=rf"^torch\.distributed\.{name} is not in Stridescope yet$"):
            getattr(torch.distributed, name)


def test_a_synced_batch_norm_wants_a_gpu_in_a_group_and_joining_is_not_here() -> None:
    dist, nn = torch.distributed, torch.nn
    norm = nn.SyncBatchNorm(2)
    batch = torch.randn(4, 2)
    alone = norm(batch)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match="SyncBatchNorm expected input tensor to be on GPU"):
            norm(batch)
        assert norm.eval()(batch).shape == alone.shape
        with pytest.raises(NotImplementedError, match="DistributedDataParallel.join is not in Stridescope yet"):
            nn.parallel.DistributedDataParallel(nn.Linear(1, 1)).join()
    finally:
        dist.destroy_process_group()


def test_a_file_store_is_shared_by_its_path_and_goes_with_its_last_handle(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "store"
    first, second = (torch.distributed.FileStore(str(path), 2) for _ in range(2))
    first.set("a", "1")
    assert (second.get("a"), second.add("n", 2), first.add("n", 3), second.get("n")) == (b"1", 2, 5, b"5")
    assert (first.compare_set("a", "1", "2"), second.compare_set("a", "1", "3")) == (b"2", b"2")
    second.delete_key("a")
    assert not first.check(["a"]) and first.list_keys() == ["n"]
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_a_callback_of_a_pass_inside_another_runs_at_its_own_end() -> None:
    queue = torch.autograd.Variable._execution_engine.queue_callback
    order = []

    class Inside(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            with torch.enable_grad():
                inner = torch.ones(1, requires_grad=True) * 2
            inner.register_hook(lambda g: queue(lambda: order.append("callback")))
            inner.backward()
            order.append("inner pass over")
            return gradient

    Inside.apply(torch.ones(1, requires_grad=True)).backward()
    assert order == ["callback", "inner pass over"]
