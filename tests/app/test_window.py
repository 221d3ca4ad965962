"""The window over a recording: keys, clicks, themes, and what it says when something is wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtGui import QKeySequence
from pytestqt.qtbot import QtBot

from stridescope.app import actions, main
from stridescope.app.main_window import MainWindow, device_words
from stridescope.app.selection import Selection
from stridescope.engine.recording.reader import Recording

Key, Modifier = Qt.Key, Qt.KeyboardModifier


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MainWindow]:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    main.make_application("dark", "en")
    made = main.make_window(remember=True)
    qtbot.addWidget(made)
    with qtbot.waitExposed(made):
        made.show()
    yield made
    made.close()


@pytest.fixture
def looking(qtbot: QtBot, window: MainWindow, strides: Recording) -> MainWindow:
    """The window with the mock-up's recording open."""
    assert window.open(strides.path)
    qtbot.waitUntil(lambda: window.workbench.panels["editor"].picture is not None)
    return window


def press(qtbot: QtBot, window: MainWindow, key: Qt.Key, modifier: Qt.KeyboardModifier = Modifier.NoModifier) -> int:
    """Press a key and return the step that we look at then."""
    qtbot.keyClick(window, key, modifier)
    return window.time.view


def test_it_opens_with_lessons(window: MainWindow) -> None:
    assert window.welcome.isVisible() and not window.workbench.isVisible()


def test_a_recording_begins_at_its_first_line(looking: MainWindow, strides: Recording) -> None:
    assert looking.workbench.isVisible()
    assert looking.time.view == strides.lines()[0]
    assert looking.time.head == strides.steps - 1


