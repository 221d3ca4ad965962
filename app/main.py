"""The window's program: ``main(argv)`` opens it; :func:`render` draws a moment off screen."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from stridescope.app.main_window import MainWindow

SIZE = (1600, 1000)


def main(argv: list[str] | None = None) -> int:
    """Open the window. A frozen program is also its own worker: that branch comes before Qt is imported."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["--worker"]:
        sys.argv[1:] = argv[1:]
        runpy.run_module("stridescope.engine.worker", run_name="__main__", alter_sys=False)
        return 0
    options = _parser().parse_args(argv)
    if options.offscreen_demo:
        return _demo(options)
    application = _application(options.theme, options.lang)
    window = _window()
    window.show()
    if options.file:
        window.open(options.file, tuple(options.args), options.device)
    return application.exec()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stridescope", description="See tensors, storage and the graph move.")
    parser.add_argument("file", nargs="?", help="a script, or a recording (.stride)")
    parser.add_argument("args", nargs="*", help="the script's own arguments")
    parser.add_argument("--device", default="auto", help="auto, cpu, sim[:SIZE] or cuda")
    parser.add_argument("--theme", choices=["dark", "light"], help="default: as the system")
    parser.add_argument("--lang", choices=["en", "zh"], help="default: as chosen before")
    parser.add_argument(
        "--offscreen-demo", metavar="OUT.png", help="run FILE to its end off screen and save a picture of the window"
    )
    return parser


def _application(theme: str | None, lang: str | None) -> QApplication:
    """Return the application, made and styled; the one that exists already is styled again."""
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QApplication

    from stridescope.app import motion, text
    from stridescope.app import theme as themes

    found = QApplication.instance()
    application = found if isinstance(found, QApplication) else QApplication([sys.argv[0]])
    application.setApplicationName("stridescope")
    application.setOrganizationName("stridescope")
    QSettings.setDefaultFormat(QSettings.Format.IniFormat)
    application.setStyle("Fusion")
    themes.load_fonts()
    application.setFont(themes.ui_font(13))
    text.set_language(lang or str(QSettings().value("language", "en")))
    chosen = theme or str(QSettings().value("theme", ""))
    themes.activate(themes.THEMES.get(chosen) or themes.system_theme())
    application.setStyleSheet(themes.stylesheet())
    motion.allow(QSettings().value("motion", True) in (True, "true") and application.platformName() != "offscreen")
    return application


def _window() -> MainWindow:
    from stridescope.app.main_window import MainWindow

    return MainWindow()


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
    """Save a picture of the window, or of one ``panel``, at ``step`` of a recording; needs no screen.

    Raises ValueError for an unknown panel or step and OSError where the picture cannot be written; a recording that
    cannot be opened raises RecordingError.
    """
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = _application(theme, lang)
    from stridescope.app.panels import BY_ID
    from stridescope.engine.recording.reader import Recording

    if panel and panel not in BY_ID:
        raise ValueError(f"no panel {panel!r}; there are {', '.join(BY_ID)}")
    with Recording.open(recording) as opened:
        if not -1 <= step < opened.steps:
            raise ValueError(f"step {step} is not in the recording, which has steps 0 to {opened.steps - 1}")
    window = _window()
    window.resize(*size)
    window.show()
    window.open(recording)
    window.cursor.look(step)
    if panel:
        window.workbench.show_panel(panel)
    window.refresh()
    application.processEvents()
    _save(window, panel, out)
    window.close()


def _save(window: MainWindow, panel: str, out: str) -> None:
    picture = (window.workbench.panels[panel] if panel else window).grab()
    if not picture.save(out):
        raise OSError(f"the picture cannot be written to {out}")


def _demo(options: argparse.Namespace) -> int:
    """Run a script to its end through the worker, off screen, and save a picture of the window."""
    if not options.file:
        print("stridescope: --offscreen-demo needs a script", file=sys.stderr)
        return 2
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    application = _application(options.theme or "dark", options.lang)
    window = _window()
    failures: list[str] = []
    window.session.failed.connect(failures.append)
    window.show()
    if window.open(options.file, tuple(options.args), options.device):
        window.run_to_end()
        while window.session.live:
            application.processEvents()
            application.sendPostedEvents()
    window.refresh()
    application.processEvents()
    window.grab().save(options.offscreen_demo)
    window.close()
    for failure in failures:
        print(f"stridescope: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
