"""What scripts see of the memory: torch.cuda.memory."""

from __future__ import annotations

import pickle
import re
import threading
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20


def test_nothing_is_there_before_the_first_use(torch: Any) -> None:
    assert not torch.cuda.is_initialized()
    assert torch.cuda.memory_stats() == {} and torch.cuda.memory_allocated() == 0
    assert torch.cuda.host_memory_stats() == {}
    torch.cuda.empty_cache()
    assert not torch.cuda.is_initialized()


def test_tensors_take_and_give_back_blocks(torch: Any) -> None:
    a = torch.zeros(1000, device="cuda")
    assert torch.cuda.memory_allocated() == 4096 and torch.cuda.memory_reserved() == 2 * MIB
    view = a[:10]
    del a
    assert torch.cuda.memory_allocated() == 4096
    del view
    assert torch.cuda.memory_allocated() == 0 and torch.cuda.max_memory_allocated() == 4096
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0 and torch.cuda.mem_get_info() == (1 << 30, 1 << 30)


def test_peaks_and_totals_are_reset(torch: Any) -> None:
    del_me = torch.zeros(MIB, device="cuda")
    del del_me
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.allocated"] == 0
    assert stats["num_device_alloc"] == 0 and torch.cuda.max_memory_reserved() == 20 * MIB


def test_nested_and_flat_statistics_agree(torch: Any) -> None:
    kept = torch.zeros(1000, device="cuda")
    nested = torch.cuda.memory_stats_as_nested_dict()
    assert list(nested)[0] == "num_alloc_retries"
    assert nested["allocated_bytes"]["small_pool"]["current"] == 4096 == kept.numel() * 4 + 96
    assert torch.cuda.memory_stats()["allocated_bytes.small_pool.current"] == 4096


def test_running_out(torch: Any) -> None:
    kept = torch.zeros(100 * MIB, dtype=torch.uint8, device="cuda")
    with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    assert isinstance(caught.value, torch.OutOfMemoryError)
    assert str(caught.value).startswith("CUDA out of memory. Tried to allocate 1048576.00 GiB. GPU 0 has a total ")
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate 950.00 MiB"):
        torch.empty(950 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_stats()["num_ooms"] == 2 and kept.numel() == torch.cuda.memory_allocated()


def test_in_place_and_out_results_take_no_block(torch: Any) -> None:
    a, b = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    a.mul_(2).add_(1)
    torch.mul(a, 2, out=b)
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated() == 8192
    assert b.sum().item() == 6000


def test_the_fraction(torch: Any) -> None:
    with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
        torch.cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match=re.escape("Invalid fraction value: 2.0. Allowed range: 0~1")):
        torch.cuda.set_per_process_memory_fraction(2.0)
    torch.cuda.set_per_process_memory_fraction(0.25)
    assert torch.cuda.get_per_process_memory_fraction() == 0.25
    with pytest.raises(torch.OutOfMemoryError, match="256.00 MiB allowed; "):
        torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.empty(300 * MIB, dtype=torch.uint8, device="cuda").is_cuda


def test_raw_allocations(torch: Any) -> None:
    address = torch.cuda.caching_allocator_alloc(1)
    assert torch.cuda.memory_allocated() == 512
    torch.cuda.caching_allocator_delete(address)
    assert torch.cuda.memory_allocated() == 0
    with pytest.raises(RuntimeError, match=f"invalid device pointer: {address:#x}"):
        torch.cuda.caching_allocator_delete(address)
    with torch.cuda.memory.caching_allocator_disabled():
        raw = torch.cuda.caching_allocator_alloc(MIB)
        assert torch.cuda.memory_allocated() == 0 and torch.cuda.mem_get_info()[0] == (1 << 30) - 3 * MIB
        torch.cuda.caching_allocator_delete(raw)


def test_old_names_warn(torch: Any) -> None:
    with pytest.warns(
        FutureWarning, match="`torch.cuda.memory_cached` has been renamed to `torch.cuda.memory_reserved`"
    ):
        assert torch.cuda.memory_cached() == 0
    with pytest.warns(FutureWarning, match="now calls torch.cuda.reset_peak_memory_stats"):
        torch.cuda.reset_max_memory_allocated()


def test_the_summary_has_pytorchs_form(torch: Any) -> None:
    kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (4000, 3 * MIB, 700 * MIB)]
    lines = torch.cuda.memory_summary().splitlines()
    assert {len(line) for line in lines} == {77}
    assert lines[1] == "|                  PyTorch CUDA memory summary, device ID 0                 |"
    assert lines[7] == "| Allocated memory      | 719876 KiB | 719876 KiB | 719876 KiB |      0 B   |"
    assert lines[9] == "|       from small pool |      4 KiB |      4 KiB |      4 KiB |      0 B   |"
    assert len(torch.cuda.memory_summary(abbreviated=True)) < len(torch.cuda.memory_summary()) and kept


def test_a_pool_of_its_own(torch: Any) -> None:
    pool = torch.cuda.MemPool()
    assert pool.use_count() == 1 and pool.id[0] == 0
    with torch.cuda.use_mem_pool(pool):
        inside = torch.zeros(1000, device="cuda")
        assert pool.use_count() == 2
        elsewhere: list[Any] = []
        thread = threading.Thread(target=lambda: elsewhere.append(torch.zeros(1000, device="cuda")))
        thread.start()
        thread.join()
    outside = torch.zeros(1000, device="cuda")
    assert [segment["segment_pool_id"] for segment in torch.cuda.memory_snapshot()] == [pool.id, (0, 0)]
    assert len(pool.snapshot()) == 1 and pool.snapshot()[0]["active_size"] == 4096
    del inside, pool
    assert [segment["segment_pool_id"] for segment in torch.cuda.memory_snapshot()] == [(0, 0)]
    assert outside.is_cuda and elsewhere[0].is_cuda
    assert torch.cuda.MemPool().id[1] > 1


