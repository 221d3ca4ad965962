"""Measures the caching allocator: calls per second with nothing listening, with the recording, with the history.

usage: python tests/benchmarks/allocator.py [CALLS]

The calls are those of a training loop: the same sizes come and go, half of them small. Times are CPU time of this
process, so that other programs on the machine count little.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable

from stridescope.engine.devices.memory_history import MemoryHistory
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.events import Journal, Wire
from stridescope.engine.recording.allocator_state import AllocatorState
from stridescope.engine.recording.writer import Writer

MIB = 1 << 20
LIVE = 400
KINDS = 60


def plan(calls: int) -> list[tuple[int, int]]:
    """What each call does: a size to take, or minus one and which live block to give back."""
    chance = random.Random(1)
    kinds = [chance.choice([chance.randint(1, MIB), chance.randint(MIB, 20 * MIB)]) for _ in range(KINDS)]
    steps, live = [], 0
    while len(steps) < calls:
        if live < LIVE and (live == 0 or chance.random() < 0.5):
            steps.append((chance.choice(kinds), 0))
            live += 1
        else:
            live -= 1
            steps.append((-1, chance.randint(0, live)))
    return steps


def live_through(steps: list[tuple[int, int]], prepare: Callable[[SimulatedGPU], object]) -> float:
    """Seconds for all calls."""
    gpu = SimulatedGPU(64 << 30)
    listener = prepare(gpu)
    malloc, free, held = gpu.allocator.malloc, gpu.allocator.free, []
    began = time.process_time()
    for size, which in steps:
        if size >= 0:
            held.append(malloc(size))
        else:
            held[which], held[-1] = held[-1], held[which]
            free(held.pop())
    if isinstance(listener, Writer):
        listener.flush()
    seconds = time.process_time() - began
    if isinstance(listener, Writer):
        listener.close()
    return seconds


def record_to(path: str) -> Callable[[SimulatedGPU], Writer]:
    """Let the allocator's events go into a recording."""

    def prepare(gpu: SimulatedGPU) -> Writer:
        journal = Journal()
        gpu.allocator.log.journal = journal
        writer = Writer(path, {"script": "allocator.py"})
        writer.attach(journal)
        return writer

    return prepare


def keep_history(context: str | None) -> Callable[[SimulatedGPU], None]:
    """Let the allocator keep the memory history."""

    def prepare(gpu: SimulatedGPU) -> None:
        gpu.allocator.log.history = MemoryHistory(context, 100_000, frozenset(), False)

    return prepare


def fold(steps: list[tuple[int, int]]) -> tuple[int, float]:
    """How many events the calls give, and the seconds to fold them into the recorded state."""
    events = list[Wire]()

    def prepare(gpu: SimulatedGPU) -> None:
        gpu.allocator.log.journal = Journal()
        gpu.allocator.log.journal.emit = events.append

    live_through(steps, prepare)
    state, began = AllocatorState(), time.process_time()
    for step, wire in enumerate(events):
        state.apply(step, wire)
    return len(events), time.process_time() - began


def main() -> None:
    """Print one line for each way of listening."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=int, nargs="?", default=1_000_000, help="allocations and frees")
    calls = parser.parse_args().calls
    steps = plan(calls)
    with tempfile.TemporaryDirectory() as folder:
        ways: list[tuple[str, Callable[[SimulatedGPU], object]]] = [
            ("nothing listens", lambda gpu: None),
            ("recorded into a file", record_to(f"{folder}/allocator.stride")),
            ("history without stacks", keep_history(None)),
            ("history with stacks", keep_history("all")),
        ]
        for name, prepare in ways:
            print(f"{name:24} {calls / live_through(steps, prepare):12,.0f} calls/s", flush=True)
    events, seconds = fold(steps[:100_000])
    print(f"{'events folded':24} {events / seconds:12,.0f} events/s, {events / min(calls, 100_000):.1f} events a call")


if __name__ == "__main__":
    main()
