"""Recordings for the tests of the window: the events of two short scripts, written through the product's writer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).parent))  # for debugger.py

import numpy as np
import pytest
from debugger import SCRIPT, reach
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.app.main_window import MainWindow
from stridescope.engine import events as ev
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.writer import Writer

STRIDES = """import torch
a = torch.arange(12.).reshape(3, 4)
b = a.t()
w = torch.randn(4, 2, requires_grad=True)
c = b[1:, ::2]
y = (a @ w).relu()
loss = y.pow(2).mean()
loss.backward()
# c shares a's storage: offset 1
"""
MIB = 1 << 20


class Score:
    """Emits what an engine would, one call a line or op; ids count up from 1."""

    def __init__(self, journal: ev.Journal, text: str) -> None:
        self.journal, self.lines = journal, text.splitlines()
        self.tensors = self.storages = self.nodes = 0

    def emit(self, *events: ev.Event) -> None:
        assert self.journal.emit is not None
        for event in events:
            self.journal.emit(event.pack())

    def start(self, path: Path) -> None:
        self.emit(ev.SourceSeen(1, str(path)), ev.FrameEntered(1, 0, 1, "<module>", 1))

    def line(self, number: int) -> None:
        self.number = number
        self.emit(ev.LineReached(1, 1, number))

    def op(self, name: str, code: str, inputs: tuple[int, ...] = ()) -> None:
        column = self.lines[self.number - 1].index(code)
        end = column + len(code)
        self.name = name
        self.emit(
            ev.OpBegan(name, inputs, (), 1, 1, self.number, column, self.number, end),
            ev.KeysChosen(("AutogradCPU", "CPU")),
        )

    def storage(self, values: list[float], device: str = "cpu") -> int:
        self.storages += 1
        data = np.asarray(values, np.float32).tobytes()
        self.emit(
            ev.StorageMade(self.storages, len(data), device, 0x1000 * self.storages),
            ev.StorageWritten(self.storages, 0, data),
        )
        return self.storages

    def tensor(
        self,
        storage: int,
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int = 0,
        base: int = 0,
        *,
        grad: bool = False,
    ) -> int:
        self.tensors += 1
        self.emit(
            ev.TensorMade(self.tensors, storage, sizes, strides, offset, "float32", base, base or self.tensors, grad)
        )
        return self.tensors

    def node(self, name: str, edges: tuple[int, ...], variable: int = 0) -> int:
        self.nodes += 1
        self.emit(ev.NodeMade(self.nodes, name, -1 if variable else self.nodes, edges, (0,) * len(edges), variable))
        return self.nodes

    def ended(self, *outputs: int) -> None:
        self.emit(ev.OpEnded(self.name, outputs))

    def bind(self, name: str, tensor: int) -> None:
        self.emit(ev.NameBound(1, name, tensor, ""))


def play_strides(score: Score) -> None:
    """Emit the run of the mock-up's script."""
    score.line(1)
    score.line(2)
    score.op("aten::arange", "torch.arange(12.)")
    flat = score.tensor(score.storage(list(range(12))), (12,), (1,))
    score.ended(flat)
    score.op("aten::reshape", "torch.arange(12.).reshape(3, 4)", (flat,))
    a = score.tensor(1, (3, 4), (4, 1), base=flat)
    score.ended(a)
    score.emit(ev.TensorFreed(flat))
    score.bind("a", a)
    score.line(3)
    score.op("aten::t", "a.t()", (a,))
    b = score.tensor(1, (4, 3), (1, 4), base=a)
    score.ended(b)
    score.bind("b", b)
    score.line(4)
    score.op("aten::randn", "torch.randn(4, 2, requires_grad=True)")
    w = score.tensor(score.storage([0.22, -1.1, 0.37, 0.05, 1.8, -0.44, -0.9, 0.61]), (4, 2), (2, 1), grad=True)
    score.ended(w)
    score.bind("w", w)
    score.line(5)
    score.op("aten::slice", "b[1:, ::2]", (b,))
    c = score.tensor(1, (3, 2), (1, 8), offset=1, base=a)
    score.ended(c)
    score.bind("c", c)
    _forward(score, a, w)


