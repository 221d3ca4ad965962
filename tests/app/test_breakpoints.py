"""Breakpoints in the window, by keys and dialog, with a real worker: live, in the past, and the next time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from debugger import ALT, CTRL, PATIENCE, Key, caret, kind_at, line_of, panel, press, reach, run_to
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.app.main_window import MainWindow
from stridescope.app.point_dialog import PointDialog
from stridescope.app.selection import Selection
from stridescope.engine import events as ev
from stridescope.engine.worker.protocol import Breakpoint


def point(window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """Make a breakpoint by its key and its dialog."""

    def fill(dialog: PointDialog) -> int:
        dialog.kind.setCurrentIndex(dialog.kind.findData(fields["kind"]))
        dialog.change.setCurrentIndex(dialog.change.findData(fields.get("change", "written")))
        dialog.op.setText(str(fields.get("op", "")))
        dialog.condition.setText(str(fields.get("condition", "")))
        dialog.skip.setValue(int(str(fields.get("skip", 0))))
        if "line" in fields:
            dialog.line.setValue(int(str(fields["line"])))
        return 1

    monkeypatch.setattr(PointDialog, "exec", fill)
    qtbot.keyClick(window, Key.Key_F9, CTRL)


def test_breakpoints_of_kinds_with_conditions_and_hits(
    qtbot: QtBot, run: Callable[..., MainWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = run()
    point(window, qtbot, monkeypatch, kind="line", line=13, condition="step >= 2")
    point(window, qtbot, monkeypatch, kind="op", op="mul", skip=1)
    shown = panel(window, "breakpoints")
    ops = press(qtbot, window, Key.Key_F5)
    assert window.session.recording is not None and "mul" in window.session.recording.event(ops).op  # type: ignore[attr-defined]
    assert [row.cells[1] for row in shown.rows.rows][1] == "2 / 2"  # type: ignore[attr-defined]
    shown.selectRow(1)  # type: ignore[attr-defined]
    qtbot.keyClick(shown, Key.Key_Space)
    assert [p.enabled for p in window.session.points.all] == [True, False]
    press(qtbot, window, Key.Key_F5)
    name = window.session.recording.state(window.time.view).frames[0].names["step"].text
    assert (line_of(window), name) == (13, "2")
    shown.selectRow(0)  # type: ignore[attr-defined]
    qtbot.keyClick(shown, Key.Key_Delete)
    assert [p.kind for p in window.session.points.all] == ["op"]


def test_breakpoints_are_kept_for_the_script(qtbot: QtBot, run: Callable[..., MainWindow], tmp_path: Path) -> None:
    window = run()
    window.session.points.add(Breakpoint(kind="copy"))
    caret(window, 14)
    qtbot.keyClick(window, Key.Key_F9)
    window.close()
    again = main.make_window(remember=True)
    qtbot.addWidget(again)
    assert again.open(str(tmp_path / "script.py"))
    reach(qtbot, again)
    assert [p.kind for p in again.session.points.all] == ["copy", "line"]
    assert again.workbench.panels["editor"].breakpoints == {str(tmp_path / "script.py"): {14}}
    again.close()


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("copy", ev.CopyMade), ("noncontiguous", ev.TensorMade), ("allocation", ev.StorageMade),
        ("free", ev.StorageFreed), ("backward", ev.BackwardBegan), ("node", ev.NodeBegan),
    ],
)  # fmt: skip
def test_a_breakpoint_stops_in_the_past_where_it_stopped_live(
    qtbot: QtBot, run: Callable[..., MainWindow], kind: str, wanted: type[ev.Event]
) -> None:
    window = run()
    window.session.points.add(Breakpoint(kind=kind))
    stops = [press(qtbot, window, Key.Key_F5) for _ in range(3)]
    assert {kind_at(window, step) for step in stops} == {wanted}
    press(qtbot, window, Key.Key_Home)
    assert [press(qtbot, window, Key.Key_F5) for _ in range(3)] == stops
    assert [press(qtbot, window, Key.Key_F5, ALT) for _ in range(2)] == [stops[1], stops[0]]


MACHINES = {
    "split": ("for n in range(3):\n    a = torch.ones(1 << (8 + n), device='cuda')\n    b = a + 1\n", ev.BlockSplit),
    "reserved": ("keep = [torch.ones(1 << 20, device='cuda') for _ in range(12)]\n", ev.SegmentAllocated),
    "notfinite": (
        "x = torch.ones(2, requires_grad=True)\nfor n in (1, 0, 2, 0):\n    x.grad = None\n"
        "    ((x * n) / n).sum().backward()\n",
        None,
    ),
    "mutated": (
        "w = torch.ones(2)\nfor n in range(3):\n    x = torch.ones(2, requires_grad=True)\n    y = x * w\n"
        "    w.add_(1)\n    z = x.exp()\n    v = z[:1]\n    del z\n    v.detach().zero_()\n    del y\n    w.add_(1)\n",
        ev.VersionBumped,
    ),
    "copy": (
        "a = torch.ones(3, 4).t()\nfor n in range(4):\n    b = a.reshape(-1)\n    c = a.contiguous()\n",
        ev.CopyMade,
    ),
    "noncontiguous": ("a = torch.ones(3, 4)\nfor n in range(4):\n    b = a.t()\n    c = b.t()\n", ev.TensorMade),
}


@pytest.mark.parametrize("kind", MACHINES)
def test_what_the_machine_does_stops_back_and_forth_where_it_stopped_live(
    qtbot: QtBot, run: Callable[..., MainWindow], kind: str
) -> None:
    text, wanted = MACHINES[kind]
    window = run("import torch\n" + text)
    window.session.points.add(Breakpoint(kind=kind, number=30 << 20 if kind == "reserved" else 0))
    live = []
    while press(qtbot, window, Key.Key_F5) and window.session.status == "waiting":
        live.append(window.time.view)
    qtbot.waitUntil(lambda: not window.session.tidying, timeout=PATIENCE)
    assert live and (wanted is None or {kind_at(window, step) for step in live} == {wanted})
    end = window.time.view
    assert [press(qtbot, window, Key.Key_F5, ALT) for _ in live] == live[::-1]
    press(qtbot, window, Key.Key_Home)
    assert [press(qtbot, window, Key.Key_F5) for _ in [*live, 0]] == [*live, end]


def test_a_breakpoint_on_a_tensor_outlives_the_session(
    qtbot: QtBot, run: Callable[..., MainWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = run()
    run_to(qtbot, window, 14)
    row = next(row for row in panel(window, "tensors").table.rows.rows if row.cells[0] == "y")  # type: ignore[attr-defined]
    window.time.select(Selection(tensor=row.key))
    point(window, qtbot, monkeypatch, kind="tensor", change="freed")
    stops = [press(qtbot, window, Key.Key_F5) for _ in range(2)]
    assert window.session.status == "ended" and kind_at(window, stops[0]) is ev.TensorFreed
    shown = panel(window, "breakpoints")
    assert "y (script.py:13) is freed" in shown.rows.rows[0].cells[0]  # type: ignore[attr-defined]
    window = run()
    qtbot.waitUntil(lambda: shown.rows.rows[0].cells[1] == "not made yet", timeout=PATIENCE)  # type: ignore[attr-defined]
    assert press(qtbot, window, Key.Key_F5) == stops[0]
    assert shown.rows.rows[0].cells[1] == "1"  # type: ignore[attr-defined]
    press(qtbot, window, Key.Key_Home)
    assert press(qtbot, window, Key.Key_F5) == stops[0]
    window = run("import torch\nprint(1)\n")
    press(qtbot, window, Key.Key_F5)
    qtbot.waitUntil(lambda: shown.rows.rows[0].cells[1] == "never made in this run", timeout=PATIENCE)  # type: ignore[attr-defined]


def test_a_line_without_code_holds_at_the_next_in_the_past_too(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("import torch\n\n# about to begin\na = 1\n\nb = 2\n")
    caret(window, 3)
    qtbot.keyClick(window, Key.Key_F9)
    live = press(qtbot, window, Key.Key_F5)
    assert line_of(window) == 4
    press(qtbot, window, Key.Key_F5)
    assert press(qtbot, window, Key.Key_F5, ALT) == live
    assert run_to(qtbot, window, 5) and line_of(window) == 6
