"""Makes a memory snapshot as large as wanted, opens it in the window, and measures how long the window stands still.

EVENTS entries with FRAMES stack frames each: 1000000 and 200 make a file of about 1 GB. The file is kept if it is
named. The longest pauses between two beats of a 5 ms timer in the window's own thread are what a person would feel;
beside each stands the CPU time that the thread itself took, for other programs on the machine can make it wait too.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from stridescope.engine.devices.memory_history import MemoryHistory
from stridescope.engine.devices.simulated import SimulatedGPU
from stridescope.engine.devices.snapshot import snapshot

MIB = 1 << 20
LIVE, KINDS, KNOWN_FRAMES = 400, 60, 4000
BEAT_MS, WORST = 5, 5


def training(events: int) -> dict[str, Any]:
    """A snapshot with about ``events`` entries: the same sizes come and go, as in training."""
    gpu, chance = SimulatedGPU(64 << 30), random.Random(1)
    gpu.allocator.log.history = history = MemoryHistory(None, events, frozenset(), False)
    sizes = [chance.choice([chance.randint(1, MIB), chance.randint(MIB, 20 * MIB)]) for _ in range(KINDS)]
    held = []
    while len(history.entries) < events:
        if len(held) < LIVE and (not held or chance.random() < 0.5):
            held.append(gpu.allocator.malloc(chance.choice(sizes)))
        else:
            which = chance.randrange(len(held))
            held[which], held[-1] = held[-1], held[which]
            gpu.allocator.free(held.pop())
    return snapshot([gpu.allocator])


def make(path: Path, events: int, frames: int) -> None:
    """Write such a snapshot, with a stack of its own for every entry."""
    found, chance = training(events), random.Random(2)
    known = [{"name": f"forward_{n}", "filename": f"/job/model_{n % 97}.py", "line": n} for n in range(KNOWN_FRAMES)]
    for entry in found["device_traces"][0]:
        first = chance.randrange(KNOWN_FRAMES - frames)
        entry["frames"] = known[first : first + frames]
    with path.open("wb") as file:
        pickle.dump(found, file, protocol=4)


class Watch:
    """Opens a file in the real window and notes every beat of the timer that came late."""

    def __init__(self, path: Path) -> None:
        from PySide6.QtCore import QTimer

        from stridescope.app.main import make_application, make_window

        self.application = make_application("dark", "en")
        self.window = make_window()
        self.window.resize(1280, 800)
        self.window.show()
        self.pauses: list[tuple[float, float, float]] = []
        self._last = self._began = time.perf_counter()
        self._worked = time.thread_time()
        self._timer = QTimer(interval=BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._timer.start()
        self.window.open(str(path))

    def _beat(self) -> None:
        now, worked = time.perf_counter(), time.thread_time()
        self.pauses.append((now - self._last, worked - self._worked, now - self._began))
        self._last, self._worked = now, worked

    def until_read(self) -> float:
        """Go on until the whole snapshot is a recording and shown; returns the seconds."""
        while not self._done():
            self.application.processEvents()
            time.sleep(0.001)
        return time.perf_counter() - self._began

    def _done(self) -> bool:
        recording = self.window.session.recording
        return recording is not None and not recording.live and self.window.settled

    def look_around(self) -> None:
        """Move the view to places all over the recording, as scrubbing does."""
        steps, chance = self.window.session.recording.steps, random.Random(3)
        for _ in range(30):
            self.window.time.look(chance.randrange(steps))
            until = time.perf_counter() + 0.2
            while time.perf_counter() < until:
                self.application.processEvents()

    def report(self, what: str) -> None:
        """Print the longest pauses since the last report, and when they were."""
        worst = sorted(self.pauses, reverse=True)[:WORST]
        shown = ", ".join(f"{1000 * gap:.0f} ms ({1000 * work:.0f} worked) at {at:.1f} s" for gap, work, at in worst)
        busiest = max(work for _, work, _ in self.pauses)
        print(f"{what}: longest pauses {shown}; most work at once {1000 * busiest:.0f} ms")
        self.pauses.clear()


def measure(path: Path, events: int, frames: int) -> None:
    """Make the file unless it is there, open it, look around, and print what was felt."""
    if not path.exists():
        made = os.fork() if hasattr(os, "fork") else 0
        if made == 0:
            make(path, events, frames)
            if hasattr(os, "fork"):
                os._exit(0)
        else:
            os.waitpid(made, 0)
    print(f"{path.stat().st_size / 1e9:.2f} GB, {events} events", flush=True)
    watch = Watch(path)
    seconds = watch.until_read()
    print(f"read and replayed in {seconds:.1f} s: {watch.window.session.recording.steps} steps", flush=True)
    watch.report("while it was read")
    watch.look_around()
    watch.report("while looking around")
    watch.window.grab().save(f"{tempfile.gettempdir()}/snapshot-window.png")
    print(f"the window's process took {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")
    watch.window.close()
    reading = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"the reading process took {reading / 1024:.0f} MiB at most")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=int, nargs="?", default=1_000_000, help="entries of the snapshot")
    parser.add_argument("frames", type=int, nargs="?", default=200, help="stack frames of each")
    parser.add_argument("file", type=Path, nargs="?", help="where it is kept, or lies from the last time")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(asked.file or Path(folder, "snapshot.pickle"), asked.events, asked.frames)


if __name__ == "__main__":
    main()
