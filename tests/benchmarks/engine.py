"""How fast the engine is against real PyTorch: ratios within one run.

usage: python tests/benchmarks/engine.py [--torch PYTHON] [--rounds N]

PYTHON is an interpreter that has torch (default: the environment variable STRIDESCOPE_TORCH_PYTHON). Each figure is
the median over rounds of CPU time per call; the engine with recording off, the engine with recording on, and real
PyTorch take turns in processes of their own, so that a noisy machine hits all of them alike. A ratio of 0.80 means
that the engine needs 80 % of PyTorch's time.

Last seen on two cores with little else to do (default rounds): geometric mean 1.9 unrecorded, 3.8 recorded. Tiny ops
without a graph 0.6 to 3.2, with one 1.3 to 2.0; 100 nodes forward 1.7, backward 1.6; whole training steps 1.6 to 2.0.
Far from even are kernels that NumPy needs many calls for, each of which takes as long as half of PyTorch's whole op:
softmax 5 (six calls), sums of rows 5, cross entropy 6 and layer norm 6, which is computed in double precision. A call
that is recorded takes 1.2 to 2.9 times as long as one that is not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

PROGRAM = r"""
import json, sys, time
mode = sys.argv[1]
if mode == "torch":
    import torch
    torch.set_num_threads(1)
else:
    import stridescope.engine.torch as torch
    if mode == "recorded":
        from stridescope.engine.events import journal
        from collections import deque
        journal.start(deque(maxlen=4096).append, 4096, bundles=True)  # as the writer takes them
F = torch.nn.functional
torch.manual_seed(0)
a, b, m = torch.rand(4), torch.rand(4), torch.rand(64, 64)
w, n = torch.rand(4, requires_grad=True), torch.rand(64, 64, requires_grad=True)
rows, image = torch.rand(8, 64), torch.rand(2, 16, 16, 16, requires_grad=True)
kernel = torch.rand(16, 16, 3, 3, requires_grad=True)
scale, shift, classes = torch.ones(64), torch.zeros(64), torch.arange(8)
w1, w2 = (torch.randn(2, 16) * 0.5).requires_grad_(), (torch.randn(16, 1) * 0.5).requires_grad_()
x, y = torch.rand(32, 2), torch.rand(32, 1)

def chain():
    t = w
    for _ in range(50):
        t = t * b + b
    return t

def backward():
    chain().sum().backward()

def mlp_step():
    loss = ((torch.tanh(x @ w1) @ w2 - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w1, w2):
            p -= 0.1 * p.grad
            p.grad = None

layers = torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
net = torch.nn.Sequential(*layers)
sgd, adam = torch.optim.SGD(net.parameters(), lr=0.01), torch.optim.Adam(net.parameters())

def training_step(optimizer):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()

def conv_block():
    F.relu(F.conv2d(image, kernel, padding=1)).sum().backward()

CASES = {
    "add": lambda: a + b, "add, grad": lambda: w + b, "mul, grad": lambda: w * b, "add_": lambda: a.add_(b),
    "mul by a number": lambda: a * 2.0, "view": lambda: a.view(2, 2), "transpose": lambda: m.transpose(0, 1),
    "index": lambda: a[1], "slice": lambda: m[1:9, ::2], "sum": lambda: a.sum(), "exp": lambda: a.exp(),
    "less": lambda: a < b, "relu": lambda: a.relu(), "matmul 64": lambda: m @ m, "matmul 64, grad": lambda: n @ m,
    "softmax 8x64": lambda: rows.softmax(1), "layer norm 8x64": lambda: F.layer_norm(rows, (64,), scale, shift),
    "cross entropy 8x64": lambda: F.cross_entropy(rows, classes), "sum of rows": lambda: m.sum(1),
    "empty": lambda: torch.empty(4), "item": lambda: b[0].item(),
    "100 nodes forward": chain, "100 nodes backward": backward, "mlp step": mlp_step, "conv block": conv_block,
    "step of nn and SGD": lambda: training_step(sgd), "step of nn and Adam": lambda: training_step(adam),
}
for name, case in CASES.items():
    try:
        case()
    except Exception as error:
        print(json.dumps([name, None, str(error)[:80]]))
        continue
    start = time.process_time(); case(); case(); once = (time.process_time() - start) / 2
    count = max(1, min(2000, int(0.03 / max(once, 1e-6))))
    best = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(count):
            case()
        best.append((time.process_time() - start) / count)
    print(json.dumps([name, sorted(best)[1], ""]), flush=True)
"""


def measured(python: str, mode: str) -> dict[str, float | None]:
    """CPU seconds per call of each case, None where it failed."""
    done = subprocess.run([python, "-P", "-c", PROGRAM, mode], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the {mode} side failed: {done.stderr.strip().splitlines()[-1]}")
    return {name: seconds for name, seconds, _ in map(json.loads, done.stdout.splitlines())}


def main() -> None:
    """Run all sides in turn and print a table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default=os.environ.get("STRIDESCOPE_TORCH_PYTHON"))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not arguments.torch:
        raise SystemExit("name an interpreter that has torch: --torch PYTHON, or STRIDESCOPE_TORCH_PYTHON")
    sides = {"plain": sys.executable, "recorded": sys.executable, "torch": arguments.torch}
    rounds = [{mode: measured(python, mode) for mode, python in sides.items()} for _ in range(arguments.rounds)]
    report(rounds)


def report(rounds: list[dict[str, dict[str, float | None]]]) -> None:
    """Print PyTorch's time and the engine's ratios to it, and their geometric means."""
    print(f"{'case':22s} {'torch µs':>9s} {'engine':>8s} {'recorded':>9s} {'recording costs':>16s}")
    ratios: dict[str, list[float]] = {"plain": [], "recorded": []}
    for name in rounds[0]["torch"]:
        found = {mode: [r[mode].get(name) for r in rounds] for mode in ("plain", "recorded", "torch")}
        if any(value is None for values in found.values() for value in values):
            print(f"{name:22s} not on every side")
            continue
        plain, recorded, torch = (statistics.median(found[mode]) for mode in ("plain", "recorded", "torch"))
        ratios["plain"].append(plain / torch)
        ratios["recorded"].append(recorded / torch)
        line = f"{name:22s} {torch * 1e6:9.2f} {plain / torch:7.2f}x {recorded / torch:8.2f}x {recorded / plain:15.2f}x"
        print(line)
    means = [statistics.geometric_mean(values) for values in ratios.values()]
    print(f"{'geometric mean':22s} {'':9s} {means[0]:7.2f}x {means[1]:8.2f}x")


if __name__ == "__main__":
    main()
