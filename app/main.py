"""The window's program: :func:`main` opens it; :func:`render` and :func:`screenshot` draw a moment off screen."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from stridescope.app.main_window import MainWindow

SIZE = (1600, 1000)
LAST = -1


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window. A frozen program is also its own worker: that branch comes before Qt is imported."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--worker"]:
        sys.argv[1:] = words[1:]
        runpy.run_module("stridescope.engine.worker", run_name="__main__")
        return 0
    options = _parser().parse_args(words)
    if options.scale is not None:  # Qt reads it when the application is made; the worker has no windows
        os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    if options.offscreen_demo:
        return _demo(options)
    return open_window(
        options.file, tuple(options.args), options.device, options.theme, options.lang, module=options.module
    )


def open_window(
    path: str | None = None,
    arguments: tuple[str, ...] = (),
    device: str = "auto",
    theme: str | None = None,
    lang: str | None = None,
    *,
    module: bool = False,
) -> int:
    """Open the window, on a script or a recording where ``path`` names one, and return its exit status.

    With ``module``, ``path`` is the name of a module in the folder of the shell.
    """
    from stridescope.app.program import Program

    application = make_application(theme, lang)
    try:
        program = Program.of_module(path or "", arguments, device) if module else None
    except ValueError as error:
        print(f"stridescope: {error}", file=sys.stderr)
        return 2
    window = make_window(remember=True)
    window.show()
    if program is not None:
        window.start(program)
    elif path:
        window.open(path, arguments, device)
    return application.exec()


def screenshot(
    recording: str,
    *,
    step: int | None,
    panel: str | None,
    theme: str,
    lang: str,
    output: str,
    size: tuple[int, int] = SIZE,
) -> int:
    """Do what ``stridescope screenshot`` asks and return its exit status; a failure is one line on stderr."""
    from stridescope.engine.recording.store import RecordingError

    try:
        render(recording, LAST if step is None else step, output, panel=panel or "", theme=theme, lang=lang, size=size)
    except (ValueError, OSError, RecordingError) as error:
        print(f"stridescope: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    return 0


def render(
    recording: str,
    step: int,
    out: str,
    *,
    panel: str = "",
    theme: str = "dark",
    lang: str = "en",
    size: tuple[int, int] = SIZE,
) -> None:
    """Save a picture of the window, or of one ``panel``, at ``step`` (LAST: the newest) of a recording, off screen.

    Raises ValueError for an unknown panel or step, OSError where the picture cannot be written, and RecordingError
    where the recording cannot be opened.
    """
    with _off_screen():
        application = make_application(theme, lang)
        window = make_window()
        try:
            window.resize(*size)
            window.show()
            window.look_into(recording, step, panel)
            application.processEvents()
            picture = (window.workbench.panels[panel] if panel else window).grab()
            if not picture.save(out):
                raise OSError(f"the picture cannot be written to {out}")
        finally:
            window.close()


@contextlib.contextmanager
def _off_screen() -> Iterator[None]:
    """Let Qt draw without a screen, and without its remark that nothing can be resized there."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

    def pass_on(_kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
        if not text.startswith("This plugin does not support"):
            print(text, file=sys.stderr)

    before = qInstallMessageHandler(pass_on)
    try:
        yield
    finally:
        qInstallMessageHandler(before)


def make_application(theme: str | None = None, lang: str | None = None) -> QApplication:
    """Return the application, made and styled; one that exists already is styled again."""
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QApplication

    from stridescope.app import motion, text
    from stridescope.app import theme as themes

    found = QApplication.instance()
    application = found if isinstance(found, QApplication) else QApplication([sys.argv[0] or "stridescope"])
    application.setApplicationName("stridescope")
    application.setOrganizationName("stridescope")
    QSettings.setDefaultFormat(QSettings.Format.IniFormat)
    application.setStyle("Fusion")
    themes.load_fonts()
    application.setFont(themes.ui_font(13))
    language = lang or str(QSettings().value("language", "en"))
    text.set_language(language)
    _speak(application, language)
    chosen = theme or str(QSettings().value("theme", ""))
    themes.activate(themes.THEMES.get(chosen) or themes.system_theme())
    motion.allow(QSettings().value("motion", True) in (True, "true") and application.platformName() != "offscreen")
    return application


def _speak(application: QApplication, language: str) -> None:
    """Let Qt's own words, on the buttons of dialogs, be of the language too, where Qt has it."""
    from PySide6.QtCore import QLibraryInfo, QLocale, QTranslator

    for known in application.findChildren(QTranslator):
        application.removeTranslator(known)
        known.deleteLater()
    translator = QTranslator(application)
    if translator.load(QLocale(language), "qtbase", "_", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        application.installTranslator(translator)


def make_window(*, remember: bool = False) -> MainWindow:
    """Return the window, not yet shown; Qt's widgets are imported here, not before."""
    from stridescope.app.main_window import MainWindow

    return MainWindow(remember=remember)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stridescope", description="See tensors, storage and the graph move.")
    parser.add_argument("file", nargs="?", help="a script, or a recording (.stride)")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the script's own arguments")
    parser.add_argument("-m", dest="module", action="store_true", help="FILE is the name of a module")
    parser.add_argument("--device", default="auto", help="auto, cpu, sim[:SIZE] or cuda")
    parser.add_argument("--theme", choices=["dark", "light"], help="default: as the system")
    parser.add_argument("--lang", choices=["en", "zh"], help="default: as chosen before")
    parser.add_argument("--scale", type=_scale, metavar="N", help="how large everything is: 1.5 for a projector")
    parser.add_argument(
        "--offscreen-demo", metavar="OUT.png", help="run FILE to its end, off screen, and save a picture of the window"
    )
    return parser


def _scale(text: str) -> float:
    """Return a factor by which the window is enlarged; raises what argparse tells of."""
    least, most = 0.5, 4.0
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not least <= factor <= most:
        raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
    return factor


def _demo(options: argparse.Namespace) -> int:
    """Run a script to its end through the worker, off screen, and save a picture of the window."""
    if not options.file:
        print("stridescope: --offscreen-demo needs a script", file=sys.stderr)
        return 2
    failures: list[str] = []
    with _off_screen():
        application = make_application(options.theme or "dark", options.lang)
        window = make_window()
        window.session.failed.connect(failures.append)
        window.resize(*SIZE)  # whatever the platform's screen is
        window.show()
        if window.open(options.file, tuple(options.args), options.device):
            _run_to_end(application, window)
        window.refresh()
        application.processEvents()
        if not window.grab().save(options.offscreen_demo):
            failures.append(f"the picture cannot be written to {options.offscreen_demo}")
        window.close()
    for failure in failures:
        print(f"stridescope: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _run_to_end(application: QApplication, window: MainWindow) -> None:
    from PySide6.QtCore import QEventLoop

    window.stepping.run_to_end()
    while window.session.live or window.session.tidying:
        application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


if __name__ == "__main__":
    raise SystemExit(main())
