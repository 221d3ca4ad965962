"""Ends by SystemExit with a number, and has an exit handler."""

import atexit
import sys

atexit.register(print, "last words")
raise SystemExit(len(sys.argv) + 40)
