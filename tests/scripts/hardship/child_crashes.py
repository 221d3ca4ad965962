"""A child reads memory that is not there; its parent goes on."""

import ctypes
import os

value = 1
if (child := os.fork()) == 0:
    ctypes.string_at(0)
_, status = os.waitpid(child, 0)
print(os.WTERMSIG(status))
