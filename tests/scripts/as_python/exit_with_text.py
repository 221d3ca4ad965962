"""Ends by sys.exit with a text."""

import sys

print("before")
sys.exit("that is all")
