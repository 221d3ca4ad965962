"""The debugger in the window, by its keys and clicks, with a real worker: what no other test of the window does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from debugger import ALT, CTRL, PATIENCE, SHIFT, Key, caret, kind_at, line_of, panel, press, reach, run_to
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent, QTextDocument
from PySide6.QtWidgets import QApplication, QInputDialog, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from stridescope.app import main
from stridescope.app.main_window import MainWindow
from stridescope.engine import events as ev

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


ON_THE_DEVICE = """import torch
a = torch.ones(3, device="cuda")
b = torch.zeros(700, device="cuda")
a.mul_(2)
c = a + 1
b.sum()
print("end")
"""


def test_jumps_from_a_block_of_the_allocator(qtbot: QtBot, run: Callable[..., MainWindow]) -> None:
    window = run(ON_THE_DEVICE)
    window.stepping.set_grain("line")
    at = run_to(qtbot, window, 4)
    allocator = panel(window, "allocator")
    window.workbench.show_panel("allocator")
    window.refresh()
    qtbot.waitUntil(lambda: bool(allocator.spots), timeout=PATIENCE)  # type: ignore[attr-defined]
    a = window.session.recording.state(at).frames[0].names["a"].tensor  # type: ignore[union-attr]
    home = window.session.recording.state(at).tensors[a]  # type: ignore[union-attr]
    spot = next(s for s in allocator.spots if s.target(s.rect.center()).storage == home.storage)  # type: ignore[attr-defined]
    qtbot.mouseClick(allocator, Qt.MouseButton.LeftButton, pos=spot.rect.center().toPoint())
    assert window.time.selection.storage == home.storage
    run_to(qtbot, window, 7)
    window.time.look(at)
    read = press(qtbot, window, Key.Key_R, ALT)
    assert a in window.session.recording.event(read).inputs and line_of(window) == 4  # type: ignore[union-attr]
    assert press(qtbot, window, Key.Key_R, ALT) > read and line_of(window) == 5
    assert press(qtbot, window, Key.Key_W, ALT) < read + 40 and line_of(window) == 4
    assert press(qtbot, window, Key.Key_O, ALT) == home.born


def click_row(qtbot: QtBot, table: QWidget, name: str) -> None:
    """Click the row whose name ends so."""
    row = next(i for i, shown in enumerate(table.rows.rows) if shown.cells[0].endswith(name))  # type: ignore[attr-defined]
    table.scrollTo(table.rows.index(row, 0))  # type: ignore[attr-defined]
    at = table.visualRect(table.rows.index(row, 0)).center()  # type: ignore[attr-defined]
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)  # type: ignore[attr-defined]


def names_in(table: QWidget) -> list[str]:
    return [row.cells[0] for row in table.rows.rows]  # type: ignore[attr-defined]


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
    window.actions_by_id["grain_line"].trigger()  # an op back is a comprehension's, a call of its own before 3.12
    press(qtbot, window, Key.Key_F10, SHIFT)
    assert {".0", ".weight"} <= set(names_in(table))  # in the past, from the recording
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


def test_watches_are_kept_for_the_script(qtbot: QtBot, run: Callable[..., MainWindow], tmp_path: Path) -> None:
    window = run()
    watches = panel(window, "watches")
    for text in ("step", "w.sum()"):
        watches.line.setText(text)  # type: ignore[attr-defined]
        qtbot.keyClick(watches.line, Key.Key_Return)  # type: ignore[attr-defined]
    (tmp_path / "other.py").write_text("x = 1\n", encoding="utf-8")
    script = window.session.script
    assert window.open(str(tmp_path / "other.py"))
    reach(qtbot, window)
    assert watches.expressions == []  # type: ignore[attr-defined]
    window.close()
    again = main.make_window(remember=True)
    qtbot.addWidget(again)
    assert again.open(script)
    reach(qtbot, again)
    assert again.workbench.panels["watches"].expressions == ["step", "w.sum()"]
    again.close()


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
    for asked, answered in (
        ("w[1, 2] * 2", "tensor(10.)"),
        ("w.shape", "torch.Size([2, 3])"),
        ("print(w)", "would have to be run"),
    ):
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
    first, second, _ = editor.words_at(spot).splitlines()
    assert second.index("[") == first.index("[") + 1  # the rows of a matrix stand one under the other
    resting = QHelpEvent(QEvent.Type.ToolTip, spot, editor.viewport().mapToGlobal(spot))
    QApplication.sendEvent(editor.viewport(), resting)
    shown = QTextDocument()
    shown.setHtml(QToolTip.text())
    assert shown.toPlainText() == editor.words_at(spot)
    QToolTip.hideText()
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


@pytest.mark.skipif(sys.platform == "win32", reason="there the memory of a process is not looked at")
def test_a_memory_limit_ends_the_script_and_its_recording_stays(
    qtbot: QtBot, run: Callable[..., MainWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = run("hoard = []\nwhile True:\n    hoard.append(bytearray(b'x' * (1 << 20)))\n")
    monkeypatch.setattr(QInputDialog, "getInt", lambda *_: (300, True))
    window.actions_by_id["memory"].trigger()
    qtbot.keyClick(window, Key.Key_F5, CTRL | SHIFT)
    reach(qtbot, window)
    press(qtbot, window, Key.Key_F5)
    reach(qtbot, window, "ended")
    assert "passed its memory limit" in window.banner.words and window.time.head > 20
    assert press(qtbot, window, Key.Key_F10, SHIFT) < window.time.head
    again = main.make_window(remember=True)
    qtbot.addWidget(again)
    assert again.session.memory_limit == 300 << 20


def test_libraries_that_were_chosen_are_stepped_into(
    qtbot: QtBot, run: Callable[..., MainWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = run("import torch\nlayer = torch.nn.Linear(2, 1)\ny = layer(torch.ones(1, 2))\n")
    for answer, said in (("torch nothing_of_this_name", "nothing_of_this_name"), ("torch", "next start")):
        monkeypatch.setattr(QInputDialog, "getText", lambda *_, answer=answer, **__: (answer, True))
        window.actions_by_id["libraries"].trigger()
        assert said in window.banner.words
    qtbot.keyClick(window, Key.Key_F5, CTRL | SHIFT)
    reach(qtbot, window)
    window.stepping.set_grain("line")
    while line_of(window) != 3:
        press(qtbot, window, Key.Key_F10)
    functions = set()
    for _ in range(40):
        press(qtbot, window, Key.Key_F11)
        functions |= {frame.function for frame in window.session.recording.state(window.time.view).frames}  # type: ignore[union-attr]
        if "Linear.forward" in functions:
            break
    assert "Linear.forward" in functions and window.workbench.panels["editor"].heading()[0] == "linear.py"
    press(qtbot, window, Key.Key_F11, SHIFT)
    assert window.workbench.panels["editor"].heading()[0] != "linear.py"
    again = main.make_window(remember=True)
    qtbot.addWidget(again)
    assert again.session.step_into == ("torch",)
