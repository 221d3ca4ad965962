"""Measures the recording: pace and size of the writer, and the way to any step of a long run.

usage: python tests/benchmarks/recording.py [EVENTS]

Times are CPU time of this process, so that other programs on the machine count little.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import tempfile
import time
from collections.abc import Callable

from stridescope.engine.events import (
    Event,
    GradFnSet,
    Journal,
    KeysChosen,
    LineReached,
    NameBound,
    NodeFreed,
    NodeMade,
    OpBegan,
    OpEnded,
    StorageFreed,
    StorageMade,
    TensorFreed,
    TensorMade,
    TensorSaved,
    Wire,
)
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer

OPS = ("aten::mul", "aten::add", "aten::tanh", "aten::sum", "aten::mm", "aten::t", "aten::sub_")
LIVE = 300


def training_loop(count: int) -> list[Wire]:
    """Return the events of a training loop with some hundred live tensors."""
    chooser, wires, live = random.Random(0), [], []
    entity = turn = 0
    while len(wires) < count:
        turn, entity, line = turn + 1, entity + 3, 10 + turn % 15
        name = OPS[turn % len(OPS)]
        tensor, storage, node = entity, entity + 1, entity + 2
        events: list[Event] = [
            LineReached(1, 1, line),
            OpBegan(name, (tensor - 3, 5), (1.0,) if turn % 4 else (), 1, 1, line, 4, line, 20 + turn % 7),
            KeysChosen(("Autograd", "CPU")),
            StorageMade(storage, 2048, "cpu", 0x7F0000001000 + chooser.randrange(LIVE) * 64),
            TensorMade(tensor, storage, (32, 16), (16, 1), 0, "float32", 0, tensor, False),
            NodeMade(node, name + "Backward0", node, (node - 3, node - 21), (0, 0), 0),
            TensorSaved(node, "self", tensor - 3, storage - 3, 2048, 0, False),
            GradFnSet(tensor, node, 0),
            OpEnded(name, (tensor,)),
            NameBound(1, "xyzwab"[turn % 6], tensor, "tensor"),
        ]
        live.append((tensor, storage, node))
        if len(live) > LIVE // 3:
            old = live.pop(chooser.randrange(10))
            events += [TensorFreed(old[0]), StorageFreed(old[1]), NodeFreed(old[2])]
        wires += [event.pack() for event in events]
    return wires[:count]


def spent(action: Callable[[], object]) -> float:
    """CPU seconds of this process that an action takes."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def pace() -> float:
    """Nanoseconds that this machine takes now for a turn of a plain loop; an idle one of 2024 takes about 30."""
    table: dict[int, int] = {}

    def loop() -> None:
        for number in range(1_000_000):
            table[number & 1023] = number

    return min(spent(loop) for _ in range(3)) * 1000


def quantiles(seconds: list[float]) -> str:
    """Return median, 95th percentile and maximum as text, in milliseconds."""
    ordered = sorted(second * 1000 for second in seconds)
    return "  ".join(
        f"{name} {ordered[min(len(ordered) - 1, int(len(ordered) * share))]:.2f}"
        for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1))
    )


def write(path: pathlib.Path, wires: list[Wire]) -> None:
    """Record the events and print the pace of the writer."""
    writer, journal = Writer(path, {}), Journal()
    writer.attach(journal)
    assert journal.emit is not None
    emitted = spent(lambda: [writer._buffer.append(wire) for wire in wires])
    flushed = spent(writer.flush) + emitted
    print(f"write      {len(wires) / flushed / 1e6:.2f} M events/s, {os.path.getsize(path) / len(wires):.2f} B/event")
    print(f"keyframes  {spent(writer.close):.2f} s at the end")
    print(f"file       {os.path.getsize(path) / len(wires):.2f} B/event")


def walk(path: pathlib.Path, count: int) -> None:
    """Print how long states, histories and the like take."""
    chooser = random.Random(1)
    print(f"open       {spent(lambda: Recording.open(path)) * 1000:.1f} ms")
    recording = Recording.open(path)
    jumps = [chooser.randrange(count) for _ in range(200)]
    print("jump       " + quantiles([spent(lambda step=step: recording.state(step)) for step in jumps]) + " ms")
    forward = range(count // 2, count // 2 + 600)
    print("forward    " + quantiles([spent(lambda step=step: recording.state(step)) for step in forward]) + " ms")
    print("backward   " + quantiles([spent(lambda step=step: recording.state(step)) for step in forward[::-1]]) + " ms")
    print(f"history    {spent(lambda: recording.history('tensor', count // 8 // 3 * 3)) * 1000:.1f} ms")
    print(f"stops      {spent(lambda: recording.stops('op')) * 1000:.1f} ms")


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=1_000_000, help="events of the recording")
    count = parser.parse_args().events
    print(f"pace       {pace():.0f} ns a turn of a plain loop: read the rest against it")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run.stride"
        write(path, training_loop(count))
        walk(path, count)


if __name__ == "__main__":
    main()
