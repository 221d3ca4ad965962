"""Has an excepthook of its own."""

import sys


def hook(kind, error, trace):
    print("mine:", kind.__name__, error, trace.tb_lineno)


sys.excepthook = hook
raise RuntimeError("caught by the hook")
