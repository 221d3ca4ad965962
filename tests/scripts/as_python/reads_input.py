"""Reads standard input by lines and to its end."""

import sys

name = input("name? ")
print("hello", name)
print([line.strip() for line in sys.stdin])
try:
    input()
except EOFError as error:
    print("EOF:", error)
