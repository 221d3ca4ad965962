"""What recording costs a script: ``python tests/benchmarks/tracing.py [NAME…]`` prints CPU times, plain and recorded.

Every script is run in processes of its own, one way after the other; the figure is the CPU time that the script
itself measures (all threads of its process, so the recording's own thread counts). The last three run ops, one of them
with many lines between; the others show the price of a Python line. ``ops only`` is the same script recorded without
its lines, calls and names: what the last column divides by, so that the price of lines is seen by itself. With
``--every-line`` nothing is rationed.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import textwrap
import types

from stridescope.engine.events import journal
from stridescope.engine.events.journal import nowhere
from stridescope.engine.worker import recorded
from stridescope.engine.worker.tracer import Tracer

ROUNDS = 3
RUN = "import sys; from stridescope.engine.worker import launch, recorded; "
WAYS = {
    "plain": RUN + "launch.leave(launch.run_script(sys.argv[1]))",
    "ops only": f"{RUN}sys.path.append({str(pathlib.Path(__file__).parent)!r}); import tracing; "
    "launch.leave(tracing.record_without_lines(sys.argv[1], sys.argv[2]))",
    "recorded": RUN + "launch.leave(recorded.record_script(sys.argv[1], (), sys.argv[2]))",
}
EVERY_LINE = RUN + "launch.leave(recorded.record_script(sys.argv[1], (), sys.argv[2], every_line=True))"
LOOP = """
    def work(n):
        a = i = 0
        while i < n:
            a = a + i
            b = a & 255
            if b == 7:
                a = a - 1
            c = b + 1
            i = i + 1
        return a
"""
SCRIPTS = {
    "1e6 lines in one loop": (LOOP, "work(166_000)"),
    "4e6 lines in one loop": (LOOP, "work(664_000)"),
    "calls": (
        """
    def inner(x):
        y = x * 2
        return y

    def work(n):
        return sum(inner(i) for i in range(n))
    """,
        "work(200_000)",
    ),
    "recursion": (
        """
    def fib(n):
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)
    """,
        "fib(26)",
    ),
    "methods": (
        """
    class Point:
        def __init__(self, x, y):
            self.x = x
            self.y = y

        def plus(self, other):
            return Point(self.x + other.x, self.y + other.y)

    def work(n):
        point, step = Point(0, 0), Point(1, 2)
        for _ in range(n):
            point = point.plus(step)
        return point.x
    """,
        "work(150_000)",
    ),
    "comprehensions": (
        """
    def work(n):
        out = []
        for _ in range(n):
            out.append([i * i for i in range(20)])
            table = {i: i + 1 for i in range(10)}
        return out, table
    """,
        "work(30_000)",
    ),
    "generators": (
        """
    def numbers(n):
        for i in range(n):
            if i % 3:
                yield i

    def work(n):
        total = 0
        for x in numbers(n):
            total += x
        return total
    """,
        "work(400_000)",
    ),
    "dicts and strings": (
        """
    def work(n):
        counts = {}
        for i in range(n):
            word = str(i % 100)
            if word in counts:
                counts[word] += 1
            else:
                counts[word] = 1
        return counts
    """,
        "work(200_000)",
    ),
    "library code": (
        "import json\nwork = lambda text: [json.loads(text) for _ in range(2000)]",
        "work('[1, 2, 3]' * 1)",
    ),
    "training": (
        """
    import torch

    def work(steps):
        torch.manual_seed(0)
        x, y = torch.randn(64, 32), torch.randn(64, 1)
        w1, w2 = torch.randn(32, 64, requires_grad=True), torch.randn(64, 1, requires_grad=True)
        for step in range(steps):
            hidden = (x @ w1).relu()
            loss = ((hidden @ w2 - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                for w in (w1, w2):
                    w -= 1e-5 * w.grad
                    w.grad = None
    """,
        "work(200)",
    ),
    "ops among lines": (
        """
    import torch

    def scale(v, k):
        r = v * k
        return r

    def work(steps):
        x = torch.randn(16)
        total = 0.0
        for step in range(steps):
            y = scale(x, step)
            z = y + 1
            s = z.sum()
            for i in range(40):
                k = i * 2
                total += k
            total += s.item()
    """,
        "work(3000)",
    ),
}
# What waits for the recording's thread when a script ends is in no figure: a longer run shows what that takes, too.
SCRIPTS["long training"] = (SCRIPTS["training"][0], "work(1500)")


class Unwatched:
    """Watches nothing: no line, call or name is told, and no op says where it stands."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def start(self) -> None:
        """Begin to report nothing."""
        journal.where = nowhere

    def stop(self) -> None:
        """Report nothing more."""

    def prepare(self, code: types.CodeType) -> types.CodeType:
        """Leave the code as it is."""
        return code


def record_without_lines(script: str, recording: str) -> int:
    """Run a script recorded, but for what Python does in it."""
    recorded.watch = Unwatched
    return recorded.record_script(script, (), recording)


def timed(setup: str, call: str) -> str:
    """A script that prints the CPU seconds of one call."""
    lines = ["import time", textwrap.dedent(setup), "began = time.process_time()", call]
    return "\n".join([*lines, "print(time.process_time() - began)\n"])


def seconds(way: str, script: pathlib.Path) -> float:
    """The CPU seconds of one run."""
    command = [sys.executable, "-P", "-c", WAYS[way], str(script), str(script.with_suffix(".stride"))]
    return float(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)


def main() -> None:
    """Print a line for each script, or for those whose names are given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *SCRIPTS], metavar="NAME", help=", ".join(SCRIPTS))
    parser.add_argument("--every-line", action="store_true", help="measure a run in which nothing is rationed, too")
    asked = parser.parse_args()
    wanted = asked.names or list(SCRIPTS)
    if asked.every_line:
        WAYS["every line"] = EVERY_LINE
    print(f"{'':24}{'plain ms':>10}" + "".join(f"{way:>14}" for way in [*list(WAYS)[1:], "recorded/ops"]))
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            setup, call = SCRIPTS[name]
            script = pathlib.Path(folder, "script.py")
            script.write_text(timed(setup, call), encoding="utf-8")
            rounds = [[seconds(way, script) for way in WAYS] for _ in range(ROUNDS)]
            plain, *others = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratios = [*(other / plain for other in others), others[1] / others[0]]
            print(f"{name:24}{plain * 1e3:10.1f}" + "".join(f"{ratio:13.2f}x" for ratio in ratios), flush=True)


if __name__ == "__main__":
    main()
