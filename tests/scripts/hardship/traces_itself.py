"""Traces and profiles itself, and sees its own calls and lines only."""

import sys

seen = []


def work():
    total = 0
    for i in range(3): total += i
    try:
        deeper(total)
    except ValueError:
        total = 0
    return [number for number in gives()]


def deeper(value):
    raise ValueError(value)


def gives():
    yield 1
    yield 2


def trace(frame, event, argument):
    seen.append((event, frame.f_code.co_name, frame.f_lineno))
    return trace


work()
sys.settrace(trace)
work()
sys.settrace(None)
print([each for each in seen if each[1] in ("work", "deeper", "gives")], sorted({each[1] for each in seen} - {"<listcomp>"}))
seen.clear()
sys.setprofile(lambda frame, event, argument: seen.append((event, frame.f_code.co_name)))
work()
sys.setprofile(None)
print(seen)
print(work())
