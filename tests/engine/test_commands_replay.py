"""``stridescope replay``: files of traces and snapshots, good and bad."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from stridescope.engine.commands_replay import replay
from stridescope.engine.devices.memory_history import MemoryHistory
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.snapshot import snapshot
from stridescope.engine.devices.snapshot_file import dump_snapshot
from stridescope.engine.recording.reader import Recording

MIB = 1 << 20


def trace(**changes: Any) -> dict[str, Any]:
    return {"id": "X1", "rule": "two", "total": 64 * MIB, "ops": [["alloc", "a", 600, 0], ["free", "a"]]} | changes


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces.json"
    path.write_text(json.dumps([trace()]))
    return path


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    """A snapshot of a short life."""
    gpu = SimulatedGPU(64 * MIB)
    gpu.allocator.log.history = MemoryHistory("all", 1000, frozenset(), False)
    blocks = [gpu.allocator.malloc(size) for size in (600, 3 * MIB, 4 * MIB)]
    gpu.allocator.free(blocks[1])
    dump_snapshot(snapshot([gpu.allocator]), tmp_path / "dump.pickle")
    return tmp_path / "dump.pickle"


def test_a_trace_as_json(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay([str(traces), "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["id"] == "X1" and result["addresses"] == {"a": "0"}
    assert result["segments"][0]["blocks"] == [[2 * MIB, None, "inactive"]]
    assert result["stats"]["allocated_bytes.all.peak"] == 1024 and 0 not in result["stats"].values()


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"addresses": {"a": "0"}}, "X1  two: the same"),
        ({"addresses": {"a": "512"}}, 'X1  two: addresses differ: recorded {"a": "512"}, here {"a": "0"}'),
        ({"stats": {"num_ooms": 1}}, "here "),
    ],
)
def test_a_trace_is_compared_with_what_it_expects(
    expected: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(trace(expect=expected)))
    assert replay([str(tmp_path / "one.json")]) == 0
    assert said in capsys.readouterr().out


def test_options_and_size_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.json").write_text(json.dumps(trace(ops=[["alloc", "a", 30 * MIB, 0]])))
    assert replay([str(tmp_path / "one.json"), "--json", "--conf", "expandable_segments:True", "--total", "20MiB"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["addresses"] == {"a": "oom"}


def test_a_snapshot(dumped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay([str(dumped)]) == 0
    assert "3 of 3 allocations got the recorded block" in capsys.readouterr().out
    assert replay([str(dumped), "--json", "--total", "4MiB"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["replayed"]["out_of_memory"] == 2 and len(result["differences"]) == 2


def test_a_snapshot_becomes_a_recording(dumped: Path, tmp_path: Path) -> None:
    assert replay([str(dumped), "-o", str(tmp_path / "out.stride")]) == 0
    recording = Recording.open(str(tmp_path / "out.stride"))
    state = recording.state(recording.steps - 1)
    blocks = [
        (block.size, block.state) for s in state.allocator.segments.values() for block in state.allocator.blocks_of(s)
    ]
    assert (3 * MIB, "inactive") in blocks and (4 * MIB, "active_allocated") in blocks
    (text,) = [source.text for source in recording.sources.values()]
    assert text.splitlines()[1].startswith("alloc              600 bytes at 0x2")
    assert state.line == len(text.splitlines()) and state.status == 0
    recording.close()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "is no valid JSON"),
        ("[3]", "trace 0 is no object with a list of ops"),
        ('[{"ops": []}]', "trace 0 has no total above 0"),
        (json.dumps([trace(total=-1)]), "X1 has no total above 0"),
        (json.dumps([trace(conf=3)]), "X1 has a conf that is no text"),
        (json.dumps([trace(conf="foo:1")]), "X1: Unrecognized key 'foo'"),
        (json.dumps([trace(ops=[["leak"]])]), "op 0 is none of alloc, free, record"),
        (json.dumps([trace(ops=[["alloc", "a", "b", 0]])]), "op 0 is none of"),
        (json.dumps([trace(ops=[["alloc", "a", -1, 0]])]), "op 0 is none of"),
        (json.dumps([trace(ops=[[["alloc"]]])]), "op 0 is none of"),
        (json.dumps([trace(ops=[["enter", "p"]])]), "names the pool 'p', which no op made"),
        (json.dumps([trace(ops=[["pool", "p", 0, 0], ["exit", "p"]])]), "X1: endAllocatePool"),
        ("import torch\n", "no pickle"),
        ("", "cut short"),
    ],
)
def test_unusable_files_get_one_line(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text(content)
    assert replay([str(tmp_path / "file")]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err and printed.err.count("\n") == 1


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay([str(tmp_path / "nothing")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_hostile_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evil.pickle").write_bytes(b"\x80\x04cos\nmkdir\n(S'" + str(tmp_path / "sprung").encode() + b"'tR.")
    assert replay([str(tmp_path / "evil.pickle")]) == 1
    assert "it wants to run os.mkdir" in capsys.readouterr().err and not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--conf", "foo:1"], "Unrecognized key 'foo' in CUDA allocator config."),
        (["--total", "much"], "'much' is no memory size"),
        (["-o", "x.stride"], "only the replay of a snapshot can be recorded"),
    ],
)
def test_bad_use(arguments: list[str], said: str, traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay([str(traces), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_recording_that_cannot_be_made(dumped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay([str(dumped), "-o", str(tmp_path / "no" / "out.stride")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_snapshot_without_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    assert replay([str(tmp_path / "empty.pickle")]) == 0
    assert "holds no segment and no trace" in capsys.readouterr().out
