"""What scripts see of the device and of its queues."""

from __future__ import annotations

import re
from typing import Any

import pytest

MIB = 1 << 20


def test_the_device(torch: Any) -> None:
    cuda = torch.cuda
    assert cuda.is_available() and cuda.device_count() == 1 and not cuda.is_initialized()
    assert cuda.current_device() == 0 and cuda.is_initialized()
    assert cuda.get_device_name().endswith("(simulated)") and cuda.get_device_name("cuda:0") == cuda.get_device_name(0)
    assert cuda.get_device_properties(0).total_memory == 1 << 30
    assert cuda.get_device_capability() == (8, 9) and cuda.get_arch_list() == ["sm_89"]
    assert cuda.is_bf16_supported() and cuda.is_tf32_supported() and not cuda.can_device_access_peer(0, 0)
    with cuda.device(0), cuda.device_of(torch.zeros(1, device="cuda")), cuda.device_of(torch.zeros(1)):
        assert cuda.current_device() == 0


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("cpu", ValueError, "Expected a cuda device, but got: cpu"),
        (1.5, ValueError, "Expected a torch.device with a specified index or an integer, but got:1.5"),
        (7, RuntimeError, "CUDA error: invalid device ordinal"),
        ("cuda:7", RuntimeError, "CUDA error: invalid device ordinal"),
    ],
)
def test_what_is_no_device(torch: Any, device: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        torch.cuda.synchronize(device)


def test_without_a_device(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRIDESCOPE_DEVICE", "cpu")
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    torch.cuda.manual_seed_all(3)
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.zeros(2, device="cuda")
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        torch.zeros(2).pin_memory()


def test_streams(torch: Any) -> None:
    cuda = torch.cuda
    side = cuda.Stream()
    assert cuda.current_stream() == cuda.default_stream() != side
    with cuda.stream(side):
        assert cuda.current_stream() == side and hash(cuda.current_stream()) == hash(side)
        with cuda.stream(None):
            assert cuda.current_stream() == side
        torch.ones(MIB, device="cuda")
        assert not side.query()
    assert cuda.current_stream() == cuda.default_stream() and cuda.default_stream().query()
    side.synchronize()
    assert side.query()
    with side, side:
        assert cuda.current_stream() == side
    assert cuda.current_stream().cuda_stream == 0
    assert repr(cuda.default_stream()) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"


def test_a_stream_waits_for_another(torch: Any) -> None:
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        torch.ones(16 * MIB, device="cuda")
    second.wait_stream(first)
    assert not second.query()
    first.synchronize()
    assert second.query()


def test_events_measure_time(torch: Any) -> None:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    assert end.query() and repr(end) == "<torch.cuda.Event uninitialized>"
    with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
        begin.elapsed_time(end)
    begin.record()
    torch.ones(16 * MIB, device="cuda")
    end.record()
    with pytest.raises(RuntimeError, match="Both events must be completed before calculating elapsed time"):
        begin.elapsed_time(end)
    end.synchronize()
    assert begin.elapsed_time(end) > 0.1
    plain = torch.cuda.current_stream().record_event()
    with pytest.raises(ValueError, match="enable_timing=True"):
        begin.elapsed_time(plain)


def test_the_same_script_takes_the_same_time(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from stridescope.engine.devices import registry

    times = []
    for _ in range(2):
        monkeypatch.setattr(registry, "_devices", None)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        a = torch.ones(200, 200, device="cuda")
        (a @ a).sum().item()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    assert times[0] == times[1] > 0


def test_memory_used_on_a_side_stream_is_not_handed_out_before_that_stream_is_done(torch: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(4 * MIB, device="cuda")
    address = x.data_ptr()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(20):
            x.mul_(2)
    x[3:].record_stream(side)
    del x
    assert torch.cuda.memory_stats()["active_bytes.all.current"] == 16 * MIB
    other = torch.empty(4 * MIB, device="cuda")
    assert other.data_ptr() != address
    side.synchronize()
    torch.cuda.init()
    again = torch.empty(4 * MIB, device="cuda")
    assert again.data_ptr() == address


def test_seeds(torch: Any) -> None:
    torch.cuda.manual_seed_all(11)
    assert torch.cuda.initial_seed() == 11
    state = torch.cuda.get_rng_state()
    assert state.dtype == torch.uint8 and state.tolist() == [11] + [0] * 15
    torch.cuda.seed()
    assert torch.cuda.initial_seed() != 11
    torch.cuda.set_rng_state(state)
    assert torch.cuda.initial_seed() == 11 and len(torch.cuda.get_rng_state_all()) == 1


def test_ranges_nest(torch: Any) -> None:
    nvtx = torch.cuda.nvtx
    assert nvtx.range_push("a") == 0 and nvtx.range_push("b") == 1
    with nvtx.range("c {}", 1):
        nvtx.mark("here")
    assert nvtx.range_pop() == 1 and nvtx.range_pop() == 0 and nvtx.range_pop() == -1


def test_old_tensor_types(torch: Any) -> None:
    assert torch.zeros(1, device="cuda").type() == "torch.cuda.FloatTensor"
    assert torch.cuda.FloatTensor([1, 2]).is_cuda


def test_a_sleeping_stream_holds_up_only_itself(torch: Any) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(10_000_000)
    assert not side.query() and torch.cuda.default_stream().query()
    torch.cuda.synchronize()
    assert side.query()
