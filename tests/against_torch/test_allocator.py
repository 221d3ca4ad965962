"""PyTorch's own tools read what our allocator writes, and its parser refuses what ours refuses."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.memory_history import MemoryHistory
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.snapshot import snapshot
from stridescope.engine.devices.snapshot_file import dump_snapshot
from stridescope.engine.torch.cuda.memory_summary import summary_text

MIB = 1 << 20


def lived(conf: str = "") -> SimulatedGPU:
    """A device with a bit of everything in its history."""
    gpu = SimulatedGPU(128 * MIB, settings=AllocatorSettings(conf))
    allocator = gpu.allocator
    allocator.log.history = MemoryHistory("all", 1000, frozenset(), False)
    blocks = [allocator.malloc(size) for size in (600, 3 * MIB, 11 * MIB, 500_000)]
    allocator.record_stream(blocks[1], 1)
    allocator.free(blocks[1])
    allocator.free(blocks[2])
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(200 * MIB)
    allocator.malloc(60 * MIB)
    return gpu


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
@pytest.mark.parametrize("command", ["trace", "stats", "trace_plot", "segment_plot"])
def test_pytorchs_viewer_opens_a_dump(command: str, conf: str, torch_python: str, tmp_path: pathlib.Path) -> None:
    dump_snapshot(snapshot([lived(conf).allocator]), tmp_path / "dump.pickle")
    arguments = [torch_python, "-W", "ignore", "-m", "torch.cuda._memory_viz", command, str(tmp_path / "dump.pickle")]
    if command.endswith("plot"):
        arguments += ["-o", str(tmp_path / "plot.html")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    if command == "trace":
        assert "14 entries" in done.stdout and "free in CUDA" in done.stdout


READ_EVERYTHING = """
import pickle, sys
from torch.cuda import _memory_viz as viz
before, after = (pickle.load(open(path, "rb")) for path in sys.argv[1:])
plain = lambda lines: lines
print(viz.segsum(after))
print(viz.trace(after))
print(viz.segments(after, plain))
print(viz.memory(after, plain))
print(viz.compare(before["segments"], after["segments"], plain))
for page in (viz.trace_plot(after), viz.segment_plot(after)):
    assert "<!DOCTYPE html>" in page, page[:40]
"""


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
def test_pytorchs_reader_takes_every_view_of_a_dump(conf: str, torch_python: str, tmp_path: pathlib.Path) -> None:
    gpu = lived(conf)
    dump_snapshot(snapshot([gpu.allocator]), tmp_path / "before.pickle")
    gpu.allocator.malloc(40 * MIB)
    dump_snapshot(snapshot([gpu.allocator]), tmp_path / "after.pickle")
    paths = [str(tmp_path / f"{name}.pickle") for name in ("before", "after")]
    done = subprocess.run(
        [torch_python, "-W", "ignore", "-c", READ_EVERYTHING, *paths], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert "only_after" in done.stdout and "active_allocated" in done.stdout
    assert "test_pytorchs_reader_takes_every_view_of_a_dump" in done.stdout, "the frames are there"


PRINT_SUMMARY = """
import collections, json, sys, torch.cuda.memory as memory
stats = collections.OrderedDict(json.loads(sys.stdin.read()))
memory.memory_stats = lambda device=None: stats
memory._get_device_index = lambda device=None, optional=False: 0
print(memory.memory_summary(), end="")
print(memory.memory_summary(abbreviated=True), end="")
"""


@pytest.mark.parametrize("sizes", [(4000, 3 * MIB), (4000, 3 * MIB, 50 * MIB, 1000 * MIB), tuple(range(1, 2000)), ()])
def test_the_summary_is_pytorchs_to_the_letter(sizes: tuple[int, ...], torch_python: str) -> None:
    gpu = SimulatedGPU(2 << 30)
    for number, size in enumerate(sizes):
        block = gpu.allocator.malloc(size)
        if number % 3 == 2:
            gpu.allocator.free(block)
    stats = gpu.allocator.stats.flat()
    done = subprocess.run(
        [torch_python, "-c", PRINT_SUMMARY], input=json.dumps(stats), capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert summary_text(stats, 0, False) + summary_text(stats, 0, True) == done.stdout


# Options that PyTorch reads without CUDA too, good and bad.
TEXTS = """
max_split_size_mb:19 | max_split_size_mb:20.5 | max_split_size_mb:x | max_split_size_mb | max_split_size_mb: |
max_split_size_mb:99999999999999999999999 | max_split_size_mb:30, | max_split_size_mb,30 | max_split_size_mb:[30] |
max_split_size_mb:30:garbage_collection_threshold:0.5 | max_split_size_mb:-1 | max_split_size_mb : 30 |
roundup_power2_divisions: | roundup_power2_divisions:[1:3] | roundup_power2_divisions:[3:2] |
roundup_power2_divisions:3 | roundup_power2_divisions:0 | roundup_power2_divisions:[1:2,4:8,>:1] |
roundup_power2_divisions:[] | roundup_power2_divisions:[1:2 4:8] | roundup_power2_divisions:[1,2,4,8] |
roundup_power2_divisions:[ | roundup_power2_divisions:[1 | roundup_power2_divisions:[1: | expandable_segments:[ |
roundup_power2_divisions:[1:2 | roundup_power2_divisions:[1:2, | roundup_power2_divisions:[1:2,] |
expandable_segments:true | expandable_segments:[True] | expandable_segments:True max_split_size_mb:40 |
max_non_split_rounding_mb:3 | large_segment_size_mb:10 | large_segment_size_mb:30,max_split_size_mb:25 |
max_non_split_rounding_mb:25 | garbage_collection_threshold: | garbage_collection_threshold:1.2 |
garbage_collection_threshold:x | garbage_collection_threshold:nan | garbage_collection_threshold:1e-1 |
garbage_collection_threshold:0.5abc | pinned_use_background_threads:x | pinned_max_cached_size_mb:x |
pinned_max_round_threshold_mb:3
""".replace("\n", "").split("|")
TRY_SETTINGS = """
import json, sys, torch
for text in json.loads(sys.stdin.read()):
    try:
        torch._C._accelerator_setAllocatorSettings(text)
        print("accepted")
    except Exception as error:
        print(type(error).__name__, error)
"""


def our_answer(settings: AllocatorSettings, text: str) -> str:
    try:
        settings.parse(text)
    except Exception as error:
        return f"{type(error).__name__} {error}"
    return "accepted"


def test_options_are_read_as_pytorch_reads_them(torch_python: str) -> None:
    done = subprocess.run(
        [torch_python, "-c", TRY_SETTINGS], input=json.dumps(TEXTS), capture_output=True, text=True, timeout=100
    )
    answers = dict(zip(TEXTS, done.stdout.splitlines(), strict=True))
    settings = AllocatorSettings()
    assert {text: our_answer(settings, text) for text in TEXTS} == answers