def test_stepping_keys(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    ops = strides.ops().tolist()
    assert [press(qtbot, looking, Key.Key_F10) for _ in range(3)] == ops[:3]
    assert press(qtbot, looking, Key.Key_F11) == ops[2] + 1
    assert press(qtbot, looking, Key.Key_F10, Modifier.ShiftModifier) == ops[2]
    assert press(qtbot, looking, Key.Key_F10, Modifier.ShiftModifier) == ops[1]
    assert press(qtbot, looking, Key.Key_F11, Modifier.ControlModifier) == ops[1] - 1
    assert press(qtbot, looking, Key.Key_End) == strides.steps - 1
    assert press(qtbot, looking, Key.Key_Home) == 0


def test_grains(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    press(qtbot, looking, Key.Key_1, Modifier.AltModifier)
    assert press(qtbot, looking, Key.Key_F10) == strides.lines()[1]
    press(qtbot, looking, Key.Key_3, Modifier.AltModifier)
    assert press(qtbot, looking, Key.Key_F10) == strides.lines()[1] + 1
    assert [looking.actions_by_id[f"grain_{g}"].isChecked() for g in ("line", "op", "event")] == [False, False, True]


def test_arrows_scrub(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    ops = strides.ops().tolist()
    assert press(qtbot, looking, Key.Key_Right) == ops[0]
    assert (
        press(qtbot, looking, Key.Key_Right, Modifier.ShiftModifier)
        == sorted([*ops, *strides.backwards().tolist()])[10]
    )
    assert press(qtbot, looking, Key.Key_Left, Modifier.ShiftModifier) == ops[0]


def test_every_panel_shows_the_step_we_look_at(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    looking.time.look(int(strides.lines()[-1]))
    looking.refresh()
    looking.time.look(int(strides.lines()[2]))
    looking.refresh()
    panels = looking.workbench.panels
    assert panels["editor"].picture.line == 3
    assert [row.cells[0] for row in panels["tensors"].table.rows.rows] == ["a"]
    assert panels["storage"].picture.strip.count == 12
    assert panels["graph"].picture.place.ids == ()
    assert panels["timeline"].picture.view == strides.lines()[2]
    assert panels["output"].view.toPlainText() == ""


def test_one_selection_for_all(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    looking.time.look(int(strides.lines()[-1]))
    looking.refresh()
    table, panels = looking.workbench.panels["tensors"].table, looking.workbench.panels
    row = next(i for i, shown in enumerate(table.rows.rows) if shown.cells[0] == "c")
    at = table.visualRect(table.rows.index(row, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    looking.refresh()
    assert panels["storage"].picture.grids[-1].title == "c = b[1:, ::2]"
    node = next(
        n for n in panels["graph"].picture.place.ids if panels["graph"].picture.face(n).title == "ReluBackward0"
    )
    spot = panels["graph"]._current_view().to_screen(*panels["graph"]._where(node)).toPoint()
    panels["graph"].grab()
    qtbot.mouseClick(panels["graph"], Qt.MouseButton.LeftButton, pos=spot)
    looking.refresh()
    assert panels["storage"].picture.grids[-1].title == "y"
    press(qtbot, looking, Key.Key_Escape)
    assert not looking.time.selection


def test_clicking_a_cell_explains_it(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    looking.time.look(int(strides.ops()[5]))
    tensor = next(t.id for t in strides.state(looking.time.view).tensors.values() if "c" in t.names)
    looking.workbench.select(Selection(tensor=tensor))
    looking.refresh()
    storage = looking.workbench.panels["storage"]
    storage.grab()
    last = [spot for spot in storage.spots if spot.tip.startswith("click a cell")][-1].rect
    qtbot.mouseClick(storage, Qt.MouseButton.LeftButton, pos=QPoint(int(last.left()) + 8, int(last.bottom()) - 8))
    looking.refresh()
    assert storage.picture.address.text == "c[2, 0]"


def test_alt_and_arrows_move_the_selection(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    looking.time.look(int(strides.ops()[5]))
    looking.refresh()
    storage, graph = looking.workbench.panels["storage"], looking.workbench.panels["graph"]
    assert storage.picture.address.text == "a[1, 1]"
    qtbot.keyClick(storage, Key.Key_Down, Modifier.AltModifier)
    looking.refresh()
    assert storage.picture.address.text == "a[2, 1]"
    looking.time.look(int(strides.lines()[-1]))
    looking.refresh()
    graph.grab()
    qtbot.keyClick(graph, Key.Key_Down, Modifier.AltModifier)
    looking.refresh()
    first = graph.picture.face(graph.picture.selected).title
    qtbot.keyClick(graph, Key.Key_Down, Modifier.AltModifier)
    looking.refresh()
    assert (first, graph.picture.face(graph.picture.selected).title) == ("MeanBackward0", "PowBackward0")


def test_dragging_the_timeline_scrubs(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    timeline = looking.workbench.panels["timeline"]
    target = int(strides.ops()[6])
    place = QPoint(int(timeline.axis().x(target)), 40)
    qtbot.mouseClick(timeline, Qt.MouseButton.LeftButton, pos=place)
    assert looking.time.view == target


def test_events_list_goes_there(qtbot: QtBot, looking: MainWindow) -> None:
    looking.workbench.show_panel("events")
    events = looking.workbench.panels["events"]
    events.clicked.emit(events.model().index(33, 0))
    assert looking.time.view == 33


def test_play_runs_to_the_end(qtbot: QtBot, looking: MainWindow, strides: Recording) -> None:
    looking.stepping.speed = 16.0
    looking.stepping.toggle_play()
    qtbot.waitUntil(lambda: looking.time.view == strides.steps - 1, timeout=10_000)
    qtbot.waitUntil(lambda: not looking.stepping.playing)


def test_a_flag_is_kept_in_the_recording(looking: MainWindow, qtbot: QtBot) -> None:
    looking.put_flag("here")
    looking.refresh()
    assert [flag.name for flag in looking.workbench.panels["timeline"].picture.flags] == ["here"]
    recording = looking.session.recording
    assert recording is not None
    recording.remove_mark(recording.marks()[0].id)


def test_breakpoint_in_the_gutter_stops_a_replay(qtbot: QtBot, looking: MainWindow) -> None:
    editor = looking.workbench.panels["editor"]
    band = editor.block_rect(editor.document().findBlockByNumber(5 - 1))
    qtbot.mouseClick(editor._gutter, Qt.MouseButton.LeftButton, pos=QPoint(10, int(band.center().y())))
    assert looking.session.breakpoints == {editor.picture.path: {5}}
    press(qtbot, looking, Key.Key_F5)
    looking.refresh()
    assert editor.picture.line == 5


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ("cuda: NVIDIA X (simulated), 8.00 GiB, because the device was chosen as 'auto'", "Simulated GPU · 8.00 GiB"),
        ("cuda: NVIDIA X, 8.00 GiB, because there is one", "NVIDIA X · 8.00 GiB"),
        ("cuda: none, because the device was chosen as 'cpu'", "none"),
        ("", "cpu"),
    ],
)
def test_a_simulated_gpu_says_so(described: str, words: str) -> None:
    assert device_words(described) == words


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_themes(looking: MainWindow, theme: str) -> None:
    looking.set_theme(theme)
    looking.refresh()
    corner = looking.grab().toImage().pixelColor(looking.width() - 4, looking.height() // 2)
    assert (corner.lightness() > 128) == (theme == "light")


def test_maximise_and_back(looking: MainWindow) -> None:
    graph = looking.workbench.panels["graph"]
    looking.workbench.toggle_maximised("right")
    assert graph.isVisible() and not looking.workbench.panels["storage"].isVisible()
    looking.workbench.toggle_maximised("right")
    assert looking.workbench.panels["storage"].isVisible()


# ---- what can go wrong -----------------------------------------------------------------------------------------


def test_a_missing_file_is_said_and_nothing_is_lost(looking: MainWindow, tmp_path: Path) -> None:
    before = looking.session.recording
    assert not looking.open(str(tmp_path / "nowhere.py"))
    assert "cannot be opened: No such file" in looking.banner.words
    assert looking.session.recording is before and looking.workbench.isVisible()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("picture.png", b"\x89PNG\0\0\0", "neither a Python script nor a recording"),
        ("note.stride", b"hello", "note.stride"),
        ("empty.stride", b"", "empty.stride"),
    ],
)
def test_a_foreign_file_is_said(window: MainWindow, tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert not window.open(str(tmp_path / name))
    assert words in window.banner.words and window.welcome.isVisible()


def test_a_newer_recording_is_refused_in_one_line(window: MainWindow, strides: Recording, tmp_path: Path) -> None:
    copy = tmp_path / "newer.stride"
    copy.write_bytes(Path(strides.path).read_bytes())
    with sqlite3.connect(copy) as database:
        database.execute("PRAGMA user_version = 999")
    assert not window.open(str(copy))
    assert "999" in window.banner.words and "\n" not in window.banner.words


# ---- actions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", actions.ACTIONS, ids=lambda row: row.id)
def test_action_rows(window: MainWindow, row: actions.Action) -> None:
    action = window.actions_by_id[row.id]
    assert action.text() == row.title and row.tip in action.toolTip()
    assert [k.toString(QKeySequence.SequenceFormat.PortableText) for k in action.shortcuts()] == list(row.keys)
    assert row.menu in actions.MENUS
    for status in ("empty", "starting", "waiting", "running", "ended", "replay"):
        assert row.enabled(actions.Facts(status, -1, -1)) in (True, False)


def test_no_key_has_two_actions() -> None:
    keys = [key for row in actions.ACTIONS for key in row.keys]
    assert len(keys) == len(set(keys))


def test_the_conventional_keys() -> None:
    wanted = {
        "step": "F10", "into": "F11", "out": "Shift+F11", "back": "Shift+F10", "back_into": "Ctrl+F11", "run": "F5",
        "stop": "Shift+F5", "breakpoint": "F9", "run_to": "Ctrl+F10", "pause": "F6", "restart": "Ctrl+Shift+F5",
        "play": "Space", "first": "Home", "last": "End", "open": "Ctrl+O", "keys": "?",
    }  # fmt: skip
    assert {name: actions.BY_ID[name].keys[0] for name in wanted} == wanted


def test_every_action_is_in_a_menu_and_the_palette(qtbot: QtBot, window: MainWindow) -> None:
    listed = {a.objectName() for part in window.menu.actions() for a in part.menu().actions()}  # type: ignore[union-attr]
    assert listed == set(actions.BY_ID)
    window.show_palette()
    palette = window.findChild(actions_palette())
    palette.needle.setText("breakpoint")
    assert [palette.found.item(i).data(Qt.ItemDataRole.UserRole) for i in range(palette.found.count())][
        0
    ] == "breakpoint"
    palette.close()


def actions_palette() -> type:
    from stridescope.app.dialogs import Palette

    return Palette


def test_keys_page_lists_all_keys() -> None:
    from stridescope.app.dialogs import keys_html

    page = keys_html()
    assert all(row.title.rstrip("…").replace("&", "&amp;") in page for row in actions.ACTIONS if row.keys)