def _forward(score: Score, a: int, w: int) -> None:
    score.line(6)
    score.op("aten::mm", "a @ w", (a, w))
    product = score.tensor(score.storage([-1.16, 0.36, -0.54, -0.9, 0.1, -2.2]), (3, 2), (2, 1), grad=True)
    accumulate = score.node("AccumulateGrad", (), w)
    mm = score.node("MmBackward0", (0, accumulate))
    score.emit(ev.TensorSaved(mm, "self", a, 1, 48, 0, False), ev.GradFnSet(product, mm, 0))
    score.ended(product)
    score.op("aten::relu", "(a @ w).relu()", (product,))
    y = score.tensor(score.storage([0, 0.36, 0, 0, 0.1, 0]), (3, 2), (2, 1), grad=True)
    relu = score.node("ReluBackward0", (mm,))
    score.emit(ev.TensorSaved(relu, "result", y, 4, 24, 0, True), ev.GradFnSet(y, relu, 0))
    score.ended(y)
    score.emit(ev.StorageFreed(3), ev.TensorFreed(product))
    score.bind("y", y)
    score.line(7)
    score.op("aten::pow", "y.pow(2)", (y,))
    square = score.tensor(score.storage([0, 0.13, 0, 0, 0.01, 0]), (3, 2), (2, 1), grad=True)
    power = score.node("PowBackward0", (relu,))
    score.emit(ev.TensorSaved(power, "self", y, 4, 24, 0, False), ev.GradFnSet(square, power, 0))
    score.ended(square)
    score.op("aten::mean", "y.pow(2).mean()", (square,))
    loss = score.tensor(score.storage([0.0233]), (), (), grad=True)
    mean = score.node("MeanBackward0", (power,))
    score.emit(ev.GradFnSet(loss, mean, 0))
    score.ended(loss)
    score.emit(ev.TensorFreed(square), ev.StorageFreed(5))
    score.bind("loss", loss)
    _backward(score, (mean, power, relu, mm, accumulate), w)


def _backward(score: Score, path: tuple[int, ...], w: int) -> None:
    score.line(8)
    score.emit(
        ev.BackwardBegan(1, (path[0],), False),
        ev.DependenciesCounted(1, path, (0, *(1,) * (len(path) - 1))),
        ev.NodeReady(path[0]),
    )
    for node, receiver in zip(path, (*path[1:], 0), strict=True):
        score.emit(ev.NodeBegan(node, ()))
        if receiver:
            grad = score.tensor(score.storage([0.167] * 6), (3, 2), (2, 1))
            score.emit(ev.SavedFreed(node), ev.GradientSent(node, receiver, 0, grad, False, 0), ev.NodeReady(receiver))
        else:
            grad = score.tensor(score.storage([0.5] * 8), (4, 2), (2, 1))
            score.emit(ev.GradAccumulated(w, grad, True))
        score.emit(ev.NodeEnded(node))
    score.emit(ev.BackwardEnded(1), ev.OutputWritten(1, "done\n"), ev.FrameLeft(1), ev.ScriptEnded(0))


CUDA = """import torch
x = torch.ones(100, device="cuda")
h = torch.empty(3, 1024, 1024, device="cuda")
k = torch.empty(1024, 1024, device="cuda")
del h
"""


