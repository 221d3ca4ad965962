"""Recurs until Python refuses."""

import sys


def down(n):
    return down(n + 1)


print(sys.getrecursionlimit() > 900)
down(0)