def test_the_history_and_its_dump(torch: Any, tmp_path: Path) -> None:
    memory = torch.cuda.memory
    memory._record_memory_history(max_entries=100)
    memory._set_memory_metadata("step 1")
    kept = torch.zeros(1000, device="cuda")
    memory._dump_snapshot(str(tmp_path / "dump.pickle"))
    assert memory._allocation_traceback(kept.data_ptr())[0]["name"] == "test_the_history_and_its_dump"
    assert memory._allocation_traceback(12345) is None
    memory._record_memory_history(None)
    found = pickle.loads((tmp_path / "dump.pickle").read_bytes())
    assert list(found) == ["segments", "device_traces", "allocator_settings", "external_annotations"]
    alloc = found["device_traces"][0][-1]
    assert alloc["action"] == "alloc" and alloc["size"] == 4000 and alloc["user_metadata"] == "step 1"
    assert alloc["frames"][0]["name"] == "test_the_history_and_its_dump" and alloc["addr"] == kept.data_ptr()
    assert memory._snapshot()["device_traces"] == [[]]
    memory._set_memory_metadata("")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("x",), RuntimeError, "expected state to be 'state', 'all', or None"),
        (("all", "x"), RuntimeError, "expected context to be 'state', 'alloc', 'all', or None"),
        (("all", "all", "x"), RuntimeError, "expected stacks to be 'python', or 'all'"),
        (("all", "all", "all", -1), TypeError, "max_entries"),
    ],
)
def test_bad_wishes_for_the_history(
    torch: Any, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        torch.cuda.memory._record_memory_history(*arguments)
    with pytest.raises(RuntimeError, match="Unknown TraceEntry action: zzz"):
        torch.cuda.memory._record_memory_history(skip_actions=["zzz"])


def test_settings_at_run_time(torch: Any) -> None:
    torch.cuda.init()
    with pytest.warns(FutureWarning, match="_set_allocator_settings is deprecated"):
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    kept = torch.zeros(1000, device="cuda")
    assert torch.cuda.memory_snapshot()[0]["is_expandable"] and kept.is_cuda
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Unrecognized key 'foo' in Accelerator"):
        torch.cuda.memory._set_allocator_settings("foo:1")


def test_pinned_memory(torch: Any) -> None:
    x = torch.arange(5.0).pin_memory()
    assert x.is_pinned() and not torch.arange(5.0).is_pinned() and x.pin_memory() is x
    assert torch.cuda.host_memory_stats()["active_bytes.current"] == 32
    assert x.to("cuda").tolist() == [0, 1, 2, 3, 4]
    torch.cuda.synchronize()
    del x
    torch.arange(3.0).pin_memory()
    assert torch.cuda.host_memory_stats()["active_requests.current"] == 0
    torch.cuda.memory.reset_peak_host_memory_stats()
    assert torch.cuda.host_memory_stats()["active_bytes.peak"] == 0


def test_processes_are_listed(torch: Any) -> None:
    assert torch.cuda.list_gpu_processes() == "GPU:0\nno processes are running"
    kept = torch.zeros(1000, device="cuda")
    assert re.search(r"GPU:0 \(simulated\)\nprocess +\d+ uses +2.000 MB GPU memory", torch.cuda.list_gpu_processes())
    assert kept.is_cuda and torch.cuda.get_allocator_backend() == "native"


def test_caching_switched_off_by_the_environment(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    kept = torch.zeros(1000, device="cuda")
    assert torch.cuda.memory_reserved() == 0 and torch.cuda.mem_get_info()[0] == (1 << 30) - 4000 and kept.is_cuda


def test_every_refusal_of_the_device_is_logged(
    torch: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhaust() -> list[str]:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 32, dtype=torch.uint8, device="cuda")
        return capfd.readouterr().err.splitlines()

    lines = exhaust()
    said = (
        r"\[W\d{3,4} \d\d:\d\d:\d\d\.\d{9} CUDACachingAllocator\.cpp:3933\] memory allocation failed with OOM on "
        r"device 0 while trying to allocate 4294967296 bytes \(free: 1073741824, total: 1073741824\)\."
    )
    assert len(lines) == 2 and all(re.fullmatch(said, line) for line in lines), "the first try and the retry"
    monkeypatch.setenv("TORCH_CPP_LOG_LEVEL", "ERROR")
    assert exhaust() == []
    monkeypatch.delenv("TORCH_CPP_LOG_LEVEL")
    torch.cuda.set_per_process_memory_fraction(0.5)
    assert exhaust() == [], "the device was not asked"


def test_options_are_changed_while_a_script_runs(torch: Any) -> None:
    torch._C._accelerator_setAllocatorSettings("roundup_power2_divisions:4")
    kept = torch.empty(1200 * 1024, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == 1280 * 1024 and kept.is_cuda
    with pytest.raises(ValueError, match="Unrecognized key 'foo' in Accelerator allocator config"):
        torch._C._accelerator_setAllocatorSettings("max_split_size_mb:40,foo:1")
    assert torch._C._accelerator_getAllocatorSettings() == "max_split_size_mb:40,foo:1"
    assert torch.cuda.memory._snapshot()["allocator_settings"]["max_split_size"] == 40 * MIB
    assert torch.cuda.memory_stats()["max_split_size"] == -1, "that of the moment when the allocator was made"
    with pytest.raises(NotImplementedError, match=r"torch\._C\._get_tracing_state is not in Stridescope yet"):
        torch._C._get_tracing_state()
