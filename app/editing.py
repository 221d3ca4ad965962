"""The program as a person changes it: its text saved, its arguments chosen, and run again."""

from __future__ import annotations

import dataclasses
import shlex
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QInputDialog

from stridescope.app.panels.editor_model import file_name
from stridescope.app.program import Program
from stridescope.app.script_file import write_script
from stridescope.app.text import tr

if TYPE_CHECKING:
    from stridescope.app.main_window import MainWindow


class Editing(QObject):
    """What the window does with its editor's text."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._session = window, window.session
        self._editor = window.workbench.panels["editor"]

    @property
    def edited(self) -> bool:
        """Whether the editor holds changes to the program that are not on disk."""
        return self._session.program is not None and self._editor.document().isModified()

    def words_of_saving(self) -> str:
        """Return what to say when a new run saves what was edited; "" where nothing is to be saved."""
        return tr("What you edited was saved to {file}", file=file_name(self._session.script)) if self.edited else ""

    def save(self) -> bool:
        """Write the edited script back to its file; say whether it is on disk now."""
        if not self.edited:
            return True
        path = self._session.script
        try:
            write_script(path, self._editor.toPlainText())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            self._window.banner.say(tr("{path} cannot be written: {why}", path=path, why=why), failure=True)
            return False
        self._editor.document().setModified(False)
        self._window.banner.say(tr("Saved: restart to run it"), failure=False)
        return True

    def restart(self) -> None:
        """Run the script, with what was edited, from its first line."""
        if self._session.program is not None:
            self._run(self._session.program)

    def ask_arguments(self) -> None:
        """Let the user type the script's arguments, and run it with them."""
        program = self._session.program
        if program is None:
            return
        title, label = tr("Arguments"), tr("The script's arguments, as in a shell")
        text, ok = QInputDialog.getText(self._window, title, label, text=shlex.join(program.argv))
        try:
            argv = tuple(shlex.split(text))
        except ValueError as error:
            self._window.banner.say(tr("These are no arguments: {why}", why=error), failure=True)
            return
        if ok:
            self._run(dataclasses.replace(program, argv=argv))

    def toggle_module(self) -> None:
        """Run the script as a module of its package, so that its relative imports work, or again by its path."""
        program = self._session.program
        if program is None:
            return
        try:
            changed = program.as_script() if program.module else program.as_module()
        except ValueError as error:
            self._window.banner.say(str(error), failure=True)
            return
        self._run(changed, tr("This is {command}", command=changed.command))

    def _run(self, program: Program, words: str = "") -> None:
        """Save what was edited, run ``program`` from its first line, and say ``words``."""
        self._window.banner.hide()
        saved = self.words_of_saving()
        if self.save() and self._session.start(dataclasses.replace(program, until_step=0)):
            self._window.begin_again()
            self._window.banner.say("\n".join(filter(None, (saved, words))), failure=False)