def play_allocator(score: Score) -> None:
    """Emit the run of a script on the simulated GPU: a small block, a split large one, a freed one."""
    device, small, large = "cuda:0", 0x7F3000000000, 0x7F3000200000
    score.line(2)
    score.op("aten::ones", 'torch.ones(100, device="cuda")')
    score.emit(ev.BlockRequested(device, 400, 512, "small", 0), ev.SegmentAllocated(device, small, 2 * MIB, "small", 0))
    score.emit(ev.BlockSplit(device, small, 2 * MIB, 512, "the rest holds at least 512 bytes"))
    score.emit(ev.BlockAllocated(device, small, 512, 400, 0, 1))
    x = score.tensor(score.storage([1.0] * 100, device), (100,), (1,))
    score.ended(x)
    score.bind("x", x)
    score.line(3)
    score.op("aten::empty", 'torch.empty(3, 1024, 1024, device="cuda")')
    score.emit(
        ev.BlockRequested(device, 12 * MIB, 12 * MIB, "large", 0),
        ev.SegmentAllocated(device, large, 20 * MIB, "large", 0),
    )
    score.emit(ev.BlockSplit(device, large, 20 * MIB, 12 * MIB, "the rest is over 1 MiB"))
    score.emit(ev.BlockAllocated(device, large, 12 * MIB, 12 * MIB, 0, 2), ev.StorageMade(2, 12 * MIB, device, large))
    score.storages = 2
    h = score.tensor(2, (3, 1024, 1024), (1 << 20, 1024, 1))
    score.ended(h)
    score.bind("h", h)
    score.line(4)
    score.op("aten::empty", 'torch.empty(1024, 1024, device="cuda")')
    score.emit(
        ev.BlockRequested(device, 4 * MIB, 4 * MIB, "large", 0),
        ev.BlockConsidered(device, large + 12 * MIB, 8 * MIB, "best fit"),
    )
    score.emit(ev.BlockSplit(device, large + 12 * MIB, 8 * MIB, 4 * MIB, "the rest is over 1 MiB"))
    score.emit(
        ev.BlockAllocated(device, large + 12 * MIB, 4 * MIB, 4 * MIB, 0, 3),
        ev.StorageMade(3, 4 * MIB, device, large + 12 * MIB),
    )
    score.storages = 3
    k = score.tensor(3, (1024, 1024), (1024, 1))
    score.ended(k)
    score.bind("k", k)
    score.line(5)
    score.emit(ev.NameUnbound(1, "h"), ev.TensorFreed(h), ev.StorageFreed(2), ev.BlockFreed(device, large, 12 * MIB))
    score.emit(ev.FrameLeft(1), ev.ScriptEnded(0))


PLAYS = {"strides": (STRIDES, play_strides), "allocator": (CUDA, play_allocator)}


def write_recording(folder: Path, name: str) -> Path:
    """Write the recording of a play and return its path."""
    text, play = PLAYS[name]
    script, path = folder / f"{name}.py", folder / f"{name}.stride"
    script.write_text(text, encoding="utf-8")
    journal = ev.Journal()
    writer = Writer(path, {"script": str(script), "device": "Simulated GPU · 8 GiB"})
    writer.attach(journal, 1 << 16)
    score = Score(journal, text)
    score.start(script)
    play(score)
    writer.close(0)
    return path


@pytest.fixture(scope="session", params=sorted(PLAYS))
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """Each play's recording in turn."""
    with Recording.open(write_recording(tmp_path_factory.mktemp("plays"), request.param)) as opened:
        yield opened


@pytest.fixture(scope="session")
def strides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """The recording of the mock-up's script."""
    with Recording.open(write_recording(tmp_path_factory.mktemp("strides"), "strides")) as opened:
        yield opened


@pytest.fixture(scope="session")
def allocator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """The recording of a script on the simulated GPU."""
    with Recording.open(write_recording(tmp_path_factory.mktemp("allocator"), "allocator")) as opened:
        yield opened


@pytest.fixture(scope="session")
def record_file() -> Callable[[Path, Path], Recording]:
    """Run a script from the command line, recorded into a folder; it may fail."""

    def recorded(script: Path, folder: Path) -> Recording:
        target = folder / "run.stride"
        command = [sys.executable, "-P", "-m", "stridescope.app.cli", "record", str(script), "-o", str(target)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert ended.returncode in (0, 1), ended.stderr
        return Recording.open(target)

    return recorded


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[MainWindow]:
    """A window with settings of its own."""
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings"))
    main.make_application("dark", "en")
    made = main.make_window(remember=True)
    qtbot.addWidget(made)
    made.show()
    yield made
    made.close()


@pytest.fixture
def run(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> Callable[..., MainWindow]:
    """Open a script and wait until it stands at its first line."""

    def opened(text: str = SCRIPT) -> MainWindow:
        script = tmp_path / "script.py"
        script.write_text(text, encoding="utf-8")
        assert window.open(str(script))
        reach(qtbot, window)
        return window

    return opened
