"""Adds up for ever in one call that keeps the interpreter's lock."""

import time

time.sleep(0.2)
sum(range(10**13))
