"""Keeps more and more memory."""

import time

hoard = []
while True:
    hoard.append(bytearray(b"x" * (1 << 20)))
    time.sleep(0.001)
