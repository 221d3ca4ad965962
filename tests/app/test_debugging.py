"""The debugger in the window, by its keys and clicks, with a real worker: what no other test of the window does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.app.main_window import MainWindow
from stridescope.app.point_dialog import PointDialog
from stridescope.engine import events as ev
from stridescope.engine.worker.protocol import Breakpoint

Key, Modifier = Qt.Key, Qt.KeyboardModifier
NONE, SHIFT, CTRL, ALT = Modifier.NoModifier, Modifier.ShiftModifier, Modifier.ControlModifier, Modifier.AltModifier
PATIENCE = 30_000  # milliseconds

SCRIPT = """import torch


def twice(t):
    return t * 2


w = torch.arange(6.).reshape(2, 3).requires_grad_()
net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
many = [torch.zeros(2) for _ in range(300)]
table = {"one": 1, "tensor": w}
for step in range(4):
    y = twice(w).t().contiguous()
    y.sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
print("end")
"""


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[MainWindow]:
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


def reach(qtbot: QtBot, window: MainWindow, status: str = "waiting") -> None:
    qtbot.waitUntil(lambda: window.session.status == status and window.settled, timeout=PATIENCE)


def press(qtbot: QtBot, window: MainWindow, key: Qt.Key, modifier: Qt.KeyboardModifier = NONE) -> int:
    """Press a key, let the script come to its next stop, and return the step that we look at then."""
    qtbot.keyClick(window, key, modifier)
    qtbot.waitUntil(lambda: window.session.status in ("waiting", "ended"), timeout=PATIENCE)
    qtbot.waitUntil(lambda: window.settled, timeout=PATIENCE)
    window.refresh()
    return window.time.view


def kind_at(window: MainWindow, step: int) -> type[ev.Event]:
    assert window.session.recording is not None
    return type(window.session.recording.event(step))


def line_of(window: MainWindow) -> int:
    return int(window.workbench.panels["editor"].picture.line)


def caret(window: MainWindow, line: int) -> None:
    editor = window.workbench.panels["editor"]
    cursor = editor.textCursor()
    cursor.setPosition(editor.document().findBlockByNumber(line - 1).position())
    editor.setTextCursor(cursor)


def run_to(qtbot: QtBot, window: MainWindow, line: int) -> int:
    caret(window, line)
    return press(qtbot, window, Key.Key_F10, CTRL)


def panel(window: MainWindow, name: str) -> QWidget:
    window.workbench.show_panel(name)
    shown: QWidget = window.workbench.panels[name]
    return shown


LANDMARKS = {
    Key.Key_B: {ev.BackwardBegan},
    Key.Key_A: {ev.StorageMade, ev.BlockAllocated},
    Key.Key_C: {ev.CopyMade},
}


@pytest.mark.parametrize("key", LANDMARKS, ids=lambda key: key.name)
def test_run_to_the_next_landmark_and_back(qtbot: QtBot, run: Callable[..., MainWindow], key: Qt.Key) -> None:
    window = run()
    first = press(qtbot, window, key, ALT)
    second = press(qtbot, window, key, ALT)
    assert first < second == window.time.head
    assert {kind_at(window, first), kind_at(window, second)} <= LANDMARKS[key]
    assert press(qtbot, window, key, ALT | SHIFT) == first
    assert press(qtbot, window, key, ALT) == second
    press(qtbot, window, Key.Key_Home)
    assert press(qtbot, window, key, ALT) == first


def test_next_error_stands_on_the_failing_expression(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("import torch\na = torch.ones(2, 3)\nb = a.t()\nc = (a + 1) @ (a * 2)\n")
    press(qtbot, window, Key.Key_E, ALT)
    assert kind_at(window, window.time.view) is ev.OpFailed
    press(qtbot, window, Key.Key_F5)
    assert window.session.status == "waiting"  # post-mortem: one can look around
    picture = window.workbench.panels["editor"].picture
    assert picture.error is not None and "mat1 and mat2" in picture.error[0]
    assert (picture.error[1].line, picture.error[1].start, picture.error[1].end) == (4, 4, 21)
    console = panel(window, "console")
    console.line.setText("a.shape")  # type: ignore[attr-defined]
    qtbot.keyClick(console.line, Key.Key_Return)  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: "torch.Size([2, 3])" in console.view.toPlainText(), timeout=PATIENCE)  # type: ignore[attr-defined]
    assert press(qtbot, window, Key.Key_F10, SHIFT) < window.time.head


@pytest.mark.parametrize("grain", ["line", "op", "event"])
def test_every_step_goes_back_where_it_came_from(qtbot: QtBot, run: Callable[..., MainWindow], grain: str) -> None:
    window = run()
    run_to(qtbot, window, 13)
    window.actions_by_id[f"grain_{grain}"].trigger()
    start = window.time.view
    into = press(qtbot, window, Key.Key_F11)
    assert into > start and press(qtbot, window, Key.Key_F11, CTRL) < into
    window.time.look(start)
    over = press(qtbot, window, Key.Key_F10)
    assert over >= into and press(qtbot, window, Key.Key_F10, SHIFT) <= start
    window.time.look(into)
    out = press(qtbot, window, Key.Key_F11, SHIFT)
    assert out > into and press(qtbot, window, Key.Key_F11, CTRL | SHIFT) < out


def test_run_back_and_run_back_to_the_caret(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    caret(window, 14)
    qtbot.keyClick(window, Key.Key_F9)
    stops = [press(qtbot, window, Key.Key_F5) for _ in range(3)]
    assert [line_of(window), *[press(qtbot, window, Key.Key_F5, ALT) for _ in range(2)]] == [14, stops[1], stops[0]]
    assert press(qtbot, window, Key.Key_F5, ALT) == 0
    press(qtbot, window, Key.Key_End)
    caret(window, 9)
    press(qtbot, window, Key.Key_F10, CTRL | SHIFT)
    assert line_of(window) == 9
    press(qtbot, window, Key.Key_F10, CTRL | SHIFT)
    assert line_of(window) == 9 and "did not run before" in window.banner.words


def test_life_of_a_tensor(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    run_to(qtbot, window, 18)
    recording = window.session.recording
    assert recording is not None
    state = recording.state(window.time.view)
    w = state.tensors[state.frames[0].names["w"].tensor]
    table = panel(window, "tensors").table  # type: ignore[attr-defined]
    window.refresh()
    row = next(i for i, shown in enumerate(table.rows.rows) if shown.key == w.id)
    at = table.visualRect(table.rows.index(row, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    write = press(qtbot, window, Key.Key_W, ALT)
    assert kind_at(window, write) in (ev.StorageWritten, ev.VersionBumped)
    assert line_of(window) == 16
    earlier = [press(qtbot, window, Key.Key_W, ALT) for _ in range(3)]
    assert earlier == sorted(earlier, reverse=True) and earlier[0] < write
    read = press(qtbot, window, Key.Key_R, ALT)
    assert w.id in recording.event(read).inputs  # type: ignore[attr-defined]
    assert press(qtbot, window, Key.Key_O, ALT) == w.born


def point(window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """Make a breakpoint by its key and its dialog."""

    def fill(dialog: PointDialog) -> int:
        dialog.kind.setCurrentIndex(dialog.kind.findData(fields["kind"]))
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
    assert [row.cells[2] for row in shown.rows.rows][1] == "2 / 2"  # type: ignore[attr-defined]
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


def click_row(qtbot: QtBot, table: QWidget, name: str) -> None:
    """Click the row whose name ends so."""
    row = next(i for i, shown in enumerate(table.rows.rows) if shown.cells[0].endswith(name))  # type: ignore[attr-defined]
    table.scrollTo(table.rows.index(row, 0))  # type: ignore[attr-defined]
    at = table.visualRect(table.rows.index(row, 0)).center()  # type: ignore[attr-defined]
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)  # type: ignore[attr-defined]


def names_in(table: QWidget) -> list[str]:
    return [row.cells[0].lstrip("▸▾ ") for row in table.rows.rows]  # type: ignore[attr-defined]


def said_of(table: QWidget, name: str) -> str:
    return next(row.cells[2] for row in table.rows.rows if row.cells[0] == name)  # type: ignore[attr-defined]


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def test_containers_and_modules_open_part_by_part(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    run_to(qtbot, window, 12)
    table = panel(window, "variables")
    window.refresh()
    click_row(qtbot, table, "many")
    qtbot.waitUntil(lambda: "[99]" in names_in(table), timeout=PATIENCE)
    click_row(qtbot, table, "200 … 299")
    qtbot.waitUntil(lambda: "[299]" in names_in(table), timeout=PATIENCE)
    assert "[199]" not in names_in(table)
    click_row(qtbot, table, "many")
    click_row(qtbot, table, "net")
    qtbot.waitUntil(lambda: ".0" in names_in(table), timeout=PATIENCE)
    click_row(qtbot, table, ".0")
    qtbot.waitUntil(lambda: ".weight" in names_in(table), timeout=PATIENCE)
    weight = next(row for row in table.rows.rows if row.cells[0].endswith(".weight"))  # type: ignore[attr-defined]
    assert weight.storage and weight.picture and weight.cells[3:6] == ("3, 1", "cpu", "1")
    press(qtbot, window, Key.Key_F10, SHIFT)
    assert ".0.weight" in names_in(table)  # in the past, from the recording
    press(qtbot, window, Key.Key_End)
    press(qtbot, window, Key.Key_F10)
    press(qtbot, window, Key.Key_Left)
    click_row(qtbot, table, "many")
    assert "[31]" in names_in(table) and "only the first 32" in said_of(table, "…")


LARGE = """import torch
kept = list(torch.arange(100_000.).unbind())
table = {f"key {i}": kept[i] for i in range(100_000)}
net = torch.nn.ParameterList([torch.zeros(1) for _ in range(2000)])
numbers = list(range(1_000_000))
print("here")
print("there")
"""


def test_a_hundred_thousand_tensors_leave_the_window_at_hand(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(LARGE)
    window.stepping.set_grain("line")
    run_to(qtbot, window, 6)
    table = panel(window, "variables")
    window.refresh()
    for name, first, last in (
        ("numbers", "990000 … 999999", "999900 … 999999"), ("kept", "99000 … 99999", "99900 … 99999"),
        ("table", "99000 … 99999", "99900 … 99999"), ("net", "1900 … 1999", ""),
    ):  # fmt: skip
        click_row(qtbot, table, name)
        for stretch in filter(None, (first, last)):
            qtbot.waitUntil(lambda wanted=stretch: wanted in names_in(table), timeout=PATIENCE)
            click_row(qtbot, table, stretch)
        qtbot.waitUntil(lambda: "…" not in names_in(table), timeout=PATIENCE)
        click_row(qtbot, table, name)
    assert len(names_in(table)) < 12
    click_row(qtbot, table, "kept")
    press(qtbot, window, Key.Key_F10)
    steps = [window.time.head, *(press(qtbot, window, Key.Key_Left) for _ in range(2))]
    click_row(qtbot, table, "table")
    assert "only the first 32" in said_of(table, "…")
    for name in ("tensors", "storage", "watches"):
        panel(window, name)
        for step in steps:
            window.time.look(step)
            assert cpu(window.refresh) < 1.0  # ten times what an idle machine needs


def test_watches_at_the_head_and_in_the_past(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    watches = panel(window, "watches")
    watches.line.setText("step * 10")  # type: ignore[attr-defined]
    qtbot.keyClick(watches.line, Key.Key_Return)  # type: ignore[attr-defined]
    first, second = run_to(qtbot, window, 14), run_to(qtbot, window, 14)

    def value() -> str:
        return str(watches.rows.rows[0].cells[1])  # type: ignore[attr-defined]

    qtbot.waitUntil(lambda: value() == "10", timeout=PATIENCE)
    window.time.look(first)
    window.refresh()
    assert first < second and value() == "0"
    window.time.look(first + 1)  # a step at which nobody asked: worked out from the recording
    window.refresh()
    assert value() == "0"


def test_console_completes_marks_its_ops_and_reads_the_past(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    start = run_to(qtbot, window, 12)
    console = panel(window, "console")
    line, view = console.line, console.view  # type: ignore[attr-defined]
    line.setText("tab")
    qtbot.keyClick(line, Key.Key_Tab)
    qtbot.waitUntil(lambda: line.text() == "table", timeout=PATIENCE)
    line.setText("w.sum() + 7")
    qtbot.keyClick(line, Key.Key_Return)
    qtbot.waitUntil(lambda: "tensor(22." in view.toPlainText(), timeout=PATIENCE)
    recording = window.session.recording
    assert recording is not None
    recording.refresh()
    typed = [event for event in recording.events(start, recording.steps - 1) if isinstance(event, ev.OpBegan)]
    assert {recording.sources[event.source].path for event in typed} == {"<console>"}
    window.time.look(start - 2)
    window.refresh()
    for asked, answered in (("w[1, 2] * 2", "10"), ("w.shape", "(2, 3)"), ("print(w)", "would have to be run")):
        line.setText(asked)
        qtbot.keyClick(line, Key.Key_Return)
        assert answered in view.toPlainText().splitlines()[-1]


def test_the_editor_says_what_a_name_stands_for(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run()
    run_to(qtbot, window, 14)
    editor = window.workbench.panels["editor"]
    block = editor.document().findBlockByNumber(13 - 1)
    band = editor.block_rect(block)
    spot = QPoint(int(editor._x(block, block.text().index("w)"))) + 3, int(band.center().y()))
    assert editor.words_at(spot).startswith("w = tensor([[0.") and "stride 3, 1" in editor.words_at(spot)
    loop = editor.document().findBlockByNumber(12 - 1)
    at = QPoint(int(editor._x(loop, 5)), int(editor.block_rect(loop).center().y()))
    assert editor.words_at(at) == "step = 0"


def test_edit_and_go_on_from_an_earlier_step(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run("import torch\ntorch.manual_seed(0)\na = torch.randn(3)\nb = a * 2\nprint(b)\nc = b + 1\n")
    early = run_to(qtbot, window, 4)
    run_to(qtbot, window, 6)
    before = window.session.recording
    assert before is not None
    kept = before.path
    window.time.look(early)
    window.refresh()
    editor = window.workbench.panels["editor"]
    caret(window, 4)
    qtbot.keyClick(editor, Key.Key_End)
    qtbot.keyClick(editor, Key.Key_Backspace)
    qtbot.keyClicks(editor, "3")
    qtbot.keyClick(window, Key.Key_F5, CTRL)
    reach(qtbot, window)
    assert (window.time.view, line_of(window)) == (early, 4) and window.session.recording.path != kept  # type: ignore[union-attr]
    press(qtbot, window, Key.Key_F5)
    reach(qtbot, window, "ended")
    qtbot.waitUntil(lambda: not window.session.tidying, timeout=PATIENCE)
    assert "a * 3" in window.session.recording.sources[1].text  # type: ignore[union-attr]
    qtbot.keyClick(window, Key.Key_F5, CTRL | ALT)
    reach(qtbot, window, "replay")
    assert "a * 2" in window.session.recording.sources[1].text  # type: ignore[union-attr]
