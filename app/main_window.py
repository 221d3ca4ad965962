"""The window: session, cursor and panels brought together; every action ends here."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from PySide6.QtCore import QEvent, QPoint, QSettings, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QFileDialog,
    QInputDialog,
    QMainWindow,
    QMenu,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from stridescope.app import actions as rows
from stridescope.app import motion, replay
from stridescope.app import theme as themes
from stridescope.app.catching_up import CatchingUp
from stridescope.app.cursor import Cursor
from stridescope.app.debugging import Debugging
from stridescope.app.dialogs import Keys, Palette
from stridescope.app.editing import Editing
from stridescope.app.items.banner import Banner
from stridescope.app.items.icons import icon
from stridescope.app.items.magnifier import Magnifier
from stridescope.app.moment import moment_at
from stridescope.app.panels import BY_ID as PANELS_BY_ID
from stridescope.app.panels.editor_model import EditorPicture, file_name
from stridescope.app.program import Program
from stridescope.app.script_file import is_notebook, read_script
from stridescope.app.selection import NOTHING, Selection
from stridescope.app.session import EMPTY, IMPORTING, REPLAY, RUNNING, STARTING, WAITING, Session
from stridescope.app.stepping import Stepping
from stridescope.app.text import LANGUAGES, tr
from stridescope.app.toolbar import Toolbar
from stridescope.app.welcome import Welcome, remember_file
from stridescope.app.workbench import AT_ONCE, Workbench
from stridescope.engine.events.grains import GRAINS
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.store import RecordingError

LONGEST_PAUSE = 1000  # milliseconds
PRESENTED = 1.25  # how large the panels are on a projector, to begin with


class MainWindow(QMainWindow):
    """Shows one session; the welcome page while there is none.

    A window that does not ``remember`` leaves no trace: it is there for one picture.
    """

    session: Session
    time: Cursor
    stepping: Stepping
    debugging: Debugging
    editing: Editing

    def __init__(self, *, remember: bool = True) -> None:
        super().__init__()
        self._remember = remember
        self.session, self.time = Session(self), Cursor()
        self.stepping = Stepping(self.session, self.time, self)
        self.actions_by_id = {row.id: self._action(row) for row in rows.ACTIONS}
        self.actions_by_id["menu"] = QAction(tr("Menu"), self, toolTip=tr("All menus"))
        self.actions_by_id["menu"].triggered.connect(self._pop_menu)
        self.toolbar, self.banner = Toolbar(self.actions_by_id), Banner()
        self.welcome, self.workbench = Welcome(), Workbench()
        self.menu = self._menu()
        self._due = QTimer(self, singleShot=True, interval=0)
        self._due.timeout.connect(self._catch_up)
        self._pause = 0  # milliseconds between two looks at a script that runs
        self._own_size = 1.0  # how large the panels are while they are not presented
        self._looked_at, self._pace = -1, CatchingUp()
        self._arrange()
        self._connect()
        self.debugging, self.editing = Debugging(self), Editing(self)
        self.session.points.remember = remember
        if remember:
            self.debugging.recall_choices()
        self._show_pace()
        self.set_theme(themes.active().name)
        self._follow_status()

    # ---- building ----------------------------------------------------------------------------------------------

    def _action(self, row: rows.Action) -> QAction:
        action = QAction(rows.title(row), self)
        action.setObjectName(row.id)
        action.setShortcuts([QKeySequence(key) for key in row.keys])
        keys = QKeySequence(row.keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if row.keys else ""
        action.setToolTip(tr(row.tip) + (f"  ({keys})" if keys else ""))
        action.setCheckable(row.checkable)
        action.triggered.connect(lambda _checked=False: row.run(self))
        self.addAction(action)
        return action

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        for title in rows.MENUS:
            part = menu.addMenu(tr(title))
            for row in rows.ACTIONS:
                if row.menu == title:
                    if row.icon:
                        self.actions_by_id[row.id].setIcon(icon(row.icon, themes.active().color("text")))
                    part.addAction(self.actions_by_id[row.id])
        return menu

    def _arrange(self) -> None:
        self.setWindowTitle("Stridescope")
        self.setAcceptDrops(True)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.welcome)
        self.magnifier = Magnifier(self.workbench)
        self._pages.addWidget(self.magnifier)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self.toolbar, self.banner, self._pages):
            column.addWidget(widget)
        self.setCentralWidget(centre)
        self.resize(QSize(1600, 1000).boundedTo(self.screen().availableSize()))
        layout = QSettings().value("layout/1") if self._remember else None
        if isinstance(layout, list):
            self.workbench.restore_layout([str(state) for state in layout])

    def _connect(self) -> None:
        session, cursor, bench = self.session, self.time, self.workbench
        session.changed.connect(self._follow_status)
        session.grown.connect(self._grow)
        session.failed.connect(lambda text: self.banner.say(text, failure=True))
        session.told.connect(lambda text: self.banner.say(text, failure=False))
        session.input_wanted.connect(self._ask_input)
        bench.panels["output"].sent.connect(session.send_input)
        bench.panels["editor"].document().modificationChanged.connect(lambda _changed: self._due.start())
        bench.pointed.connect(cursor.hover)
        bench.picked.connect(self._pick)
        bench.scrubbed.connect(self.stepping.near)
        bench.visited.connect(self.stepping.look)
        cursor.moved.connect(self._schedule)
        cursor.selected.connect(self._due.start)
        self.welcome.chosen.connect(self.open)
        self.welcome.asked.connect(self.ask_open)
        self.toolbar.speed.clicked.connect(lambda: self.stepping.change_speed(1))
        self.stepping.changed.connect(self._show_pace)
        self.stepping.owing.connect(self._show_chips)
        self.stepping.ran_out.connect(lambda: self.debugging.say_where_it_waits())
        self.stepping.settled = lambda: self.settled

    # ---- opening and saving ------------------------------------------------------------------------------------

    def open(self, path: str, argv: tuple[str, ...] = (), device: str = "auto") -> bool:
        """Open a script or a recording."""
        return self._opened(path, lambda: self.session.open(path, argv, device))

    def start(self, program: Program) -> bool:
        """Open a program as it is to be run."""
        return self._opened(program.path, lambda: self.session.start(program))

    def _opened(self, path: str, begin: Callable[[], bool]) -> bool:
        self.banner.hide()
        before = self.session.recording
        if not begin():
            return False
        if self._remember:
            remember_file(os.path.abspath(path))
        if self.session.recording is not before or before is None:
            self._start_over()
        return True

    def look_into(self, recording: str, step: int, panel: str = "") -> None:
        """Show one step (negative: from the end) of a recording, with ``panel`` in front; raises where it cannot be."""
        if panel and panel not in PANELS_BY_ID:
            raise ValueError(f"no panel {panel!r}; there are {', '.join(PANELS_BY_ID)}")
        with Recording.open(recording) as opened:
            steps = opened.steps
        at = step + steps if step < 0 else step
        if steps and not 0 <= at < steps:
            raise ValueError(f"step {step} is not in the recording, which has steps 0 to {steps - 1}")
        self.open(recording)
        self.time.look(at)
        if panel:
            self.workbench.show_panel(panel)
        self.refresh()

    def _start_over(self) -> None:
        """Look at a new session from its beginning; a recording is shown at its first stop."""
        self.time.reset()
        self.debugging.start_over()
        self._looked_at = -1
        self.workbench.panels["timeline"].setFocus()
        if self.session.program is not None:
            self._preview(self.session.program.path)
        recording = self.session.recording
        if recording is not None and self.session.status == REPLAY:
            self.time.advance(recording.steps - 1)
            self.time.look(replay.next_stop(recording, -1, "line", "any") or 0)
        if self.session.of_memory:  # there are no tensors to be seen, and each entry is a line
            self.workbench.show_panel("allocator")
            self.stepping.set_grain("line")
        self._follow_status()

    def _preview(self, path: str) -> None:
        """Show the script's text before the worker has begun with it."""
        try:
            text = "" if is_notebook(path) else read_script(path)
        except OSError:
            return
        self.workbench.panels["editor"].show_picture(EditorPicture(0, path, text, 0, (), {}, "", None))

    def ask_open(self) -> None:
        """Let the user choose what to open."""
        kinds = tr("Scripts and recordings") + " (*.py *.ipynb *.stride *.pickle);;" + tr("All files") + " (*)"
        path, _ = QFileDialog.getOpenFileName(self, tr("Open"), os.path.dirname(self.session.script), kinds)
        if path:
            self.open(path)

    def ask_export(self) -> None:
        """Let the user choose where the recording or a picture goes."""
        kinds = tr("Recording") + " (*.stride);;" + tr("Picture of the window") + " (*.png)"
        name = Path(self.session.script).with_suffix(".stride").name
        path, kind = QFileDialog.getSaveFileName(self, tr("Export"), name, kinds)
        if path.endswith(".png") or (path and "png" in kind and not path.endswith(".stride")):
            self.grab().save(path if path.endswith(".png") else path + ".png")
        elif path:
            self.session.save_as(path)

    def begin_again(self) -> None:
        """Look at a run that has just been started, or opened, in the place of the last."""
        self.banner.hide()
        self._start_over()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.open(event.mimeData().urls()[0].toLocalFile())

    def event(self, event: QEvent) -> bool:
        """Note, before a key becomes an action, whether it is held down."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride:
            self.stepping.held = event.isAutoRepeat()
        return super().event(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._remember:
            QSettings().setValue("layout/1", self.workbench.save_layout())
        self.session.close()
        super().closeEvent(event)

    # ---- showing -----------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        recording = self.session.recording
        if recording is not None:
            self.time.advance(recording.steps - 1)
            self._schedule()

    def _schedule(self) -> None:
        """Show the new moment soon; while a script runs ahead, with pauses, so that the window stays at hand."""
        if self.session.status not in (RUNNING, IMPORTING) or not self.time.live:
            self._due.start(0)
        elif not self._due.isActive():
            self._due.start(self._pause)

    def refresh(self) -> None:
        """Show the moment that the cursor looks at."""
        self._refresh(math.inf)

    def _catch_up(self) -> None:
        """Show it, or how far we are, and note how long that takes."""
        begun = perf_counter()
        self._refresh(AT_ONCE)
        self._pause = min(LONGEST_PAUSE, round(2000 * (perf_counter() - begun)))

    def _refresh(self, seconds: float) -> None:
        recording = self.session.recording
        self._follow_status()
        if recording is None or self.time.view < 0:
            return
        try:
            there = recording.approach(self.time.view, seconds)
            self._looked_at = self.time.view if there else recording.reached
            self._show_chips(there)
            if not there:
                self._due.start(0)
                if not (self.time.live and self._pace.wants_picture(perf_counter())):
                    return
            begun = perf_counter()
            moment = moment_at(recording, self.time, self._looked_at)
        except RecordingError as error:
            self.banner.say(str(error), failure=True)
            return
        editor = self.workbench.panels["editor"]
        editor.setReadOnly(not self._is_editable(editor.picture))
        self.workbench.present(moment, seconds)
        self._pace.shown(begun, perf_counter())

    def _is_editable(self, picture: EditorPicture | None) -> bool:
        """Whether the editor shows the program's own text; that of a notebook is made from its cells."""
        program = self.session.program
        return (
            program is not None
            and picture is not None
            and picture.path == program.path
            and not is_notebook(program.path)
        )

    @property
    def settled(self) -> bool:
        """Whether the panels show the step that the cursor looks at."""
        return not (self._due.isActive() or self.workbench.behind) and self._looked_at == self.time.view

    def _follow_status(self) -> None:
        session = self.session
        self._show_page(self.welcome if session.status == EMPTY else self.magnifier)
        facts = rows.Facts(session.status, self.time.view, self.time.head, self.stepping.runs)
        for row in rows.ACTIONS:
            self.actions_by_id[row.id].setEnabled(row.enabled(facts))
        name = file_name(session.script)
        self.setWindowTitle(f"{name} — Stridescope" if name else "Stridescope")
        self._show_chips()
        bench = self.workbench
        if session.status != RUNNING:
            bench.panels["output"].ask(False)

    def _show_page(self, page: QWidget) -> None:
        if self._pages.currentWidget() is not page:
            self.welcome.refresh()
            self._pages.setCurrentWidget(page)

    def _show_chips(self, there: bool = True) -> None:
        """Show the device, and how far we are; ``there`` is whether the panels can show the step at once."""
        bar, recording = self.toolbar, self.session.recording
        device = str(recording.meta.get("device", "")) if recording else ""
        bar.device.show_words(tr("device"), device_words(device))
        bar.device.setToolTip(device)
        shown = self.time.view if there else min(self._looked_at, self.time.view)
        words = tr("step {step} / {steps}", step=shown + 1, steps=self.time.head + 1)
        words += f" +{self.stepping.owed}" if self.stepping.owed else ""
        quiet = {STARTING: tr("starting"), WAITING: tr("recording"), RUNNING: tr("running"), REPLAY: tr("replay")}
        quiet[IMPORTING] = tr("reading")
        dot = "err" if self.session.live else ""
        status = quiet.get(self.session.status, tr("ended"))
        bar.step.show_words(status if there or self.session.status == RUNNING else tr("catching up"), words, dot)
        bar.step.setVisible(self.session.status != EMPTY)
        bar.fit()

    def _show_pace(self) -> None:
        """Show what a step is and how fast the recording plays."""
        self.toolbar.speed.show_words(tr("speed"), f"{self.stepping.speed:g}×")
        for grain in GRAINS:
            self.actions_by_id[f"grain_{grain}"].setChecked(grain == self.stepping.grain)

    def _ask_input(self) -> None:
        self.workbench.show_panel("output")
        self.workbench.panels["output"].ask(True)

    # ---- marks and selection ----------------------------------------------------------------------------------

    def run_to_caret(self) -> None:
        """Run until the line of the text cursor is reached."""
        editor = self.workbench.panels["editor"]
        if editor.picture is not None:
            self.stepping.run_to(editor.picture.source, editor.picture.path, editor.caret_run_line())

    def toggle_breakpoint(self) -> None:
        """Set or remove a breakpoint on the line of the text cursor."""
        editor = self.workbench.panels["editor"]
        editor.toggle_breakpoint(editor.caret_line())

    def bookmark(self) -> None:
        """Put a named flag at this step."""
        recording = self.session.recording
        if recording is None:
            return
        name, ok = QInputDialog.getText(self, tr("Bookmark"), tr("Name of this moment"))
        if ok and name.strip():
            self.put_flag(name.strip())

    def put_flag(self, name: str) -> None:
        """Put a flag at the step we look at."""
        recording = self.session.recording
        try:
            if recording is not None:
                recording.add_mark(self.time.view, "chapter", {"name": name})
        except RecordingError as error:
            self.banner.say(str(error), failure=True)
        self._due.start()

    def selection(self) -> Selection:
        """Return what is selected at the step we look at: what is pinned, else what the step is about."""
        recording = self.session.recording
        return moment_at(recording, self.time).selection if recording is not None else NOTHING

    def _pick(self, selection: Selection) -> None:
        self.time.hovered = NOTHING
        self.time.select(selection)

    def let_go(self) -> None:
        """Leave the full screen, else let go of what is pinned."""
        if self.isFullScreen():
            self.toggle_present()
        else:
            self._pick(NOTHING)

    # ---- looks -------------------------------------------------------------------------------------------------

    def set_theme(self, name: str) -> None:
        """Paint everything dark or light."""
        themes.activate(themes.THEMES[name])
        self.setStyleSheet(themes.stylesheet())
        self.workbench.restyle()
        self.welcome.restyle()
        self.update()
        self._due.start()

    def toggle_theme(self) -> None:
        """Take the next theme, and remember it."""
        names = list(themes.THEMES)
        name = names[(names.index(themes.active().name) + 1) % len(names)]
        QSettings().setValue("theme", name)
        self.set_theme(name)

    def toggle_motion(self) -> None:
        """Skip all animations, or play them again."""
        motion.allow(not motion.wanted())
        self.actions_by_id["motion"].setChecked(not motion.wanted())
        QSettings().setValue("motion", motion.wanted())

    def toggle_language(self) -> None:
        """Speak the next language from the next start on."""
        names = list(LANGUAGES)
        chosen = names[(names.index(str(QSettings().value("language", "en"))) + 1) % len(names)]
        QSettings().setValue("language", chosen)
        self.banner.say(tr("{language} from the next start on", language=LANGUAGES[chosen]), failure=False)

    def toggle_maximised(self) -> None:
        """Let the panel with the focus fill the window, or give it back."""
        self.workbench.toggle_maximised(self.workbench.area_with_focus())

    def zoom(self, steps: int) -> None:
        """Show the panels larger (or smaller) by a step; 0 goes back to their own size."""
        self.magnifier.magnify(self.magnifier.next_factor(steps) if steps else 1.0)

    def toggle_present(self) -> None:
        """Full screen without the toolbar, the panels larger, and back."""
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)
        self.toolbar.setVisible(not self.isFullScreen())
        if self.isFullScreen():
            self._own_size = self.magnifier.factor
        self.magnifier.magnify(max(PRESENTED, self._own_size) if self.isFullScreen() else self._own_size)

    def show_palette(self) -> None:
        """Find an action by its name."""
        palette = Palette(self, self.actions_by_id)
        palette.move(self.mapToGlobal(QPoint((self.width() - palette.width()) // 2, 60)))
        palette.show()
        palette.needle.setFocus()

    def show_keys(self) -> None:
        """Show all keys."""
        Keys(self).show()

    def _pop_menu(self) -> None:
        button = self.toolbar.buttons["menu"]
        self.menu.popup(button.mapToGlobal(QPoint(button.width() - self.menu.sizeHint().width(), button.height())))


def device_words(described: str) -> str:
    """Return what ``cuda`` is in few words: a simulated GPU says so before all else."""
    name, _, size = described.removeprefix("cuda: ").partition(", because")[0].rpartition(", ")
    if "(simulated)" in name:
        return tr("Simulated GPU") + f" · {size}"
    return f"{name} · {size}" if name else size or "cpu"
