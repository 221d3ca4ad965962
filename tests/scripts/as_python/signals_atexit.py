"""Signals, exit handlers, a last line without an end."""

import atexit
import signal
import sys


def bye(name):
    print("bye", name)


atexit.register(bye, "first registered")
atexit.register(bye, "second registered")
if hasattr(signal, "SIGUSR1"):
    signal.signal(signal.SIGUSR1, lambda number, frame: print("signal", signal.Signals(number).name))
    signal.raise_signal(signal.SIGUSR1)
sys.stdout.write("no newline at the end")
