"""Reads memory that is not there."""

import ctypes
import time

value = 1
time.sleep(0.3)
ctypes.string_at(0)
