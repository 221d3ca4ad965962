"""What scripts see of the device and of its queues."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stridescope.engine.events import KeysChosen, journal

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


def test_streams_come_from_a_pool_of_32_for_each_priority(torch: Any) -> None:
    made = [torch.cuda.Stream() for _ in range(33)]
    assert made[0] == made[32] and len(set(made)) == 32
    assert torch.cuda.Stream.priority_range() == (0, -3)
    high = torch.cuda.Stream(priority=-9)
    assert high.priority == -3 and high not in made
    with pytest.raises(RuntimeError, match="Expected cuda stream priority to be less than or equal to 0, got 1"):
        torch.cuda.Stream(priority=1)
    assert torch.cuda.get_stream_from_external(made[3].cuda_stream) == made[3]


def test_the_host_waits_for_copies_unless_pinned_memory_lets_it_go_on(torch: Any) -> None:
    def done_after(copy: Any) -> bool:
        torch.cuda.synchronize()
        kept.append(copy())
        return bool(torch.cuda.current_stream().query())

    kept: list[Any] = []
    pageable, pinned = torch.ones(MIB), torch.ones(MIB, pin_memory=True)
    x = pageable.cuda()
    assert pinned.is_pinned() and not pageable.is_pinned() and torch.tensor([1.0], pin_memory=True).is_pinned()
    assert done_after(lambda: pageable.to("cuda", non_blocking=True)), "the driver reads pageable memory at once"
    assert done_after(lambda: pinned.to("cuda"))
    assert not done_after(lambda: pinned.to("cuda", non_blocking=True))
    assert not done_after(lambda: pinned.cuda(non_blocking=True))
    assert not done_after(lambda: x.copy_(pinned, non_blocking=True))
    assert not done_after(lambda: pinned.copy_(x, non_blocking=True))
    assert done_after(lambda: pageable.copy_(x, non_blocking=True))
    assert not done_after(lambda: x.to("cpu", non_blocking=True)) and kept[-1].is_pinned()
    assert done_after(lambda: x.cpu()) and not kept[-1].is_pinned()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.zeros(2, device="cuda", pin_memory=True)


def test_waiting_for_the_device_can_be_reported_or_refused(torch: Any) -> None:
    x = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    assert torch.cuda.get_sync_debug_mode() == 1
    for ask in (x.sum().item, x.cpu, x.nonzero, torch.cuda.current_stream().synchronize, lambda: repr(x)):
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            ask()
    torch.cuda.set_sync_debug_mode(2)
    with pytest.raises(RuntimeError, match="^called a synchronizing CUDA operation$"):
        x.tolist()
    torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`"):
        torch.cuda.set_sync_debug_mode("loud")
    torch.cuda.set_sync_debug_mode("default")
    assert x.tolist() == [1, 1, 1, 1]


def test_the_accelerator_is_the_cuda_device(torch: Any) -> None:
    accelerator = torch.accelerator
    assert accelerator.is_available() and accelerator.device_count() == 1
    assert str(accelerator.current_accelerator()) == "cuda" and accelerator.current_device_index() == 0
    kept = torch.ones(1000, device=accelerator.current_accelerator())
    assert accelerator.memory_allocated() == torch.cuda.memory_allocated() == 4096 and kept.is_cuda
    assert accelerator.current_stream() == torch.cuda.current_stream()
    with accelerator.device_index(0):
        accelerator.synchronize()
    with pytest.raises(ValueError, match="cpu doesn't match the current accelerator cuda"):
        accelerator.synchronize("cpu")


def test_no_accelerator(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRIDESCOPE_DEVICE", "cpu")
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        torch.accelerator.synchronize()
    with pytest.raises(RuntimeError, match=r"torch\.cuda\.Stream requires CUDA support"):
        torch.cuda.Stream()
    assert not torch.cuda.is_initialized()


@pytest.mark.parametrize("name", ["nccl", "comm", "make_graphed_callables", "current_blas_handle", "FloatStorage"])
def test_what_is_not_here_says_so(torch: Any, name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"torch\.cuda\.{name} is not in Stridescope yet"):
        getattr(torch.cuda, name)


def test_the_runtime(torch: Any) -> None:
    runtime = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaProfilerStart())
    assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info()
    with pytest.raises(torch.cuda.CudaError, match=r"unknown error \(1\)"):
        torch.cuda.check_error(1)
    with pytest.raises(ModuleNotFoundError, match="nvidia-ml-py does not seem to be installed"):
        torch.cuda.utilization()
    assert torch.cuda.get_gencode_flags() == "-gencode compute=compute_89,code=sm_89"
    assert torch.cuda.default_generators[0].initial_seed() == torch.cuda.initial_seed()


def test_every_distribution_draws_from_the_devices_generator(torch: Any) -> None:
    def drawn() -> list[Any]:
        torch.manual_seed(4)
        blank = torch.empty(50, device="cuda")
        made = [
            torch.rand(5, device="cuda"), torch.randn(5, device="cuda"), torch.randint(9, (5,), device="cuda"),
            torch.randperm(20, device="cuda"), torch.bernoulli(torch.full((5,), 0.5, device="cuda")),
            torch.multinomial(torch.ones(6, device="cuda"), 3),
            torch.multinomial(torch.ones(2, 6, device="cuda"), 9, replacement=True),
            torch.nn.functional.dropout(torch.ones(50, device="cuda")),
            blank.exponential_().clone(), blank.cauchy_().clone(), blank.geometric_(0.5).clone(),
            blank.log_normal_().clone(), blank.random_().clone(),
        ]  # fmt: skip
        return [tensor.tolist() for tensor in made]

    assert drawn() == drawn()
    state = torch.cuda.get_rng_state()
    first = torch.rand(3, device="cuda").tolist()
    torch.cuda.set_rng_state(state)
    assert torch.rand(3, device="cuda").tolist() == first


def test_dropout_on_a_gpu_is_one_op_with_a_mask(torch: Any) -> None:
    x = torch.ones(1000, device="cuda", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    assert y.grad_fn.name() == "NativeDropoutBackward0"
    assert set(y.tolist()) == {0.0, y.max().item()} and abs(y.max().item() - 1 / 0.75) < 1e-6
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert torch.nn.functional.dropout(x, 0.25, training=False) is x
    kept, mask = torch.native_dropout(torch.ones(8), 0.5, True)
    assert kept.tolist() == [2.0 * flag for flag in mask.tolist()]


def test_a_factory_goes_to_the_backend_of_the_device_that_it_names(torch: Any) -> None:
    heard: list[Any] = []
    journal.start(heard.append)
    try:
        torch.empty(2, device="cuda")
        torch.empty(2)
    finally:
        journal.stop()
    chosen = [wire[1] for wire in heard if wire[0] == KeysChosen.code]
    assert chosen == [("BackendSelect", "CUDA"), ("BackendSelect", "CPU")]


def test_streams_and_events_of_any_device(torch: Any) -> None:
    side, end = torch.Stream(), torch.Event(enable_timing=True)
    assert isinstance(side, torch.cuda.Stream) and isinstance(torch.cuda.current_stream(), torch.Stream)
    assert isinstance(end, torch.cuda.Event) and side.device == torch.device("cuda:0") and side.native_handle
    with side:
        torch.ones(MIB, device="cuda")
    end.record(side)
    torch.Stream(device="cuda", priority=-1).wait_stream(side)
    end.synchronize()
    host = torch.Stream("cpu")
    assert repr(host) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0" and host == torch.Stream("cpu")
    assert host.query() and not host.is_capturing() and host != side
    for ask in (host.record_event, torch.Event("cpu").record):
        with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
            ask()


def test_a_cuda_stream_needs_a_device(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRIDESCOPE_DEVICE", "cpu")
    assert torch.Stream().device.type == torch.Event().device.type == "cpu"
    with pytest.raises(RuntimeError, match="not linked with support for cuda devices"):
        torch.Stream("cuda")
