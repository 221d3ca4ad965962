"""The debugger's wires: breakpoints, watches, variables and console with the session, and jumps with the cursor."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings
from PySide6.QtWidgets import QDialog, QInputDialog

from stridescope.app import jumps
from stridescope.app.by_script import ByScript
from stridescope.app.panels.watches import FIRST_NUMBER
from stridescope.app.point_dialog import MEBIBYTE, PointDialog
from stridescope.app.selection import Selection
from stridescope.app.session import IMPORTING, RUNNING, WAITING
from stridescope.app.tensor_points import point_at, tensor_of
from stridescope.app.text import tr
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording
from stridescope.engine.worker.protocol import Breakpoint

Find = Callable[[Recording, State, Selection], int | None]

if TYPE_CHECKING:
    from stridescope.app.main_window import MainWindow

WATCHES = ByScript("watches/1")
MEMORY_KEY, LIBRARIES_KEY = "memory limit", "step into"
GIVEN = "stridescope.engine."  # where the packages stand that the engine gives: torch, torchvision
MOST_MEBIBYTES = 1 << 24

NONE_BACK = {
    "backward": "No backward pass began before this step",
    "allocation": "Nothing was allocated before this step",
    "copy": "No copy was made before this step",
    "error": "Nothing failed before this step",
}


class Debugging(QObject):
    """What the debugger's actions do."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._session, self._time = window, window.session, window.time
        panels = window.workbench.panels
        self._editor, self._console = panels["editor"], panels["console"]
        self._points, self._watches, self._variables = panels["breakpoints"], panels["watches"], panels["variables"]
        self._said = self._watched = ""  # what was last said; the script whose watches are shown
        self._time.moved.connect(self._fall_silent)
        self._session.points.changed.connect(self._show_points)
        self._session.points.counted.connect(self._show_points)
        self._session.changed.connect(self._follow_status)
        self._session.told.connect(self._note_told)
        self._session.answered.connect(self._answer)
        self._session.completed.connect(self._console.complete)
        self._session.inspected.connect(self._variables.answer)
        self._console.asked.connect(self._session.evaluate)
        self._console.completing.connect(self._session.complete)
        self._watches.asked.connect(self._session.watch)
        self._watches.changed.connect(self._keep_watches)
        self._variables.inspect.connect(self._session.inspect)
        self._session.points.lines_of, self._session.points.run_line = self._editor.lines_of, self._editor.run_line
        self._editor.lines_moved.connect(self._session.points.shift)
        self._editor.breakpoint_toggled.connect(self._session.points.toggle_line)
        self._points.toggled.connect(self._session.points.toggle)
        self._points.removed.connect(self._session.points.remove)
        self._points.changed.connect(self.change_point)
        self._points.asked.connect(self.ask_point)

    # ---- breakpoints -------------------------------------------------------------------------------------------

    def ask_point(self) -> None:
        """Let the user make a breakpoint, at first one on the caret's line, or on the tensor that is selected."""
        picture = self._editor.picture
        path = picture.path if picture else self._session.script
        line, tensor = Breakpoint(path=path, line=self._editor.caret_line()), self._tensor_point()
        dialog = PointDialog(self._window, tensor if tensor and self._time.selection.tensor else line, tensor)
        if dialog.exec() == QDialog.DialogCode.Accepted:
            self._session.points.add(dialog.point())
            self._window.workbench.show_panel("breakpoints")

    def _tensor_point(self) -> Breakpoint | None:
        """Return the breakpoint on the tensor that is selected, or that the step is about."""
        recording, step = self._session.recording, self._time.view
        if recording is None or step < 0 or not (tensor := self._selection().tensor):
            return None
        return point_at(recording, recording.state(step), tensor, "written")

    def change_point(self, place: int) -> None:
        """Let the user change a breakpoint."""
        point = self._session.points.all[place]
        dialog = PointDialog(self._window, point, point if point.kind == "tensor" else self._tensor_point())
        if dialog.exec() == QDialog.DialogCode.Accepted:
            self._session.points.replace(place, dialog.point())

    def _remark_points(self) -> None:
        """Say of each breakpoint on a tensor when this run has not made that tensor, or not yet."""
        recording, session = self._session.recording, self._session
        if recording is None or session.status == RUNNING:
            return
        words = tr("not made yet") if session.live else tr("never made in this run")
        tensors = [(of_run, point) for of_run, point in session.points.of_run().items() if point.kind == "tensor"]
        session.points.remark({point: words for of_run, point in tensors if not tensor_of(recording, of_run)})

    def _show_points(self) -> None:
        self._remark_points()
        self._points.show_points(self._session.points)
        self._editor.breakpoints = self._session.breakpoints
        self._editor.redraw_gutter()

    # ---- what the panels ask -----------------------------------------------------------------------------------

    def start_over(self) -> None:
        """Another run begins; another script has its own watches."""
        self._watches.forget()
        if (script := self._session.points.script) != self._watched:
            self._watched = script
            kept = WATCHES.of(script) if self._session.points.remember else []
            self._watches.expressions = [text for text in kept if isinstance(text, str)]

    def _keep_watches(self) -> None:
        if self._session.points.remember:
            WATCHES.keep(self._watched, self._watches.expressions)

    def _follow_status(self) -> None:
        waiting = self._session.status == WAITING
        self._remark_points()
        for panel in (self._console, self._watches, self._variables):
            panel.allow(waiting)

    def _answer(self, number: int, text: str, ok: bool) -> None:
        (self._watches if number >= FIRST_NUMBER else self._console).answer(number, text, ok)

    # ---- jumps -------------------------------------------------------------------------------------------------

    def back_until(self, kind: str) -> None:
        """Go back to the last landmark of a kind."""
        if not self._window.stepping.back_until(kind):
            self._say(tr(NONE_BACK[kind]))

    def run_back_to_caret(self) -> None:
        """Go back to where the caret's line was about to run the last time."""
        picture = self._editor.picture
        if picture is not None and not self._window.stepping.run_back_to(picture.source, self._editor.caret_run_line()):
            self._say(tr("This line did not run before this step"))

    def to_birth(self) -> None:
        """Go to where what is selected was made."""
        self._jump(lambda recording, state, chosen: jumps.birth(state, chosen), tr("Nothing that was made is selected"))

    def to_last_write(self) -> None:
        """Go back to the last write into what is selected."""
        self._jump(jumps.last_write, tr("Nothing wrote into this before this step"))

    def to_next_read(self) -> None:
        """Go on to the next read of what is selected."""
        self._jump(jumps.next_read, tr("No recorded step after this one reads this"))

    def _jump(self, find: Find, otherwise: str) -> None:
        recording = self._session.recording
        if recording is None or self._time.view < 0:
            return
        found = find(recording, recording.state(self._time.view), self._selection())
        if found is None:
            self._say(otherwise)
        else:
            self._pin()
            self._time.look(found)

    def _selection(self) -> Selection:
        return self._window.selection()

    def _pin(self) -> None:
        """Keep what the jump is about selected, so that the next jump is about it too."""
        if not self._time.selection:
            self._time.select(self._selection())

    def say_where_it_waits(self) -> None:
        """Say that a run through the recording ended where the script waits, until it goes on."""
        self._say(tr("This is where the script waits: run again to go on"))

    def _say(self, words: str) -> None:
        self._said = words
        self._window.banner.say(words, failure=False)

    def _note_told(self, words: str) -> None:
        """Take back later what the session said of a stop; how far an import is, it takes back itself."""
        self._said = words if self._session.status != IMPORTING else ""

    def _fall_silent(self) -> None:
        """Take back what was said of a step that one looks at no more."""
        if self._said and self._window.banner.words == self._said:
            self._window.banner.hide()
        self._said = ""

    # ---- limits ------------------------------------------------------------------------------------------------

    def ask_memory_limit(self) -> None:
        """Let the user choose how much memory a script may hold, from its next start on."""
        words = tr("MiB that a script may hold, 0 for no limit")
        now = self._session.memory_limit // MEBIBYTE
        chosen, ok = QInputDialog.getInt(self._window, tr("Memory limit"), words, now, 0, MOST_MEBIBYTES, 256)
        if ok:
            self._session.memory_limit = chosen * MEBIBYTE
            if self._session.points.remember:
                QSettings().setValue(MEMORY_KEY, chosen)
            self._window.banner.say(tr("This holds from the next start of a script on"), failure=False)

    def ask_libraries(self) -> None:
        """Let the user choose packages that are stepped into, from the next start of a script on."""
        words, now = tr("Packages, such as torch or einops; none for the script's own files alone"), self._session
        text, ok = QInputDialog.getText(self._window, tr("Step into libraries"), words, text=" ".join(now.step_into))
        names = tuple(dict.fromkeys(text.replace(",", " ").split()))
        if strange := [name for name in names if not _is_package(name)]:
            self._window.banner.say(tr("There is no package {name}", name=strange[0]), failure=True)
        elif ok:
            self._session.step_into = names
            if self._session.points.remember:
                QSettings().setValue(LIBRARIES_KEY, " ".join(names))
            self._window.banner.say(tr("This holds from the next start of a script on"), failure=False)

    def recall_choices(self) -> None:
        """Take the memory limit and the packages that were chosen the last time."""
        kept = str(QSettings().value(MEMORY_KEY, "0"))
        self._session.memory_limit = int(kept) * MEBIBYTE if kept.isdecimal() else 0
        self._session.step_into = tuple(filter(_is_package, str(QSettings().value(LIBRARIES_KEY, "")).split()))

    # ---- forks -------------------------------------------------------------------------------------------------

    def fork(self) -> None:
        """Run the script, with what was edited, again up to the step we look at, and go on from there."""
        window, step = self._window, self._time.view
        saved = window.editing.words_of_saving()
        if window.editing.save() and self._session.fork(step):
            window.begin_again()
            words = tr("A fork: the run before it is kept, see Back from the fork")
            window.banner.say("\n".join(filter(None, (saved, words))), failure=False)

    def leave_fork(self) -> None:
        """Look at the run that this one was forked from."""
        if self._session.parents and self._session.open_parent():
            self._window.begin_again()


def _is_package(name: str) -> bool:
    """Say whether a package or module of this name can be imported; nothing is."""
    try:
        return any(importlib.util.find_spec(place + name.partition(".")[0]) for place in ("", GIVEN))
    except (ImportError, ValueError):
        return False
