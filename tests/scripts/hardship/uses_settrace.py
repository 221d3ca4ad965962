"""Traces itself, as a debugger or a coverage tool does."""

import sys

seen = []


def trace(frame, event, argument):
    seen.append(event)
    return trace


def traced():
    x = 1
    return x


sys.settrace(trace)
traced()
sys.settrace(None)
print(seen)
