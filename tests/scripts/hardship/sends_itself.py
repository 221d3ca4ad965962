"""Sends itself the signal of a crash."""

import os
import signal

value = 1
os.kill(os.getpid(), signal.SIGSEGV)
