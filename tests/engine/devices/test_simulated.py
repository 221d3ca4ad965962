"""The simulated GPU: its memory, its queues, its clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stridescope.engine.devices.device import DeviceOutOfMemory
from stridescope.engine.devices.gpu_models import MODELS, gpu_model
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.streams import current_stream, set_current_stream
from stridescope.engine.events import HostWaited, Wire, WorkQueued, journal

MIB = 1 << 20


@pytest.fixture
def heard() -> Iterator[list[Wire]]:
    """The events that are emitted meanwhile."""
    events: list[Wire] = []
    journal.emit = events.append
    yield events
    journal.emit = None


def test_it_calls_itself_simulated() -> None:
    gpu = SimulatedGPU(model="H200")
    assert gpu.properties.name == "NVIDIA H200 (simulated)" and gpu.simulated
    assert repr(gpu.properties).startswith("_CudaDeviceProperties(name='NVIDIA H200 (simulated)', major=9, minor=0, ")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_model_is_found_by_its_name(model: object) -> None:
    assert gpu_model(model.name.upper()) is model  # type: ignore[attr-defined]


def test_unknown_models_and_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="no GPU model 'GTX': choose one of GeForce RTX 4060, Tesla T4"):
        SimulatedGPU(model="GTX")
    with pytest.raises(ValueError, match="needs a size above 0 bytes, not 0"):
        SimulatedGPU(0)


def test_memory_is_counted_and_addresses_are_never_given_twice() -> None:
    gpu = SimulatedGPU(64 * MIB)
    first = gpu.cuda_malloc(30 * MIB)
    gpu.cuda_free(first)
    assert gpu.cuda_malloc(30 * MIB) > first and gpu.memory_info() == (34 * MIB, 64 * MIB)
    with pytest.raises(DeviceOutOfMemory):
        gpu.cuda_malloc(35 * MIB)
    assert gpu.memory_info()[0] == 34 * MIB


def test_every_address_lies_on_a_boundary_of_2_mib() -> None:
    gpu = SimulatedGPU(64 * MIB)
    assert all(gpu.cuda_malloc(3 * MIB + 512) % (2 * MIB) == 0 for _ in range(5))


def test_a_launch_returns_at_once_and_synchronize_waits(heard: list[Wire]) -> None:
    gpu = SimulatedGPU()
    gpu.launch("mm", 0, 400 * MIB)
    queued = heard[-1]
    assert queued[0] == WorkQueued.code and queued[1:4] == ("cuda:0", 0, "mm")
    host, begin, end = queued[4:]
    assert host == gpu.clock.host_ns == begin < end
    gpu.synchronize()
    assert gpu.clock.host_ns == end and heard[-1] == (HostWaited.code, "cuda:0", 0, host, end)


def test_work_of_one_stream_runs_one_after_the_other() -> None:
    gpu = SimulatedGPU()
    gpu.launch("a", 0, 400 * MIB)
    first = gpu.clock.end_of(0)
    gpu.launch("b", 0, 400 * MIB)
    assert gpu.clock.end_of(0) == pytest.approx(2 * first, rel=0.02)


def test_streams_run_side_by_side() -> None:
    gpu = SimulatedGPU()
    gpu.launch("a", 0, 400 * MIB)
    set_current_stream(0, 5)
    gpu.launch("b", 0, 400 * MIB)
    set_current_stream(0, 0)
    assert current_stream(0) == 0
    assert gpu.clock.end_of(5) == pytest.approx(gpu.clock.end_of(0), rel=0.02)


def test_an_event_is_done_when_its_stream_has_passed_it() -> None:
    gpu = SimulatedGPU()
    gpu.launch("a", 0, 4 * MIB)
    event = gpu.record_event(0)
    gpu.launch("b", 0, 400 * MIB)
    assert not event.query()
    event.synchronize()
    assert event.query() and not gpu.record_event(0).query()


def test_who_asks_often_enough_sees_the_end() -> None:
    gpu = SimulatedGPU()
    gpu.launch("a", 0, 4 * MIB)
    event, asked = gpu.record_event(0), 0
    while not event.query():
        asked += 1
    assert asked > 10


def test_copies_are_waited_for_unless_pinned_memory_lets_them_only_be_queued() -> None:
    pageable, pinned = SimulatedGPU(), SimulatedGPU()
    pageable.copy("host to device", 100 * MIB)
    pinned.copy("host to device", 100 * MIB, pinned=True, non_blocking=True)
    assert pageable.clock.end_of(0) == pageable.clock.host_ns
    assert pinned.clock.host_ns < pinned.clock.end_of(0) < pageable.clock.host_ns


def test_giving_memory_back_to_the_device_waits_for_its_work() -> None:
    gpu = SimulatedGPU()
    block = gpu.allocator.malloc(30 * MIB)
    gpu.launch("a", 0, 400 * MIB)
    end = gpu.clock.end_of(0)
    gpu.allocator.free(block)
    assert gpu.clock.host_ns < end
    gpu.allocator.empty_cache()
    assert gpu.clock.host_ns >= end


def test_the_faster_model_is_done_earlier() -> None:
    ends = []
    for model in ("Tesla T4", "H200"):
        gpu = SimulatedGPU(model=model)
        gpu.launch("mm", MIB, MIB, flops=1e12)
        ends.append(gpu.clock.end_of(0))
    assert ends[0] > 5 * ends[1]
