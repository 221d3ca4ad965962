"""Replaces print, time and stdout."""

import builtins
import sys
import time

real_print = builtins.print
builtins.print = lambda *what: real_print(">", *what)
time.time = lambda: 42.0
print("patched", time.time())
real_stdout = sys.stdout


class Shouting:
    def write(self, text):
        real_stdout.write(text.upper())

    def flush(self):
        real_stdout.flush()


sys.stdout = Shouting()
print("louder")
sys.stdout = real_stdout
print("back")
