"""The allocator of pinned host memory."""

from __future__ import annotations

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.host_allocator import HostBlock
from stridescope.engine.devices.trace_replay import ScriptedGPU


def a_gpu(conf: str = "") -> ScriptedGPU:
    return ScriptedGPU(1 << 30, AllocatorSettings(conf))


def taken(gpu: ScriptedGPU, size: int) -> HostBlock:
    block = gpu.host_allocator.allocate(size)
    assert block is not None
    return block


def test_sizes_are_powers_of_two_and_blocks_are_used_again() -> None:
    gpu = a_gpu()
    block = taken(gpu, 1000)
    assert block.size == 1024
    gpu.host_allocator.free(block)
    assert taken(gpu, 600) is block
    stats = gpu.host_allocator.flat()
    assert (stats["allocations.current"], stats["active_requests.allocated"], stats["num_host_alloc"]) == (1, 2, 1)
    assert stats["allocated_bytes.current"] == stats["active_bytes.current"] == 1024


def test_other_sizes_are_not_cut_from_a_cached_block() -> None:
    gpu = a_gpu()
    block = taken(gpu, 4096)
    gpu.host_allocator.free(block)
    assert taken(gpu, 100) is not block


def test_a_block_that_a_stream_copies_from_waits_for_it() -> None:
    gpu = a_gpu()
    block = taken(gpu, 1000)
    gpu.set_busy(3, True)
    gpu.host_allocator.record_stream(block, 3)
    gpu.host_allocator.free(block)
    assert gpu.host_allocator.flat()["active_bytes.current"] == 1024
    assert taken(gpu, 1000) is not block
    gpu.set_busy(3, False)
    assert taken(gpu, 1000) is block


def test_empty_cache_unpins_what_is_cached() -> None:
    gpu = a_gpu()
    kept, block = taken(gpu, 10), taken(gpu, 1000)
    gpu.host_allocator.free(block)
    gpu.host_allocator.empty_cache()
    stats = gpu.host_allocator.flat()
    assert (stats["allocated_bytes.current"], stats["num_host_free"]) == (kept.size, 1)
    assert stats["host_free_time.count"] == 1 and stats["host_alloc_time.total"] > 0


def test_options_limit_the_rounding_and_the_cache() -> None:
    gpu = a_gpu("pinned_max_round_threshold_mb:1,pinned_max_cached_size_mb:4")
    assert taken(gpu, (1 << 20) + 1).size == (1 << 20) + 1
    gpu.host_allocator.free(taken(gpu, 5 << 20))
    assert gpu.host_allocator.flat()["num_host_free"] == 1


def test_no_bytes_are_no_request() -> None:
    assert a_gpu().host_allocator.allocate(0) is None


def test_resets() -> None:
    gpu = a_gpu()
    gpu.host_allocator.free(taken(gpu, 1000))
    gpu.host_allocator.reset_peak()
    gpu.host_allocator.reset_accumulated()
    stats = gpu.host_allocator.flat()
    assert (stats["active_bytes.peak"], stats["allocations.allocated"], stats["allocated_bytes.peak"]) == (0, 0, 1024)
