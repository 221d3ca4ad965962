"""``stridescope replay``: recorded allocator calls run through our allocator, and where the outcome differs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stridescope.engine.devices.allocator_settings import AllocatorSettings
from stridescope.engine.devices.out_of_memory import format_size
from stridescope.engine.devices.registry import parse_size
from stridescope.engine.devices.snapshot_file import SnapshotError, load_snapshot
from stridescope.engine.devices.snapshot_replay import SnapshotReplay
from stridescope.engine.devices.trace_file import TraceError, first_difference, load_traces, run_trace
from stridescope.engine.explain.snapshot_recording import record_snapshot, untold
from stridescope.engine.recording.store import RecordingError

DIFFERENCES_SHOWN = 10


def parser() -> argparse.ArgumentParser:
    """The command's own arguments."""
    made = argparse.ArgumentParser(
        prog="stridescope replay",
        description="Run recorded allocator calls through Stridescope's caching allocator and say where it differs.",
    )
    made.add_argument("file", help="allocator traces (.json) or a memory snapshot of PyTorch (.pickle)")
    made.add_argument("--conf", help="options as in PYTORCH_CUDA_ALLOC_CONF, instead of the recorded ones")
    made.add_argument("--total", help="memory of the device, such as 16GiB, instead of the recorded size")
    made.add_argument(
        "-o", "--output", metavar="FILE.stride", help="also record the replay of a snapshot, to be opened"
    )
    made.add_argument("--progress", action="store_true", help="say on stdout how far it is, with -o")
    made.add_argument("--json", action="store_true", help="print the result as JSON")
    return made


def replay(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status: 0, 1 for an unusable file, 2 for bad use."""
    chosen = parser().parse_args(arguments)
    try:
        if chosen.conf:
            AllocatorSettings(chosen.conf)
        total = parse_size(chosen.total) if chosen.total else None
    except (ValueError, IndexError, RuntimeError) as error:
        return _fail(f"stridescope replay: {error}", 2)
    try:
        if not _holds_json(Path(chosen.file)):
            return _replay_snapshot(chosen, total)
        if chosen.output:
            return _fail("stridescope replay: only the replay of a snapshot can be recorded with --output", 2)
        return _replay_traces(chosen.file, chosen.conf, total, chosen.json)
    except BrokenPipeError:
        raise  # nobody reads what is printed: no fault of the file
    except OSError as error:
        return _fail(f"stridescope replay: cannot read {chosen.file}: {error.strerror or error}", 1)
    except RecordingError as error:
        return _fail(f"stridescope replay: {error}", 1)
    except (SnapshotError, TraceError) as error:
        return _fail(f"stridescope replay: {chosen.file} cannot be replayed: {error}", 1)


def _fail(message: str, status: int) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return status


def _holds_json(path: Path) -> bool:
    """Whether the file is text that begins like JSON; a pickle of protocol 2 and later begins with 0x80."""
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] in (b"[", b"{")


def _replay_traces(path: str, conf: str | None, total: int | None, as_json: bool) -> int:
    traces = load_traces(path)
    results = [run_trace(trace, conf, total) for trace in traces]
    if as_json:
        print(json.dumps(results))
        return 0
    for trace, result in zip(traces, results, strict=True):
        print(_trace_line(trace, result))
    return 0


def _trace_line(trace: dict[str, Any], result: dict[str, Any]) -> str:
    head = f"{trace['id']}  {trace.get('rule', '')}".rstrip()
    if "expect" in trace:
        difference = first_difference(trace["expect"], result)
        return f"{head}: {difference or 'the same'}"
    reserved = result["stats"].get("reserved_bytes.all.current", 0)
    allocated = result["stats"].get("allocated_bytes.all.current", 0)
    return f"{head}: {format_size(allocated)} allocated, {format_size(reserved)} reserved at the end"


def _replay_snapshot(chosen: argparse.Namespace, total: int | None) -> int:
    tell = _print_progress if chosen.progress else untold
    snapshot = load_snapshot(chosen.file, tell)
    devices = snapshot.devices()
    replays = []
    if chosen.output is not None and devices:
        # A window shows one device: the first that has a trace.
        shown = next((device for device in devices if snapshot.device_traces[device : device + 1] != [[]]), devices[0])
        replays.append(record_snapshot(snapshot, shown, chosen.file, chosen.output, chosen.conf, total, tell))
        devices.remove(shown)
    replays += [SnapshotReplay(snapshot, device, chosen.conf, total) for device in devices]
    results = [replay.result() for replay in replays]
    if chosen.json:
        print(json.dumps(results))
        return 0
    for result in results:
        print("\n".join(_snapshot_lines(result)))
    if not results:
        print("the snapshot holds no segment and no trace")
    return 0


def _print_progress(what: str, done: int, of: int) -> None:
    print("progress", what, done, of, flush=True)


def _snapshot_lines(result: dict[str, Any]) -> list[str]:
    lines = [
        f"device {result['device']}: {result['entries']} entries, {result['same_block']} of "
        f"{result['allocations']} allocations got the recorded block"
    ]
    lines.append(f"{'':24}{'recorded':>16}{'replayed':>16}")
    for key, label in (("peak_reserved", "peak reserved"), ("segments_opened", "segments opened")):
        lines.append(f"{label:24}{result['recorded'][key]:>16}{result['replayed'][key]:>16}")
    lines.append(
        f"{'out of memory':24}{result['recorded']['out_of_memory']:>16}{result['replayed']['out_of_memory']:>16}"
    )
    for found in result["differences"][:DIFFERENCES_SHOWN]:
        lines.append(f"entry {found['entry']}, {found['size']} bytes: {found['recorded']}, here {found['replayed']}")
    hidden = len(result["differences"]) - DIFFERENCES_SHOWN
    return [*lines, f"and {hidden} more differences"] if hidden > 0 else lines


if __name__ == "__main__":
    sys.exit(replay(sys.argv[1:]))
