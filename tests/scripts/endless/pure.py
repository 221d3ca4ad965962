"""Counts for ever."""

n = 0
while True:
    n += 1
