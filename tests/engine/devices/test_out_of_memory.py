"""The words of a failed request."""

from __future__ import annotations

import pytest
from scenarios import run

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.out_of_memory import OutOfMemoryError, format_size
from stridescope.engine.devices.simulated import SimulatedGPU

MIB, GIB = 1 << 20, 1 << 30
HINT = (
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid"
    " fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1024, "1024 bytes"),
        (1025, "1.00 KiB"),
        (MIB, "1024.00 KiB"),
        (GIB, "1024.00 MiB"),
        (GIB + 1, "1.00 GiB"),
        (1 << 50, "1048576.00 GiB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert format_size(size) == text


def failure(gpu: SimulatedGPU, size: int) -> str:
    with pytest.raises(OutOfMemoryError) as caught:
        gpu.allocator.malloc(size)
    return str(caught.value)


def test_the_whole_text() -> None:
    gpu = SimulatedGPU(16 * GIB)
    gpu.memory.occupy(2 * GIB)  # another process
    gpu.allocator.malloc(10 * GIB)
    gpu.allocator.malloc(3 * MIB)
    assert failure(gpu, 5 * GIB) == (
        "CUDA out of memory. Tried to allocate 5.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 3.98 GiB is "
        "free. Of the allocated memory 10.00 GiB is allocated by PyTorch, and 17.00 MiB is reserved by PyTorch but "
        "unallocated." + HINT
    )


def test_with_a_limit() -> None:
    gpu = SimulatedGPU(300 * MIB)
    gpu.allocator.set_memory_fraction(0.5)
    seen: list[tuple[int, ...]] = []
    gpu.allocator.out_of_memory_observers.append(lambda *told: seen.append(told))
    assert failure(gpu, 200 * MIB + 5) == (
        "CUDA out of memory. Tried to allocate 202.00 MiB. GPU 0 has a total capacity of 300.00 MiB of which 300.00 MiB"
        " is free. 150.00 MiB allowed; Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved"
        " by PyTorch but unallocated." + HINT
    )
    assert seen == [(0, 202 * MIB, 150 * MIB, 300 * MIB)]


def test_the_free_memory_of_private_pools_counts_as_allocated() -> None:
    replay = run("pool p; enter p; a=30M; exit p; free a; b=10M", total="100M")
    assert (
        "Of the allocated memory 40.00 MiB is allocated by PyTorch, with 30.00 MiB allocated in private pools "
        "(e.g., CUDA Graphs), and 0 bytes is reserved by PyTorch but unallocated." in failure(replay.device, 90 * MIB)
    )


def test_more_than_an_exabyte() -> None:
    gpu = SimulatedGPU()
    assert failure(gpu, 1 << 60) == "CUDA out of memory. Tried to allocate more than 1EB memory."
    assert gpu.allocator.stats.num_ooms == 0


def test_a_rejection_releases_nothing_and_counts_apart() -> None:
    gpu = SimulatedGPU(100 * MIB, settings=AllocatorSettings("throw_on_cudamalloc_oom:True"))
    gpu.allocator.free(gpu.allocator.malloc(30 * MIB))
    gpu.allocator.settings.parse("per_process_memory_fraction:0.5")
    assert failure(gpu, 59 * MIB) == (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
        "limit. Requested size: 60.00 MiB"
    )
    stats = gpu.allocator.stats
    assert (stats.num_oom_rejections, stats.num_ooms, stats.num_alloc_retries) == (1, 0, 0)
    assert stats.all.reserved_bytes.current == 30 * MIB


def test_the_error_is_pytorchs() -> None:
    assert issubclass(OutOfMemoryError, RuntimeError)
    assert f"{OutOfMemoryError.__module__}.{OutOfMemoryError.__qualname__}" == "torch.OutOfMemoryError"


def test_a_failed_request_leaves_the_allocator_usable() -> None:
    gpu = SimulatedGPU(64 * MIB)
    failure(gpu, GIB)
    assert gpu.allocator.malloc(30 * MIB).size == 30 * MIB
