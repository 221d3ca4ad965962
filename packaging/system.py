"""What the operating system must bring: Qt's shared libraries, a screen for tests, and Debian's way to install them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys


class SetupError(Exception):
    """Something that the person at the keyboard must mend; the text says how."""


# Shared libraries that Qt's wheels expect from the system, and Debian's (and Ubuntu's) package for each.
# The releases that renamed some packages to …t64 still provide these names.
OFFSCREEN_LIBRARIES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
}
WINDOW_LIBRARIES = {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}
TEST_SCREEN = {"Xvfb": "xvfb", "xdotool": "xdotool"}
WAYLAND_LIBRARIES = {"libwayland-cursor.so.0": "libwayland-cursor0"}


def has_display() -> bool:
    """Whether a window can appear: always on macOS and Windows, on Linux where X11 or Wayland is announced."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def missing_libraries(window: bool) -> dict[str, str]:
    """The libraries that Qt would not find here, each with its Debian package; empty on other systems than Linux."""
    if sys.platform != "linux":
        return {}
    wanted = {**OFFSCREEN_LIBRARIES, **(WINDOW_LIBRARIES if window else {})}
    if window and os.environ.get("WAYLAND_DISPLAY"):
        wanted.update(WAYLAND_LIBRARIES)
    return {name: package for name, package in wanted.items() if not _loads(name)}


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def can_install() -> bool:
    """Whether we may install system packages: root on Debian, Ubuntu or one of their kin."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_line(packages: list[str]) -> str:
    """The command that installs these packages, for people to copy."""
    return "apt-get install --no-install-recommends " + " ".join(packages)


def install_packages(packages: list[str]) -> None:
    """Install Debian packages, the package list brought up to date first."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("Installing system packages: " + " ".join(packages), flush=True)
    for command in (["apt-get", "update", "-q"], [*apt_line(packages).split(), "--yes", "-q"]):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SetupError(f"{done.stdout}\n'{' '.join(command)}' failed; what it printed stands above.")


def ensure_qt_libraries(window: bool) -> None:
    """Make sure that Qt can start here; as root on Debian install what is missing, else name it in one message."""
    missing = missing_libraries(window)
    if missing and can_install():
        install_packages(sorted(missing.values()))
        missing = missing_libraries(window)
    if missing:
        raise SetupError(
            f"Qt needs system libraries that are not installed: {', '.join(sorted(missing))}.\n"
            f"On Debian or Ubuntu:  sudo {apt_line(sorted(missing.values()))}\n"
            "On other systems install the packages that hold these files, then run the same command again."
        )


def ensure_test_screen() -> None:
    """Have Xvfb and a hand on its keyboard for the test of a real window; without them it skips and says why."""
    missing = [package for program, package in TEST_SCREEN.items() if shutil.which(program) is None]
    if missing and can_install():
        try:
            install_packages(missing)
        except SetupError as error:
            print(f"Going on without {' and '.join(missing)}. {error}", flush=True)
