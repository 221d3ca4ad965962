"""Reads memory that is not there."""

import ctypes

value = 1
ctypes.string_at(0)
